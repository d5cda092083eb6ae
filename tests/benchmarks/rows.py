"""The rows that are measured in processes of their own.

A row has sides: the subject, the floor, and where there is one the official SDK. Each is an async context manager that
gets the address of the scripted provider and yields a function; one call of the function does the work once and returns
how many units (deltas, turns) that was. To add a row, write a class like these and list it in `ROWS`; the name decides
where it is printed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeAlias

from tests.benchmarks.dialects import DIALECTS, INSTRUCTIONS, QUESTION
from tests.benchmarks.figures import Limit
from tests.benchmarks.floor import bare
from tests.benchmarks.script import DELTA, TURN_ANSWER, Event
from tests.benchmarks.sdks import SDKS, official
from tests.benchmarks.subjects import DeltaCounter, adapter, engine, forecast, weather_tool

Work: TypeAlias = Callable[[], Awaitable[int]]
Side: TypeAlias = AbstractAsyncContextManager[Work]
Turn: TypeAlias = Callable[[Any], Awaitable[Any]]  # takes the history before it and returns the one after it

ASKING = {"floor": bare, "sdk": official}


class Row(Protocol):
    """`value = CPU seconds x scale / units`; `size` multiplies the amount of work, for a quick look."""

    name: str
    unit: str
    scale: float
    sides: Sequence[str]
    limit: Limit | None

    def side(self, name: str, provider: str, size: float) -> Side:
        """Return the work of one of the sides."""
        ...


class Deltas:
    """Streams that are read side by side under the engine; the units are deltas."""

    unit = "µs CPU per delta"
    scale = 1e6
    protocol = "openai-chat"
    sides: Sequence[str] = ("subject", "floor")
    limit: Limit | None = None
    count: int
    streams = 1

    def path(self, count: int) -> str:
        raise NotImplementedError

    @asynccontextmanager
    async def side(self, name: str, provider: str, size: float) -> AsyncIterator[Work]:
        count, streams = max(5, round(self.count * size)), max(1, round(self.streams * size))
        address = provider + self.path(count)
        async with self._subject(address) if name == "subject" else self._asked(name, address) as read:

            async def work() -> int:
                characters = await asyncio.gather(*(read() for _ in range(streams)))
                assert set(characters) == {count * len(DELTA)}, f"text was lost: {characters}"
                return count * streams

            yield work

    @asynccontextmanager
    async def _subject(self, address: str) -> AsyncIterator[Work]:
        async with engine(self.protocol, address) as runtime:

            async def read() -> int:
                counter = DeltaCounter()
                await runtime.start(QUESTION, observer=counter).result
                return counter.characters

            yield read

    @asynccontextmanager
    async def _asked(self, side: str, address: str) -> AsyncIterator[Work]:
        body = DIALECTS[self.protocol].body([user(QUESTION)], tools=False)
        async with ASKING[side](self.protocol, address) as ask:

            async def read() -> int:
                return len((await ask(body)).text)

            yield read


class DeltaBurst(Deltas):
    """One answer as fast as it goes, from the provider's socket to the observer."""

    name = "engine.delta.burst"
    count = 5_000

    def path(self, count: int) -> str:
        return f"/burst/{count}"


class DeltaPaced(Deltas):
    """A hundred streams whose deltas come one at a time, 50 a second in each."""

    name = "engine.delta.paced"
    count = 100
    streams = 100

    def path(self, count: int) -> str:
        return f"/paced/{count}/50"


class ProviderBurst(DeltaBurst):
    """The same of one adapter alone."""

    limit = Limit("ratio", 1.0)

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.name = f"provider.{protocol}.burst"
        self.sides = sides(protocol)

    @asynccontextmanager
    async def _subject(self, address: str) -> AsyncIterator[Work]:
        from agent.runtime import AgentMessage, BlockDelta, ModelRequest
        from agent.runtime.cancellation import CancelSignal

        question = AgentMessage(id="question", role="user", blocks=[{"type": "text", "text": QUESTION}])
        request, signal = ModelRequest("answer", (question,)), CancelSignal()
        async with adapter(self.protocol, address) as model:

            async def read() -> int:
                pieces: list[str] = []
                async for events in model.stream(request, signal):
                    pieces += [event.text for event in events if type(event) is BlockDelta]
                return len("".join(pieces))

            yield read


class ToolTurn:
    """A turn with a tool call, two model calls, after a history of such turns; the units are turns."""

    unit = "ms CPU per tool turn"
    scale = 1e3

    def __init__(
        self,
        name: str,
        history: int,
        protocol: str = "openai-chat",
        sides: Sequence[str] = ("subject", "floor"),
        limit: Limit | None = None,
    ) -> None:
        self.name = name
        self.history = history
        self.protocol = protocol
        self.sides = sides
        self.limit = limit

    @asynccontextmanager
    async def side(self, name: str, provider: str, size: float) -> AsyncIterator[Work]:
        much = 4 if name == "sdk" else 40  # an SDK walks the whole history through its types
        turns, before = max(1, round(much * size)), max(1, round(self.history * size))
        address = f"{provider}/turn"
        async with self._subject(address) if name == "subject" else self._asked(name, address) as (turn, history):
            for _ in range(before):
                history = await turn(history)

            async def work() -> int:
                for _ in range(turns):
                    await turn(history)
                return turns

            yield work

    @asynccontextmanager
    async def _subject(self, address: str) -> AsyncIterator[tuple[Turn, Any]]:
        from agent.runtime import Context

        async with engine(self.protocol, address, [weather_tool()]) as runtime:

            async def turn(context: Context) -> Context:
                counter = DeltaCounter()
                execution = runtime.start(QUESTION, context=context, instructions=INSTRUCTIONS, observer=counter)
                result = await execution.result
                assert result.messages[-1].text == TURN_ANSWER, result.messages
                assert result.messages[2].role == "tool", result.messages
                return result.recovered

            yield turn, Context()

    @asynccontextmanager
    async def _asked(self, side: str, address: str) -> AsyncIterator[tuple[Turn, Any]]:
        dialect = DIALECTS[self.protocol]
        async with ASKING[side](self.protocol, address) as ask:

            async def turn(messages: list[Event]) -> list[Event]:
                messages = [*messages, user(QUESTION)]
                answer = await ask(dialect.body(messages, tools=True))
                messages += dialect.called(answer, forecast(json.loads(answer.arguments)["city"]))
                answer = await ask(dialect.body(messages, tools=True))
                assert answer.text == TURN_ANSWER, answer.text
                return [*messages, *dialect.said(answer)]

            yield turn, []


def user(text: str) -> Event:
    return {"role": "user", "content": text}


def sides(protocol: str) -> Sequence[str]:
    """Return the sides of a protocol; not each has an SDK."""
    return ("subject", "floor", "sdk") if protocol in SDKS else ("subject", "floor")


def provider_rows(protocol: str) -> Sequence[Row]:
    turn = ToolTurn(f"provider.{protocol}.tool_turn.50", 50, protocol, sides(protocol), Limit("ratio", 2.0))
    return ProviderBurst(protocol), turn


ROWS: Sequence[Row] = (
    DeltaBurst(),
    DeltaPaced(),
    ToolTurn("engine.tool_turn.10", 10),
    ToolTurn("engine.tool_turn.50", 50),
    *(row for protocol in DIALECTS for row in provider_rows(protocol)),
)
