"""A program that speaks the HTTP API with a host inside the test's own process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from django.test import AsyncClient

from agent.testing import ScriptedModel
from conversations.api import execution_schemas
from conversations.hosting.host import ExecutionHost
from conversations.models import User
from tests.live import hosted, settled, token_of

AGENT = "helper"


class HostedClient(AsyncClient):
    """Django's client, with what `serve` adds to each request."""

    def __init__(self, host: ExecutionHost | None) -> None:
        super().__init__()
        self.host = host

    def _base_scope(self, **request: Any) -> dict[str, Any]:
        return {**super()._base_scope(**request), **({"par.host": self.host} if self.host else {})}  # type: ignore[misc]


class Program:
    """A program that speaks the HTTP API of a host with a bearer token."""

    def __init__(self, host: ExecutionHost | None, token: str) -> None:
        self.client = HostedClient(host)
        self.host = host
        self.headers = {"Authorization": f"Bearer {token}"}

    async def get(self, path: str, **headers: str) -> Any:
        return await self.client.get(f"/ai/executions{path}", headers=self.headers | headers)

    async def post(self, path: str = "", body: Any = None, **headers: str) -> Any:
        data = body if isinstance(body, (bytes, str)) else orjson.dumps(body)
        return await self.client.post(
            f"/ai/executions{path}",
            data if body is not None else b"",
            content_type=headers.pop("content_type", "application/json"),
            headers=self.headers | headers,
        )

    async def start(self, text: str = "Hi", **more: Any) -> dict[str, Any]:
        answer = await self.post("", start_of(text, **more))
        assert answer.status_code == 202, answer.content
        started: dict[str, Any] = answer.json()
        return started

    async def read(self, execution_id: str, query: str = "") -> dict[str, Any]:
        answer = await self.get(f"/{execution_id}{query}")
        assert answer.status_code == 200, answer.content
        row: dict[str, Any] = answer.json()
        execution_schemas.ExecutionRow.from_wire(row)
        return row


def start_of(text: str = "Hi", **more: Any) -> dict[str, Any]:
    return {"agent": AGENT, "input": [{"type": "text", "text": text}], **more}


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@asynccontextmanager
async def program(user: User, *steps: Any, **changes: Any) -> AsyncIterator[Program]:
    async with hosted(ScriptedModel(*steps), **changes) as host:
        yield Program(host, await token_of(user))
        await settled(host)
