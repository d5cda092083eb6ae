"""What the figures are compared with: httpx and json, nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import httpx

from tests.benchmarks.dialects import DIALECTS, Answer
from tests.benchmarks.script import Event

# Makes the call of a request body and returns what it read.
Ask: TypeAlias = Callable[[Event], Awaitable[Answer]]


def bare_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False, timeout=60, limits=httpx.Limits(max_connections=None))


@asynccontextmanager
async def bare(protocol: str, address: str) -> AsyncIterator[Ask]:
    """Yield what asks a server with httpx and reads its answer with json."""
    dialect = DIALECTS[protocol]
    url, mark, take = address + dialect.path, dialect.mark, dialect.take
    headers = {"content-type": "application/json", "authorization": "Bearer key"}
    async with bare_client() as client:

        async def ask(body: Event) -> Answer:
            answer = Answer()
            content = json.dumps(body).encode()
            async with client.stream("POST", url, content=content, headers=headers) as response:
                response.raise_for_status()
                async for line in response.aiter_lines():
                    if line.startswith(mark) and line != "data: [DONE]":
                        take(json.loads(line[len(mark) :]), answer)
            return answer

        yield ask
