from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from conversations.hosting.executor import DatabaseExecutor
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


async def test_on_a_server_no_job_keeps_a_connection(executor: DatabaseExecutor) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite's one thread keeps its file open")
    await asyncio.gather(*(executor.run(User.objects.count) for _ in range(40)))
    statistics = await executor.run(lambda: connection.pool.get_stats())  # type: ignore[attr-defined]
    assert statistics["pool_size"] <= 8
    assert statistics.get("requests_waiting", 0) == 0


def test_after_close_nothing_more_is_taken(transactional_db: None) -> None:
    executor = DatabaseExecutor()
    executor.close()
    with pytest.raises(RuntimeError):
        asyncio.run(executor.run(User.objects.count))
