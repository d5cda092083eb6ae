"""The threads in which the host and the sockets use the database.

Neither belongs to a request, so Django never closes their connections; and the asynchronous ORM would keep one of its
own for ever. Everything they read or write goes through `DatabaseExecutor.run`, in short transactions.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections, connection, connections, reset_queries

P = ParamSpec("P")
T = TypeVar("T")

SERVER_THREADS = 4


class DatabaseExecutor:
    """One thread on SQLite, a few on a database server."""

    def __init__(self, threads: int | None = None) -> None:
        self._size = threads or (1 if connection.vendor == "sqlite" else SERVER_THREADS)
        self._pool = ThreadPoolExecutor(self._size, "par-db")

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

    def _job(self, job: Callable[[], T]) -> T:
        try:
            return job()
        finally:
            reset_queries()  # with DEBUG, Django keeps every statement and its texts until a request begins
            if connection.vendor != "sqlite":
                close_old_connections()  # back to the pool; SQLite's one thread keeps its file open

    def close(self) -> None:
        """Wait for what runs, then close the connection of every thread."""
        together = threading.Barrier(self._size)

        def last() -> None:
            together.wait(30)
            connections.close_all()

        for done in [self._pool.submit(last) for _ in range(self._size)]:
            done.result()
        self._pool.shutdown()
