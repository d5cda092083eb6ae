from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction
from psycopg_pool import PoolTimeout

from conversations.hosting.executor import SERVER_THREADS, DatabaseExecutor
from conversations.models import User

pytestmark = pytest.mark.django_db(transaction=True)


def add(name: str) -> int:
    return User.objects.create(username=name, email=f"{name}@example.org").pk


def until(event: threading.Event, job: Callable[[], object]) -> Callable[[], object]:
    def run() -> object:
        assert event.wait(10)
        return job()

    return run


async def test_a_job_returns_its_value_or_raises_its_error(executor: DatabaseExecutor) -> None:
    pk = await executor.run(add, "joe")
    found = await executor.run(User.objects.get, pk=pk)
    assert found.username == "joe"
    with pytest.raises(User.DoesNotExist):
        await executor.run(User.objects.get, pk=0)


async def test_a_cancelled_caller_waits_for_the_job_that_runs(executor: DatabaseExecutor) -> None:
    started, go = threading.Event(), threading.Event()

    def job() -> None:
        started.set()
        assert go.wait(10)
        add("late")

    task = asyncio.create_task(executor.run(job))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await executor.run(User.objects.filter(username="late").exists), "nothing is written behind our back"


async def test_a_cancelled_caller_drops_a_job_that_waits(transactional_db: None) -> None:
    executor = DatabaseExecutor(threads=1)
    started, go = threading.Event(), threading.Event()

    def block() -> None:
        started.set()
        assert go.wait(10)

    first = asyncio.create_task(executor.run(block))
    await asyncio.to_thread(started.wait, 10)
    second = asyncio.create_task(executor.run(add, "never"))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    go.set()
    await first
    assert not await executor.run(User.objects.filter(username="never").exists)
    executor.close()


async def test_many_read_modify_write_transactions_lose_nothing(executor: DatabaseExecutor) -> None:
    pk = await executor.run(add, "0")

    def more() -> None:
        with transaction.atomic():
            row = User.objects.select_for_update().get(pk=pk)
            row.last_name = str(int(row.last_name or 0) + 1)
            row.save(update_fields=["last_name"])

    await asyncio.gather(*(executor.run(more) for _ in range(60)))
    assert (await executor.run(User.objects.get, pk=pk)).last_name == "60"


def backend() -> int:
    """Return the number of the server's process that serves this thread's connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


@pytest.fixture
def server() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite's one thread keeps its file open")


async def test_each_thread_keeps_one_connection_that_the_pool_of_the_views_knows_nothing_of(
    server: None, executor: DatabaseExecutor
) -> None:
    """B61."""

    def held() -> tuple[int, bool]:
        return backend(), "pool" in connection.settings_dict["OPTIONS"]

    found = await asyncio.gather(*(executor.run(held) for _ in range(200)))
    assert 1 <= len({pid for pid, _ in found}) <= SERVER_THREADS
    assert not any(pooled for _, pooled in found)


async def test_views_that_take_every_pooled_connection_hold_up_no_job(server: None, executor: DatabaseExecutor) -> None:
    """B61."""
    pool = connection.pool  # type: ignore[attr-defined]
    pool.open()
    taken: list[Any] = []
    try:
        with contextlib.suppress(PoolTimeout):
            while True:
                taken.append(pool.getconn(timeout=0.5))
        async with asyncio.timeout(pool.timeout / 2):
            await asyncio.gather(*(executor.run(User.objects.count) for _ in range(2 * SERVER_THREADS)))
    finally:
        for each in taken:
            pool.putconn(each)


def end(pids: Iterable[int]) -> None:
    """Let the server end these connections, as a restart does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid, 10000) FROM unnest(%s) AS pid", [list(pids)])
    connection.close()


async def test_a_server_that_ended_the_connections_is_not_noticed(server: None, executor: DatabaseExecutor) -> None:
    """B61: no use of a dead connection."""
    before = set(await asyncio.gather(*(executor.run(backend) for _ in range(40))))
    await asyncio.to_thread(end, before)
    after = set(await asyncio.gather(*(executor.run(backend) for _ in range(40))))
    assert before.isdisjoint(after)


async def test_pages_find_no_dead_connection_after_the_next_job(server: None, executor: DatabaseExecutor) -> None:
    """B61: psycopg's pool would wait ever longer after each that it meets, and give up."""
    pool = connection.pool  # type: ignore[attr-defined]
    pool.open()
    taken = [pool.getconn() for _ in range(pool.max_size // 2)]
    idle = {each.info.backend_pid for each in taken}
    for each in taken:
        pool.putconn(each)
    mine = await executor.run(backend)
    await asyncio.to_thread(end, {mine, *idle})
    assert await executor.run(backend) != mine
    async with asyncio.timeout(5):
        again = [await asyncio.to_thread(pool.getconn) for _ in taken]
    assert idle.isdisjoint(each.info.backend_pid for each in again)
    for each in again:
        pool.putconn(each)


async def test_a_database_that_is_away_is_asked_again_until_the_time_is_over(
    executor: DatabaseExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conversations.hosting.executor.FIRST_PAUSE", 0.001)
    failures = [OperationalError("away"), InterfaceError("away"), OperationalError("away")]

    def job() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert await executor.insist(lambda: time.monotonic() + 30, job) == "done"
    failures += [OperationalError("away"), OperationalError("away")]
    with pytest.raises(OperationalError):
        await executor.insist(lambda: 0, job)
    assert len(failures) == 1


async def test_what_another_try_cannot_mend_is_not_tried_again(executor: DatabaseExecutor) -> None:
    tries: list[int] = []

    def job() -> None:
        tries.append(1)
        raise IntegrityError("taken")

    with pytest.raises(IntegrityError):
        await executor.insist(lambda: time.monotonic() + 30, job)
    assert len(tries) == 1


def test_after_close_nothing_more_is_taken(transactional_db: None) -> None:
    executor = DatabaseExecutor()
    executor.close()
    with pytest.raises(RuntimeError):
        asyncio.run(executor.run(User.objects.count))
