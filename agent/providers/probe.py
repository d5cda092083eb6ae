"""Whether an endpoint works, tried for real: its list of models, and the beginning of an answer."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, replace

from agent.providers.config import ModelConfig
from agent.providers.discovery import list_models
from agent.providers.failures import ProviderFault, Scrubber
from agent.providers.registry import build_model
from agent.providers.transport import Transport
from agent.runtime.cancellation import CancelSignal
from agent.runtime.messages import AgentMessage, TextBlock
from agent.runtime.model import BlockDelta, MessageStop, ModelRequest, StreamError

QUESTION = "Say hello."
PIECES = 3
WITHIN = 20.0

# What the names of models have in them that embed, draw, speak or only complete.
_SILENT = (
    *("embed", "bge-", "minilm", "e5-", "rerank", "moderation", "whisper", "tts", "audio", "realtime", "transcribe"),
    *("dall-e", "image", "sora", "davinci", "babbage", "instruct", "codex"),
)


@dataclass(frozen=True, slots=True)
class Probe:
    """What came of it: `models` with `models_error`, and of `model` the beginning of its answer or `error`."""

    models: tuple[str, ...]
    models_error: str
    model: str
    pieces: tuple[str, ...]
    error: str
    first_token_ms: int | None

    @property
    def works(self) -> bool:
        return not self.error and bool(self.pieces)


async def probe(config: ModelConfig, *, within: float = WITHIN) -> Probe:
    """Try an endpoint on a transport of its own, for `within` seconds; without a `model` a likely one is asked."""
    transport = Transport(idle_timeout=within, total_timeout=within)
    await transport.start()
    try:
        models, models_error = await _models(config, transport)
        model = config.model or next(filter(_chats, models), "")
        if not model:
            error = models_error or "there is no model to ask; enter its name"
            return Probe(models, "", "", (), error, None)
        try:
            async with asyncio.timeout(within):
                pieces, error, first = await _answer(replace(config, model=model), transport)
        except TimeoutError:
            pieces, error, first = (), f"it began no answer within {within:g} seconds", None
    finally:
        await transport.close()
    scrub = Scrubber.of(config)
    return Probe(tuple(map(scrub, models)), models_error, scrub(model), tuple(map(scrub.hide, pieces)), error, first)


def _chats(model: str) -> bool:
    """Return whether a model of this name is likely to answer in words."""
    return not any(word in model.lower() for word in _SILENT)


async def _models(config: ModelConfig, transport: Transport) -> tuple[tuple[str, ...], str]:
    try:
        return tuple(await list_models(config, transport)), ""
    except ProviderFault as fault:
        return (), fault.error.message


async def _answer(config: ModelConfig, transport: Transport) -> tuple[tuple[str, ...], str, int | None]:
    """Return the first pieces of an answer, what went wrong, and the milliseconds to the first piece."""
    message = AgentMessage(id="message-probe", role="user", blocks=(TextBlock(text=QUESTION),))
    request = ModelRequest("message-probe-answer", (message,))
    pieces: list[str] = []
    first: int | None = None
    started = time.monotonic()
    async with aclosing(build_model(config, transport).stream(request, CancelSignal())) as batches:
        async for batch in batches:
            for event in batch:
                if isinstance(event, BlockDelta) and event.text:
                    first = round((time.monotonic() - started) * 1000) if first is None else first
                    pieces.append(event.text)
                elif isinstance(event, StreamError):
                    return tuple(pieces), event.message, first
                elif isinstance(event, MessageStop) and not pieces:
                    return (), "the model answered without a word", first
            if len(pieces) >= PIECES:
                break
    return tuple(pieces[:PIECES]), "" if pieces else "the model did not answer", first
