"""The floor of the websocket rows: a bare Channels consumer under stock daphne, run as `python -m … PORT PROVIDER`.

It takes `{"say": PATH}`, asks the provider with httpx and sends a frame for each delta; with `{"tell": COUNT, "rate":
RATE}` it sends frames to all sockets by a timer.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from daphne.server import Server  # first: it installs the reactor
from django.conf import settings

from tests.benchmarks.floor import bare_client
from tests.benchmarks.stage import stamp


class Bare(AsyncWebsocketConsumer):
    """Sends what it reads."""

    provider = ""
    client: Any = None
    everybody: set[Bare] = set()

    async def connect(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        Bare.client = Bare.client or bare_client()
        self.everybody.add(self)
        await self.accept()

    async def disconnect(self, code: int) -> None:
        self.everybody.discard(self)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        match json.loads(text_data or ""):
            case {"say": path}:
                work = self.say(path)
            case {"tell": count, "rate": rate}:
                work = self.tell(count, rate)
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def say(self, path: str) -> None:
        body = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": path}]}
        address = f"{self.provider}/said/v1/chat/completions"
        async with self.client.stream("POST", address, json=body, timeout=600) as response:
            async for line in response.aiter_lines():
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                choices = json.loads(line[6:])["choices"]
                if choices and (text := choices[0]["delta"].get("content")):
                    await self.send(text_data=delta(text))
        await self.send(text_data='{"type": "execution-completed"}')

    async def tell(self, count: int, rate: float) -> None:
        loop = asyncio.get_running_loop()
        first = loop.time()
        for number in range(count):
            await asyncio.sleep(first + number / rate - loop.time())
            text = delta(f"{stamp()} ")
            for socket in self.everybody:
                await socket.send(text_data=text)


def delta(text: str) -> str:
    return json.dumps({"type": "block-delta", "delta": {"type": "text", "text": text}})


if __name__ == "__main__":
    settings.configure()
    port, Bare.provider = sys.argv[1:]
    Server(
        Bare.as_asgi(),
        endpoints=[f"tcp:port={port}:interface=127.0.0.1"],
        ready_callable=lambda: print(f"http://127.0.0.1:{port}", flush=True),
    ).run()
