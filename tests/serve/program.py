"""A program that speaks `par.v1` with a served site, and keeps what it is told."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
from websockets.asyncio.client import ClientConnection, connect

from tests.site import Site

WITHIN = 60.0
TERMINAL = ("execution-completed", "execution-failed")


@dataclass(slots=True)
class Run:
    """A run as a reader knows it who keeps the rules of docs/protocol.md."""

    seq: int = 0
    text: str = ""
    status: str = "running"
    snapshots: int = 0
    frames: int = 0

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")

    def apply(self, frame: dict[str, Any]) -> None:
        self.frames += 1
        if frame["seq"] <= self.seq:
            return
        first = frame.get("fromSeq", frame["seq"])
        assert first == self.seq + 1, f"{self.seq} is followed by {first}"
        self.seq = frame["seq"]
        match frame["type"]:
            case "block-delta":
                self.text += frame["delta"].get("text", "")
            case "execution-completed":
                kind = frame["outcome"]["type"]
                self.status = "cancelled" if kind == "cancelled" else "completed"
            case "execution-failed":
                self.status = "failed"

    def replace(self, state: dict[str, Any]) -> None:
        self.snapshots += 1
        self.seq, self.status, self.text = state["seq"], state["status"], said(state["messages"])
        if state["current"] is not None:
            self.text += "".join(block["text"] for block in state["current"]["blocks"] if block["type"] == "text")


class Client:
    """One socket; `runs` holds what was read of each run, `frames` everything."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.frames: list[dict[str, Any]] = []
        self.runs: defaultdict[str, Run] = defaultdict(Run)

    async def send(self, **frame: Any) -> None:
        await self.connection.send(json.dumps(frame))

    async def receive(self) -> dict[str, Any]:
        """Return the next frame, after it was taken into account."""
        frame: dict[str, Any] = json.loads(await self.connection.recv())
        self.frames.append(frame)
        if frame["type"] == "snapshot":
            self.runs[frame["executionId"]].replace(frame["state"])
        elif "seq" in frame:
            self.runs[frame["executionId"]].apply(frame)
        return frame

    async def until(self, *types: str) -> dict[str, Any]:
        """Return the next frame of one of these types."""
        async with asyncio.timeout(WITHIN):
            while (frame := await self.receive())["type"] not in types:
                pass
            return frame

    async def command(self, **frame: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        frame.setdefault("id", str(uuid4()))
        await self.send(**frame)
        while (answer := await self.until("ack", "error"))["id"] != frame["id"]:
            pass
        return answer

    async def say(self, text: str, agent: str = "demo", **more: Any) -> dict[str, Any]:
        """Start a run and return the answer."""
        return await self.command(type="start", agent=agent, input=[{"type": "text", "text": text}], **more)

    async def end(self) -> dict[str, Any]:
        """Return the terminal event that comes next."""
        return await self.until(*TERMINAL)

    async def follow(self, execution_id: str) -> Run:
        """Follow a run to its end, whether it has ended already or not."""
        await self.command(type="subscribe", executionId=execution_id)
        return await self.finished(execution_id)

    async def finished(self, execution_id: str) -> Run:
        """Read until a run has ended; its end may also come as a snapshot."""
        run = self.runs[execution_id]
        async with asyncio.timeout(WITHIN):
            while not run.ended:
                await self.receive()
        return run

    def text(self) -> str:
        """Return the text of all deltas that came."""
        return "".join(f["delta"].get("text", "") for f in self.frames if f["type"] == "block-delta")

    def forget(self) -> None:
        """Vanish: the connection stays open, but nobody reads it or answers it any more."""
        self.connection.transport.pause_reading()


@asynccontextmanager
async def program(site: Site, token: str, *, address: str = "", **options: Any) -> AsyncIterator[Client]:
    """An open socket, past its `welcome`; `address` is another one than the site's, of a proxy before it."""
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(
        address or site.socket_address,
        subprotocols=["par.v1"],
        additional_headers=headers,
        compression=None,
        **options,
    ) as connection:
        client = Client(connection)
        await client.until("welcome")
        yield client


def said(messages: list[dict[str, Any]]) -> str:
    """Return what the assistant says in these messages."""
    blocks = [block for message in messages if message["role"] == "assistant" for block in message["blocks"]]
    return "".join(block["text"] for block in blocks if block["type"] == "text")


def browser(site: Site, token: str) -> httpx.AsyncClient:
    """The HTTP client of a program; a context manager."""
    return httpx.AsyncClient(base_url=site.address, headers={"Authorization": f"Bearer {token}"}, timeout=WITHIN)


async def stored(site: Site, token: str, conversation_id: str) -> dict[str, Any]:
    """Return a conversation with its messages as HTTP shows them."""
    async with browser(site, token) as http:
        answer = await http.get(f"/ai/conversations/{conversation_id}")
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return {"conversation": shown["conversation"], **shown["context"]}
