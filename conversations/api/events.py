"""Server-sent events: one run over plain HTTP, frame by frame as on the websocket."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from uuid import UUID

from conversations.api.serving import release_thread
from conversations.credentials import Credential
from conversations.exceptions import ExecutionNotFound, RateLimited, Unauthorized
from conversations.hosting.host import ExecutionHost
from conversations.hosting.pieces import with_last
from conversations.hosting.snapshot import Frame, pieces_of
from conversations.hosting.subscriber import Subscriber

KEEP_ALIVE = 15.0  # seconds
NOTHING = b":\n\n"
LAST = (b"execution-completed", b"execution-failed")
ENDED = (b"completed", b"failed", b"cancelled")
# The head of a frame says everything that is needed here; what follows may be megabytes.
HEAD = re.compile(
    rb'\{"type":"(?P<type>[a-z-]+)"(?:,"executionId":"[^"]*")?(?:,"conversationId":"[^"]*")?(?:,"fromSeq":\d+)?'
    rb'(?:,"seq":(?P<seq>\d+))?(?:,"state":\{"executionId":"[^"]*","conversationId":"[^"]*","agent":"[^"]*"'
    rb',"seq":\d+,"status":"(?P<status>[a-z_]+)")?'
)


class EventStream:
    """What one reader is sent of one run, until the run has ended or the reader has no right to it any more."""

    def __init__(
        self,
        host: ExecutionHost,
        credential: Credential,
        execution_id: UUID,
        seen: int | None,
        client_id: str | None,
        cut_off: Callable[[], None] | None = None,
    ) -> None:
        self._host = host
        self._credential = credential
        self._execution_id = execution_id
        self._seen = seen
        self._client_id = client_id
        self._cut_off = cut_off
        self._place = ExitStack()
        host.places.check(credential.user.pk)  # while there is still a status to say it with
        self._subscriber: Subscriber | None = None
        self._waiting: asyncio.Task[Frame] | None = None

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the events; ends after the terminal one."""
        request = asyncio.current_task()
        assert request is not None
        request.add_done_callback(lambda _: self.close())  # Django does not close a generator whose reader went away
        release_thread()
        try:
            self._place.enter_context(self._host.places.held(self._credential.user.pk))
            subscriber = self._subscriber = Subscriber(self._host, self._credential, self._cut_off)
            await subscriber.subscribe(execution_id=self._execution_id, seen=self._seen)
            if self._client_id is not None:
                subscriber.act_for(self._client_id)
            yield NOTHING  # the head of the answer leaves with it: who has it misses nothing from now on
            over = False
            while not over:
                parts, over = await self._next(subscriber)
                for part in parts:
                    yield part
        except (ExecutionNotFound, RateLimited, Unauthorized):
            return  # whoever connects again is told
        finally:
            self.close()

    def close(self) -> None:
        """Follow the run no longer; a second call does nothing."""
        self._place.close()
        if self._subscriber is not None:
            self._subscriber.close()
        if self._waiting is not None:
            self._waiting.cancel()

    async def _next(self, subscriber: Subscriber) -> tuple[Iterable[bytes], bool]:
        """Return the parts of the next event, a comment when there was none for a while; and whether none follows."""
        if self._waiting is None:  # never cancelled for the sake of a keep-alive: it may be on its way with a snapshot
            self._waiting = asyncio.create_task(subscriber.next(), name="events of a run")
            self._waiting.add_done_callback(lambda task: task.cancelled() or task.exception())  # nobody may be left
        done, _ = await asyncio.wait({self._waiting}, timeout=KEEP_ALIVE)
        if not done:
            return (NOTHING,), False
        waiting, self._waiting = self._waiting, None
        return event_of(waiting.result())


def event_of(frame: Frame) -> tuple[Iterator[bytes], bool]:
    """Return the parts of a frame as a server-sent event, and whether none follows it."""
    pieces = pieces_of(frame)
    first = next(pieces)
    head = HEAD.match(first)
    assert head is not None
    id = b"id: %s\n" % head["seq"] if head["seq"] else b""
    over = head["type"] in LAST or head["status"] in ENDED
    begun = b"%sevent: %s\ndata: %s" % (id, head["type"], first)
    return (part + b"\n\n" if last else part for part, last in with_last(chain((begun,), pieces))), over
