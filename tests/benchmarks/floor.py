"""What the figures are compared with: httpx and json, nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx


def bare_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False, timeout=60, limits=httpx.Limits(max_connections=None))


async def read_answer(client: httpx.AsyncClient, base_url: str, body: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Make one chat-completions call; returns the text and the tool call (id, name, arguments), if there is one."""
    content = json.dumps(body).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer key"}
    pieces: list[str] = []
    call = {"id": "", "name": "", "arguments": ""}
    async with client.stream("POST", f"{base_url}/chat/completions", content=content, headers=headers) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                continue
            choices = json.loads(line[6:])["choices"]
            if not choices:  # the chunk with the usage
                continue
            delta = choices[0]["delta"]
            if text := delta.get("content"):
                pieces.append(text)
            for part in delta.get("tool_calls") or ():
                call["id"] = part.get("id") or call["id"]
                call["name"] = part["function"].get("name") or call["name"]
                call["arguments"] += part["function"].get("arguments") or ""
    return "".join(pieces), call
