"""The rows of the benchmark.

A row has a subject and a floor. Each is an async context manager that gets the address of the scripted provider and
yields a function; one call of the function does the work once and returns how many units (deltas, turns) that was. To
add a row, write a class like these and list it in `ROWS`; the name decides where it is printed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, Protocol, TypeAlias

from tests.benchmarks.floor import bare_client, read_answer
from tests.benchmarks.provider import DELTA, TURN_ANSWER

Work: TypeAlias = Callable[[], Awaitable[int]]


class Row(Protocol):
    """`value = CPU seconds x scale / units`; `size` multiplies the amount of work, for a quick look."""

    name: str
    unit: str
    scale: float

    def __init__(self, size: float = 1.0) -> None: ...

    def subject(self, provider: str) -> AbstractAsyncContextManager[Work]: ...

    def floor(self, provider: str) -> AbstractAsyncContextManager[Work]: ...


class Deltas:
    """Streams that are read side by side; the units are deltas."""

    unit = "µs CPU per delta"
    scale = 1e6
    streams = 1

    def __init__(self, count: int) -> None:
        self.count = count

    def path(self) -> str:
        raise NotImplementedError

    @asynccontextmanager
    async def subject(self, provider: str) -> AsyncIterator[Work]:
        async with engine(f"{provider}{self.path()}") as runtime:

            async def stream() -> int:
                counter = DeltaCounter()
                await runtime.start("Write something long.", observer=counter).result
                return counter.characters

            yield lambda: self._all(stream)

    @asynccontextmanager
    async def floor(self, provider: str) -> AsyncIterator[Work]:
        body = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": "Write something long."}]}
        async with bare_client() as client:

            async def stream() -> int:
                return len((await read_answer(client, f"{provider}{self.path()}", body))[0])

            yield lambda: self._all(stream)

    async def _all(self, stream: Callable[[], Awaitable[int]]) -> int:
        characters = await asyncio.gather(*(stream() for _ in range(self.streams)))
        assert set(characters) == {self.count * len(DELTA)}, f"text was lost: {characters}"
        return self.count * self.streams


class DeltaBurst(Deltas):
    """One answer as fast as it goes, from the provider's socket to the observer."""

    name = "engine.delta.burst"

    def __init__(self, size: float = 1.0) -> None:
        super().__init__(max(10, round(5_000 * size)))

    def path(self) -> str:
        return f"/burst/{self.count}/v1"


class DeltaPaced(Deltas):
    """A hundred streams whose deltas come one at a time, 50 a second in each."""

    name = "engine.delta.paced"
    rate = 50

    def __init__(self, size: float = 1.0) -> None:
        super().__init__(max(5, round(150 * size)))
        self.streams = max(2, round(100 * size))

    def path(self) -> str:
        return f"/paced/{self.count}/{self.rate}/v1"


class ToolTurn:
    """A turn with a tool call, two model calls, after a history of such turns; the units are turns."""

    unit = "ms CPU per tool turn"
    scale = 1e3
    history: ClassVar[int]

    def __init__(self, size: float = 1.0) -> None:
        self.turns = max(1, round(100 * size))

    @asynccontextmanager
    async def subject(self, provider: str) -> AsyncIterator[Work]:
        from agent.runtime import Context

        async with engine(f"{provider}/turn/v1", [weather_tool()]) as runtime:

            async def turn(context: Context) -> Context:
                counter = DeltaCounter()
                execution = runtime.start(QUESTION, context=context, instructions=INSTRUCTIONS, observer=counter)
                result = await execution.result
                assert result.messages[-1].text == TURN_ANSWER, result.messages
                assert result.messages[2].role == "tool", result.messages
                return result.recovered

            context = Context()
            for _ in range(self.history):
                context = await turn(context)

            async def work() -> int:
                for _ in range(self.turns):
                    await turn(context)
                return self.turns

            yield work

    @asynccontextmanager
    async def floor(self, provider: str) -> AsyncIterator[Work]:
        async with bare_client() as client:

            async def turn(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
                messages = [*messages, {"role": "user", "content": QUESTION}]
                _, call = await read_answer(client, f"{provider}/turn/v1", request(messages))
                function = {"name": call["name"], "arguments": call["arguments"]}
                messages += [
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [{"id": call["id"], "type": "function", "function": function}],
                    },
                    {
                        "role": "tool",
                        "tool_call_id": call["id"],
                        "content": forecast(json.loads(call["arguments"])["city"]),
                    },
                ]
                text, _ = await read_answer(client, f"{provider}/turn/v1", request(messages))
                assert text == TURN_ANSWER, text
                return [*messages, {"role": "assistant", "content": text}]

            messages: list[dict[str, Any]] = []
            for _ in range(self.history):
                messages = await turn(messages)

            async def work() -> int:
                for _ in range(self.turns):
                    await turn(messages)
                return self.turns

            yield work


class ToolTurn10(ToolTurn):
    name = "engine.tool_turn.10"
    history = 10


class ToolTurn50(ToolTurn):
    name = "engine.tool_turn.50"
    history = 50


ROWS: Sequence[type[Row]] = (DeltaBurst, DeltaPaced, ToolTurn10, ToolTurn50)

QUESTION = "What will the weather be like in Tromso tomorrow, and do I need a coat?"
INSTRUCTIONS = "You are a helpful assistant. Use the tools that you have. Answer briefly and in plain words. " * 3
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The name of a city."}},
    "required": ["city"],
    "additionalProperties": False,
}


def forecast(city: str) -> str:
    return f"{city}: snow, minus 7 degrees, wind from the north at 11 m/s. " * 5


def request(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the body of a chat-completions request."""
    function = {"name": "weather", "description": "Tell the weather of a city.", "parameters": SCHEMA}
    return {
        "model": "scripted",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": INSTRUCTIONS}, *messages],
        "tools": [{"type": "function", "function": function}],
    }


class DeltaCounter:
    """The cheapest honest observer: it looks at each delta."""

    def __init__(self) -> None:
        from agent.runtime import BlockDelta

        self._delta = BlockDelta
        self.characters = 0

    def __call__(self, events: Sequence[Any]) -> None:
        for event in events:
            if type(event) is self._delta:
                self.characters += len(event.text)


def weather_tool() -> Any:
    """The tool of the turns, a plain async function: threads are not what is measured."""
    from agent.tools import tool

    @tool(name="weather", read_only=True)
    async def weather(city: str) -> str:
        """Tell the weather of a city.

        Args:
            city: The name of a city.
        """
        return forecast(city)

    return weather


@asynccontextmanager
async def engine(base_url: str, tools: Sequence[Any] = ()) -> AsyncIterator[Any]:
    """Yield our runtime over the real adapter and transport."""
    from agent.providers.config import ModelConfig
    from agent.providers.openai_chat import OpenAIChat
    from agent.providers.transport import Transport
    from agent.runtime import create_runtime

    transport = Transport()
    await transport.start(preload=["openai-chat"])
    config = ModelConfig("openai-chat", "scripted", base_url=base_url, api_key="key", allow_private=True)
    try:
        yield create_runtime(OpenAIChat(config, transport), tools)
    finally:
        await transport.close()
