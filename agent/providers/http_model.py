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
from agent.runtime.model import CallListener, ModelEvent, ModelRequest, StreamError

_MARK = b"\xef\xbb\xbf"
_EVENT_FIELDS = b"deir:"  # how data, event, id, retry and comments begin


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

    `usage_wait` is how many seconds after the finish reason the usage and the end mark may come, whatever else comes;
    `limit` bounds one event of the stream and what is kept of one answer, in bytes.
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
        listener = request.listener
        if listener is not None and prepared.left_out:
            listener.left_out(prepared.left_out)
        decoder = self._wire.decoder(prepared, self._scrub, self._limit)
        body: bytes | None = prepared.body
        while body is not None:
            try:
                async with self._transport.opened(self._config, self._wire.path, body) as answer:
                    splitter = self._wire.splitter(self._limit)
                    piece = await _opening(answer)
                    ended = _comes_whole(piece, splitter)
                    if ended:
                        batch = [*decoder.decode_whole(await self._whole(answer, piece)), *decoder.close()]
                        if batch:
                            yield batch
                    read = answer.read
                    late: float | None = None
                    while not ended:
                        batch = decoder.decode(splitter.feed(piece)) if piece else decoder.close(splitter.close())
                        ended = decoder.ended
                        if decoder.counted and listener is not None:
                            _tell(listener, decoder)
                        if ended and decoder.finished and not answer.over:
                            if len(batch) > 1:
                                yield batch[:-1]  # what can be shown does not wait for the end of the answer
                                batch = batch[-1:]
                            await answer.finish()
                        if batch:
                            yield batch
                        if not decoder.finished:
                            piece = await read()
                        elif not ended:
                            late = late or asyncio.get_running_loop().time() + self._usage_wait
                            piece = await _read_until(answer, late)
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

    async def _whole(self, answer: Answer, opening: bytes) -> bytes:
        body = bytearray(opening)
        while piece := await answer.read():
            body += piece
            if len(body) > self._limit:
                raise EventTooLarge(self._limit)
        return bytes(body)


def _tell(listener: CallListener, decoder: AnswerDecoder) -> None:
    """Tell what was spent so far: the call may be stopped before its end says so."""
    decoder.counted = False
    usage, details = decoder.spent()
    if usage is not None:
        listener.used(usage, details)


async def _opening(answer: Answer) -> bytes:
    """Return how an answer begins, without what is blank before it; fewer than four bytes only if that is all."""
    opening = b""
    while len(opening) < 4 and (piece := await answer.read()):
        opening = (opening + piece).removeprefix(_MARK).lstrip()
    return opening


def _comes_whole(opening: bytes, splitter: SSESplitter | NDJSONSplitter) -> bool:
    """Return whether an answer is one body and no stream; its label does not decide: servers mix these up."""
    if isinstance(splitter, NDJSONSplitter):
        return opening.startswith(b"<")
    return bool(opening) and opening[0] not in _EVENT_FIELDS


async def _read_until(answer: Answer, deadline: float) -> bytes:
    """Read what follows the finish reason; a server that holds the connection open ends the answer all the same."""
    if asyncio.get_running_loop().time() >= deadline:
        return b""
    try:
        async with asyncio.timeout_at(deadline):
            return await answer.read()
    except TimeoutError:
        return b""
