"""What a long conversation costs: saving its turns, room on disk, loading it, listing many.

Each database is measured in a process of its own, on a database of its own, by `python -m tests.benchmarks.history URL
SIZE`, which prints JSON. Saves of a long conversation and of a fresh one are interleaved, commits included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

from tests.benchmarks.figures import Figure, Limit, figure

if TYPE_CHECKING:
    from conversations.models import Conversation, User

LENGTHS = (100, 1_000, 5_000)
LISTED = 10_000
SAVES = 40
GROWTH = 400
FLAT = Limit("ratio", 1.3)
CONSTANT = Limit("ratio", 1.1)


def names() -> list[str]:
    return [f"{database}.{row}" for database in ("sqlite", "postgresql") for row in _rows()]


def _rows() -> Iterator[str]:
    for length in LENGTHS:
        yield f"save.turn.{length}"
    yield f"disk.turn.{LENGTHS[-1]}"
    yield f"load.{LENGTHS[-1]}"
    yield f"list.{LISTED}"


def measure_history(wanted: Sequence[str], *, size: float = 1.0) -> list[Figure]:
    """Measure the databases that there are and that somebody wants to know of."""
    figures: list[Figure] = []
    for database, url in (("sqlite", ""), ("postgresql", _server())):
        if url is None or not any(name.startswith(f"{database}.") for name in wanted):
            continue
        found = json.loads(_run(url, size))
        figures += [_figure(database, row, found) for row in _rows() if f"{database}.{row}" in wanted]
    return figures


def _server() -> str | None:
    return os.environ.get("DATABASE_URL") or os.environ.get("PAR_TEST_DATABASE_URL")


def _run(url: str, size: float) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    command = [sys.executable, "-m", "tests.benchmarks.history", url, str(size)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def _figure(database: str, row: str, found: dict[str, Any]) -> Figure:
    name, measured = f"{database}.{row}", found[row]
    match row.split(".", maxsplit=1)[0]:
        case "save":
            return figure(name, "ms per save, turn 1 beside it", measured["values"], measured["floors"], limit=FLAT)
        case "disk":
            unit = "bytes on disk per turn, a fresh conversation beside it"
            return figure(name, unit, measured["values"], measured["floors"], limit=CONSTANT)
        case _:
            return figure(name, f"ms, {measured['queries']} queries", measured["values"])


def main(url: str, size: float) -> None:
    """Measure one database and print what was found."""
    with tempfile.TemporaryDirectory(prefix="par-bench-") as place, _database(url, Path(place)):
        import django

        django.setup()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", verbosity=0)
        print(json.dumps(_measured(size)))
        connection.close()
        if pool := getattr(connection, "pool", None):
            pool.close()


@contextmanager
def _database(url: str, place: Path) -> Iterator[None]:
    os.environ["DJANGO_SETTINGS_MODULE"] = "par_project.test_settings"
    if not url:
        os.environ["DATABASE_URL"] = f"sqlite:///{place / 'bench.sqlite3'}"
        yield
        return
    import psycopg

    name = f"par_bench_{uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
        os.environ["DATABASE_URL"] = urlsplit(url)._replace(path=f"/{name}").geturl()
        try:
            yield
        finally:
            server.execute(f'DROP DATABASE "{name}" WITH (FORCE)')  # type: ignore[arg-type]


def _measured(size: float) -> dict[str, Any]:
    from conversations import store
    from tests.conversations.store.writing import said, state, turn
    from tests.factories import AgentProfileFactory, UserFactory

    agent, user = AgentProfileFactory(slug="demo"), UserFactory()

    def grown(length: int) -> Conversation:
        texts = ("A question of usual length. " * 20, "An answer that is somewhat longer. " * 30)
        nodes = [
            store.Node(at - 1 if at else None, (said(texts[0]), said(texts[1], "assistant")), state(at))
            for at in range(max(1, round(length * size)))
        ]
        return store.plant_tree(user, agent, nodes)

    def save(conversation: Conversation | None) -> Conversation:
        return turn(user, "A question of usual length. " * 20, "An answer. " * 100, conversation).conversation

    found: dict[str, Any] = {}
    for length in LENGTHS:
        long = grown(length)
        values, floors = [], []
        for _ in range(max(3, round(SAVES * size))):
            fresh = save(None)
            floors.append(_ms(partial(save, fresh)))
            values.append(_ms(partial(save, long)))
        found[f"save.turn.{length}"] = {"values": values, "floors": floors}
    found[f"disk.turn.{LENGTHS[-1]}"] = {
        "values": [_growth(partial(save, long), size)],
        "floors": [_growth(partial(save, fresh), size)],
    }
    found[f"load.{LENGTHS[-1]}"] = _counted(lambda: store.load_context(long, long.head))
    found[f"list.{LISTED}"] = _listed(user, agent, size)
    return found


def _listed(user: User, agent: Any, size: float) -> dict[str, Any]:
    from conversations.listing import Filters, page_of
    from conversations.models import Conversation

    rows = [Conversation(owner=user, agent=agent, title=f"Conversation {n}") for n in range(round(LISTED * size))]
    Conversation.objects.bulk_create(rows, batch_size=500)
    return _counted(lambda: page_of(user, Filters(), "", 50))


def _counted(work: Callable[[], Any]) -> dict[str, Any]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    work()
    with CaptureQueriesContext(connection) as queries:
        work()
    return {"values": [_ms(work) for _ in range(7)], "queries": len(queries)}


def _growth(work: Callable[[], Any], size: float) -> float:
    """Return by how many bytes each turn makes the database larger."""
    before, turns = _bytes(), max(20, round(GROWTH * size))
    for _ in range(turns):
        work()
    return (_bytes() - before) / turns


def _bytes() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
        else:
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        (count,) = cursor.fetchone() or (0,)
        return int(count)


def _ms(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
