"""Server-sent events: one run over plain HTTP, frame by frame as on the websocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID

import orjson

from conversations.api.serving import release_thread
from conversations.credentials import Credential
from conversations.exceptions import ExecutionNotFound, Unauthorized
from conversations.hosting.host import ExecutionHost
from conversations.hosting.subscriber import Subscriber

KEEP_ALIVE = 15.0  # seconds
NOTHING = b":\n\n"
TERMINAL = ("execution-completed", "execution-failed")
ENDED = ("completed", "failed", "cancelled")


class EventStream:
    """What one reader is sent of one run, until the run has ended or the reader has no right to it any more."""

    def __init__(
        self, host: ExecutionHost, credential: Credential, execution_id: UUID, seen: int | None, client_id: str | None
    ) -> None:
        self._host = host
        self._credential = credential
        self._execution_id = execution_id
        self._seen = seen
        self._client_id = client_id
        self._subscriber: Subscriber | None = None
        self._waiting: asyncio.Task[bytes] | None = None

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the events; ends after the terminal one."""
        request = asyncio.current_task()
        assert request is not None
        request.add_done_callback(lambda _: self.close())  # Django does not close a generator whose reader went away
        subscriber = self._subscriber = Subscriber(self._host, self._credential)
        release_thread()
        yield NOTHING  # the head of the answer leaves with it
        try:
            await subscriber.subscribe(execution_id=self._execution_id, seen=self._seen)
            if self._client_id is not None:
                subscriber.act_for(self._client_id)
            over = False
            while not over:
                frame = await self._next(subscriber)
                if frame is None:
                    yield NOTHING
                    continue
                event, over = _event(frame)
                yield event
        except (ExecutionNotFound, Unauthorized):
            return  # whoever connects again is told
        finally:
            self.close()

    def close(self) -> None:
        """Follow the run no longer; a second call does nothing."""
        if self._subscriber is not None:
            self._subscriber.close()
        if self._waiting is not None:
            self._waiting.cancel()

    async def _next(self, subscriber: Subscriber) -> bytes | None:
        """Return the next frame, None when there was none for a while."""
        if self._waiting is None:  # never cancelled for the sake of a keep-alive: it may be on its way with a snapshot
            self._waiting = asyncio.create_task(subscriber.next(), name="events of a run")
        done, _ = await asyncio.wait({self._waiting}, timeout=KEEP_ALIVE)
        if not done:
            return None
        waiting, self._waiting = self._waiting, None
        return waiting.result()


def _event(frame: bytes) -> tuple[bytes, bool]:
    """Return a frame as a server-sent event, and whether none follows it."""
    told = orjson.loads(frame)
    id = b"id: %d\n" % told["seq"] if "seq" in told else b""
    over = told["type"] in TERMINAL or (told["type"] == "snapshot" and told["state"]["status"] in ENDED)
    return b"%sevent: %s\ndata: %s\n\n" % (id, told["type"].encode(), frame), over
