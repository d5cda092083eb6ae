"""What is measured: our adapters over the real transport, alone and under the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.benchmarks.dialects import MODEL
from tests.benchmarks.script import TURN_TOOL


@asynccontextmanager
async def adapter(protocol: str, address: str) -> AsyncIterator[Any]:
    """Yield our model of a protocol."""
    from agent.providers.config import ModelConfig
    from agent.providers.registry import build_model
    from agent.providers.transport import Transport

    config = ModelConfig(protocol, MODEL, base_url=f"{address}/v1", api_key="key", allow_private=True)
    transport = Transport()
    await transport.start(preload=[protocol])
    try:
        yield build_model(config, transport)
    finally:
        await transport.close()


@asynccontextmanager
async def engine(protocol: str, address: str, tools: Sequence[Any] = ()) -> AsyncIterator[Any]:
    """Yield our runtime over the adapter."""
    from agent.runtime import create_runtime

    async with adapter(protocol, address) as model:
        yield create_runtime(model, tools)


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
    """Return the tool of the turns, a plain async function: threads are not what is measured."""
    from agent.tools import tool

    @tool(name=TURN_TOOL, read_only=True)
    async def weather(city: str) -> str:
        """Tell the weather of a city.

        Args:
            city: The name of a city.
        """
        return forecast(city)

    return weather


def forecast(city: str) -> str:
    return f"{city}: snow, minus 7 degrees, wind from the north at 11 m/s. " * 5
