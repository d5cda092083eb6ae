"""What a long conversation costs: saving its turns, room on disk, loading it, listing many.

Its model state grows with every turn, as those of our adapters do.

`python -m tests.benchmarks.history URL SIZE` prints the measurements as JSON. Saves of a long conversation and of a
fresh one are interleaved, commits included.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.benchmarks.databases import DATABASES, measured, migrated, servers
from tests.benchmarks.figures import Figure, Limit, figure

if TYPE_CHECKING:
    from agent.runtime.messages import ModelState
    from conversations.models import Conversation, User

LENGTHS = (100, 1_000, 5_000)
LISTED = 10_000
SAVES = 40
PLANTED = 100  # revisions at a time, each with its whole state in memory
SIGNATURE = "c2lnbmVk" * 40
GROWTH = 400
FLAT = Limit("ratio", 1.3)
CONSTANT = Limit("ratio", 1.1)


def names() -> list[str]:
    return [f"{database}.{row}" for database in DATABASES for row in _rows()]


def _rows() -> Iterator[str]:
    for length in LENGTHS:
        yield f"save.turn.{length}"
    yield f"disk.turn.{LENGTHS[-1]}"
    yield f"load.{LENGTHS[-1]}"
    yield f"list.{LISTED}"


def measure_history(wanted: Sequence[str], *, size: float = 1.0) -> list[Figure]:
    """Measure the databases that there are and that somebody wants to know of."""
    figures: list[Figure] = []
    if not set(wanted) & set(names()):
        return figures
    for database, url in servers(wanted):
        found = json.loads(measured("tests.benchmarks.history", url, str(size)))
        figures += [_figure(database, row, found) for row in _rows() if f"{database}.{row}" in wanted]
    return figures


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
    with migrated(url):
        print(json.dumps(_measured(size)))


def _measured(size: float) -> dict[str, Any]:
    from agent.runtime.messages import ModelContext
    from conversations import store
    from tests.conversations.store.writing import said, turn
    from tests.factories import AgentProfileFactory, UserFactory

    agent, user = AgentProfileFactory(slug="demo"), UserFactory()

    def grown(length: int) -> Conversation:
        texts = ("A question of usual length. " * 20, "An answer that is somewhat longer. " * 30)
        conversation = store.plant_tree(user, agent, [])
        state, last = None, None
        nodes: list[store.Node] = []
        for at in range(count := max(1, round(length * size))):
            state = _more(state)
            messages = (said(texts[0]), said(texts[1], "assistant"))
            nodes.append(store.Node(len(nodes) - 1 if nodes else last, messages, ModelContext(model_state=state)))
            if len(nodes) == PLANTED or at == count - 1:
                row = store.graft(conversation, nodes)[-1]
                nodes, last = [], row.public_id
        store.move_head(conversation, row)
        return conversation

    def begin(conversation: Conversation) -> tuple[ModelState | None, store.KnownState | None]:
        """Return what a run has in memory when its turn is saved: the state that it made, and the one before it."""
        conversation.refresh_from_db()
        path = store.load_path(conversation, conversation.head)
        return _more(path.model_context.model_state), path.state

    def save(conversation: Conversation | None, made: Any = (None, None)) -> Conversation:
        question, answer = "A question of usual length. " * 20, "An answer. " * 100
        state, base = made
        context = ModelContext(model_state=state)
        return turn(user, question, answer, conversation, context=context, base=base).conversation

    found: dict[str, Any] = {}
    for length in LENGTHS:
        long = grown(length)
        values, floors = [], []
        for _ in range(max(3, round(SAVES * size))):
            fresh = save(None, (_more(None), None))
            floors.append(_ms(partial(save, fresh, begin(fresh))))
            values.append(_ms(partial(save, long, begin(long))))
        found[f"save.turn.{length}"] = {"values": values, "floors": floors}
    found[f"disk.turn.{LENGTHS[-1]}"] = {
        "values": [_growth(lambda: save(long, begin(long)), size)],
        "floors": [_growth(lambda: save(fresh, begin(fresh)), size)],
    }
    found[f"load.{LENGTHS[-1]}"] = _counted(lambda: store.load_context(long, long.head))
    found[f"list.{LISTED}"] = _listed(user, agent, size)
    return found


def _more(state: ModelState | None) -> ModelState | None:
    """Return the model state after another answer with a tool call and a signed thought, as an adapter makes it."""
    from agent.providers.state import ProviderState
    from agent.runtime.ids import message_id

    id = message_id()
    extras = [{"type": "thinking", "signature": SIGNATURE}]
    read = ProviderState.read(state, "benchmark/v1", "server/model")
    return read.plus({f"call_{id}": f"toolu_{id}"}, id, extras).to_model_state("benchmark/v1")


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
