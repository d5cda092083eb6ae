"""The threads in which the host and the sockets use the database.

Neither belongs to a request, so Django never closes their connections; and the asynchronous ORM would keep one of its
own for ever. Everything they read or write goes through `DatabaseExecutor.run`, in short transactions.

On a database server each thread keeps a connection of its own beside the pool of the HTTP views: many slow pages cannot
hold up a run, and the number of connections is that of the threads, whatever the number of sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
    reset_queries,
)

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("conversations.hosting")

SERVER_THREADS = 4
KEEP_CONNECTION = 300  # seconds
CONNECT_WITHIN = 10  # seconds
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds between two tries
AWAY = (OperationalError, InterfaceError)


class DatabaseExecutor:
    """One thread on SQLite, a few on a database server."""

    def __init__(self, threads: int | None = None) -> None:
        self._size = threads or (1 if connection.vendor == "sqlite" else SERVER_THREADS)
        self._pool = ThreadPoolExecutor(self._size, "par-db", initializer=_own_connection)
        self._pool_of_pages: Any = getattr(connection, "pool", None)
        self._lost = False

    async def run(self, job: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `job` returns.

        A cancelled caller drops a job that has not started, and waits for the end of one that runs: when the call is
        over, nothing is written behind the caller's back.
        """
        submitted = self._pool.submit(self._job, lambda: job(*args, **kwargs))
        future = asyncio.wrap_future(submitted)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not submitted.cancel() and not future.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({future})
            if not future.cancelled() and future.done():
                future.exception()  # it was the caller's to see; nobody is left to be told
            raise

    async def insist(self, until: Callable[[], float], job: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `job` returns, trying again while the database is away and the time `until()` has not come.

        `until` (monotonic) is asked each time: the end may come nearer meanwhile. The job must bear being done twice,
        since a connection can be lost after the commit.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                return await self.run(job, *args, **kwargs)
            except AWAY as error:
                left = until() - time.monotonic()
                if left <= 0:
                    raise
                logger.warning("the database is away, another try follows: %s", error)
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _job(self, job: Callable[[], T]) -> T:
        before = connection.connection
        try:
            done = job()
            if self._lost or (before is not None and connection.connection is not before):
                self._mend_pool()
            return done
        except AWAY:
            self._lost = True
            raise
        finally:
            reset_queries()  # with DEBUG, Django keeps every statement and its texts until a request begins
            if connection.vendor != "sqlite":
                close_old_connections()  # what broke or is old; the next job looks whether the rest still works

    def _mend_pool(self) -> None:
        """Replace what the server ended while it was away: a page would meet one dead connection after the other."""
        self._lost = False
        if self._pool_of_pages is not None and not self._pool_of_pages.closed:
            self._pool_of_pages.check()

    def close(self) -> None:
        """Wait for what runs, then close the connection of every thread."""
        together = threading.Barrier(self._size)

        def last() -> None:
            together.wait(30)
            connections.close_all()

        for done in [self._pool.submit(last) for _ in range(self._size)]:
            done.result()
        self._pool.shutdown()


def _own_connection() -> None:
    """Give this thread a connection that comes from no pool and is kept for the next job."""
    if connection.vendor == "sqlite":
        return  # there is no pool, and the one thread keeps its file open
    own = connection.copy()
    own.settings_dict["OPTIONS"].pop("pool", None)
    own.settings_dict["OPTIONS"].setdefault("connect_timeout", CONNECT_WITHIN)
    own.settings_dict |= {"CONN_MAX_AGE": KEEP_CONNECTION, "CONN_HEALTH_CHECKS": True}
    connections[DEFAULT_DB_ALIAS] = own
