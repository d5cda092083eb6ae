"""What all adapters over HTTP share: one call, from the ready request to the last event.

A `Wire` knows the protocol: it builds the request and makes the decoder that reads the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from agent.providers.config import ModelConfig
from agent.providers.decoder import AnswerDecoder
from agent.providers.failures import ProviderFault, Scrubber, from_exception
from agent.providers.framing import DEFAULT_LIMIT, EventTooLarge, NDJSONSplitter, SSESplitter
from agent.providers.prepared import PreparedRequest
from agent.providers.state import StateMismatch
from agent.providers.transport import Answer, Transport
from agent.runtime.cancellation import CancelSignal
from agent.runtime.model import ModelEvent, ModelRequest, StreamError

_WHOLE_BESIDE_LINES = ("text/html",)
_WHOLE = ("application/json", *_WHOLE_BESIDE_LINES)


class Wire(Protocol):
    """One protocol at one endpoint; `path` is where its calls go."""

    path: str

    def prepare(self, request: ModelRequest) -> PreparedRequest:
        """Return the request as it goes out; raises `StateMismatch`."""
        ...

    def splitter(self, limit: int) -> SSESplitter | NDJSONSplitter:
        """Return what splits the answer into payloads."""
        ...

    def decoder(self, prepared: PreparedRequest, scrub: Scrubber, limit: int) -> AnswerDecoder:
        """Return what reads the answer to `prepared`."""
        ...


class HTTPModel:
    """A model behind a server (R35-R46).

    `usage_wait` is how many seconds the usage and the end mark may come after the finish reason; `limit` bounds one
    event of the stream and the tool arguments of one answer, in bytes.
    """

    def __init__(
        self,
        config: ModelConfig,
        transport: Transport,
        wire: Wire,
        *,
        usage_wait: float = 5.0,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        self._config = config
        self._transport = transport
        self._wire = wire
        self._usage_wait = usage_wait
        self._limit = limit
        self._scrub = Scrubber.of(config)

    async def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Make one call; see `agent.runtime.model.Model`."""
        try:
            prepared = self._wire.prepare(request)
        except StateMismatch as error:
            yield [StreamError(str(error), kind="invalid-request")]
            return
        if prepared.empty:
            yield [StreamError("there is nothing to send to the model", kind="invalid-request")]
            return
        decoder = self._wire.decoder(prepared, self._scrub, self._limit)
        body: bytes | None = prepared.body
        while body is not None:
            try:
                async with self._transport.opened(self._config, self._wire.path, body) as answer:
                    splitter = self._wire.splitter(self._limit)
                    whole = _WHOLE_BESIDE_LINES if isinstance(splitter, NDJSONSplitter) else _WHOLE
                    ended = answer.content_type in whole
                    if ended:
                        batch = [*decoder.decode_whole(await self._whole(answer)), *decoder.close()]
                        if batch:
                            yield batch
                    read = answer.read
                    while not ended:
                        piece = await (self._read_late(answer) if decoder.finished else read())
                        batch = decoder.decode(splitter.feed(piece)) if piece else decoder.close(splitter.close())
                        ended = decoder.ended
                        if ended and decoder.finished and not answer.over:
                            if len(batch) > 1:
                                yield batch[:-1]  # what can be shown does not wait for the end of the answer
                                batch = batch[-1:]
                            await answer.finish()
                        if batch:
                            yield batch
            except ProviderFault as fault:
                if not decoder.ended:
                    batch = decoder.close() if decoder.finished else [decoder.failure(fault.error)]
                    if batch:
                        yield batch
            except EventTooLarge as error:
                if not decoder.ended:
                    yield [decoder.failure(from_exception(error, self._scrub))]
                return
            body = decoder.continuation()

    async def _read_late(self, answer: Answer) -> bytes:
        """Read what follows the finish reason; a server that holds the connection open ends the answer all the same."""
        try:
            async with asyncio.timeout(self._usage_wait):
                return await answer.read()
        except TimeoutError:
            return b""

    async def _whole(self, answer: Answer) -> bytes:
        body = bytearray()
        while piece := await answer.read():
            body += piece
            if len(body) > self._limit:
                raise EventTooLarge(self._limit)
        return bytes(body)
