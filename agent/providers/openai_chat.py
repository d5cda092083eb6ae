"""OpenAI-compatible chat completions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from agent.providers.config import ModelConfig
from agent.providers.failures import ProviderFault, Scrubber, from_exception
from agent.providers.framing import DEFAULT_LIMIT, EventTooLarge, SSESplitter
from agent.providers.openai_chat_decode import ChatDecoder
from agent.providers.openai_chat_request import ChatRequests, StateMismatch
from agent.providers.transport import Answer, Transport
from agent.runtime.cancellation import CancelSignal
from agent.runtime.model import ModelEvent, ModelRequest, StreamError

PATH = "/chat/completions"


class OpenAIChat:
    """A model behind a chat completions server (R35-R46).

    `usage_wait` is how many seconds the usage and the end mark may come after the finish reason; `limit` bounds one
    event of the stream and the tool arguments of one answer, in bytes.
    """

    def __init__(
        self, config: ModelConfig, transport: Transport, *, usage_wait: float = 5.0, limit: int = DEFAULT_LIMIT
    ) -> None:
        self._config = config
        self._transport = transport
        self._usage_wait = usage_wait
        self._limit = limit
        self._requests = ChatRequests(config)
        self._scrub = Scrubber.of(config)

    async def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Make one call; see `agent.runtime.model.Model`."""
        try:
            prepared = self._requests.prepare(request)
        except StateMismatch as error:
            yield [StreamError(str(error), kind="invalid-request")]
            return
        if prepared.empty:
            yield [StreamError("there is nothing to send to the model", kind="invalid-request")]
            return
        decoder = ChatDecoder(prepared.names, prepared.call_ids, self._scrub, limit=self._limit)
        try:
            async with self._transport.opened(self._config, PATH, prepared.body) as answer:
                if answer.content_type in ("application/json", "text/html"):
                    yield [*decoder.decode_whole(await self._whole(answer)), *decoder.close()]
                    return
                splitter = SSESplitter(self._limit)
                read = answer.read
                while True:
                    piece = await (self._read_late(answer) if decoder.finished else read())
                    batch = decoder.decode(splitter.feed(piece)) if piece else decoder.close(splitter.close())
                    if decoder.ended:
                        if not answer.over and decoder.finished:
                            if len(batch) > 1:
                                yield batch[:-1]  # what can be shown does not wait for the end of the answer
                            batch = batch[-1:]
                            await answer.finish()
                        yield batch
                        return
                    if batch:
                        yield batch
        except ProviderFault as fault:
            if not decoder.ended:
                yield decoder.close() if decoder.finished else [fault.error]
        except EventTooLarge as error:
            if not decoder.ended:
                yield [from_exception(error, self._scrub)]

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
