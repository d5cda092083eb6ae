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
    from uuid import UUID

    from agent.models import AgentProfile
    from agent.runtime.messages import ModelState
    from conversations.models import Conversation, Revision, User
    from conversations.store import KnownState

LENGTHS = (100, 1_000, 5_000)
LISTED = 10_000
SAVES = 40
PLANTED = 100  # revisions at a time, each with its whole state in memory
FORMAT = "benchmark/v1"
QUESTION = "A question of usual length. " * 20
ANSWER = "An answer that is somewhat longer. " * 30
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
    from tests.factories import AgentProfileFactory, UserFactory

    agent, user = AgentProfileFactory(slug="demo"), UserFactory()
    found: dict[str, Any] = {}
    for length in LENGTHS:
        long = Talk(user).grow(agent, max(1, round(length * size)))
        values, floors = [], []
        for _ in range(max(3, round(SAVES * size))):
            fresh = Talk(user)
            fresh.save()
            floors.append(_ms(fresh.save))
            values.append(_ms(long.save))
        found[f"save.turn.{length}"] = {"values": values, "floors": floors}
    found[f"disk.turn.{LENGTHS[-1]}"] = {
        "values": [_growth(long.save, size)],
        "floors": [_growth(fresh.save, size)],
    }
    found[f"load.{LENGTHS[-1]}"] = _counted(long.loading())
    found[f"list.{LISTED}"] = _listed(user, agent, size)
    return found


class Talk:
    """A conversation, and what a run has in memory when its turn is saved: the last state, and the one it makes of it.

    A run reads the last state from the database before it begins; here it is what the last save has stored.
    """

    def __init__(self, user: User) -> None:
        self.user = user
        self.conversation: Conversation | None = None
        self._last: KnownState | None = None
        self._made = _more(None)

    def grow(self, agent: AgentProfile, length: int) -> Talk:
        """Make it so many turns long at once."""
        from agent.runtime.messages import ModelContext
        from conversations import store
        from tests.conversations.store.writing import said

        self.conversation = store.plant_tree(self.user, agent, [])
        nodes: list[store.Node] = []
        last: UUID | None = None
        for at in range(1, length + 1):
            parent = len(nodes) - 1 if nodes else last
            messages = (said(QUESTION), said(ANSWER, "assistant"))
            nodes.append(store.Node(parent, messages, ModelContext(model_state=self._made)))
            if len(nodes) == PLANTED or at == length:
                row = store.graft(self.conversation, nodes)[-1]
                nodes, last = [], row.public_id
                self._stored(row)
            else:
                self._made = _more(self._made)
        store.move_head(self.conversation, row)
        return self

    def save(self) -> None:
        """Begin a turn and store its end, commits included."""
        from agent.runtime.messages import ModelContext
        from tests.conversations.store.writing import turn

        context = ModelContext(model_state=self._made)
        row = turn(self.user, QUESTION, ANSWER, self.conversation, context=context, base=self._last)
        self.conversation = row.conversation
        self._stored(row)

    def loading(self) -> Callable[[], Any]:
        """Return what loads all of it."""
        from conversations import store

        assert self.conversation is not None
        self.conversation.refresh_from_db()
        return partial(store.load_context, self.conversation, self.conversation.head)

    def _stored(self, row: Revision) -> None:
        from conversations.store.chains import known_state

        self._last = known_state(row.pk, row.number, self._made, row.model_state)
        self._made = _more(self._made)


def _more(state: ModelState | None) -> ModelState:
    """Return the model state after another answer with a tool call and a signed thought, as an adapter makes it.

    Only that nobody looks at what was there before.
    """
    from agent.providers.state import ProviderState
    from agent.runtime.ids import message_id
    from agent.runtime.messages import ModelState

    id = message_id()
    extras = [{"type": "thinking", "signature": SIGNATURE}]
    read = ProviderState.read(state, FORMAT, "server/model").plus({f"call_{id}": f"toolu_{id}"}, id, extras)
    data = {"issuer": read.issuer, "callIds": read.call_ids, "extras": read.extras}
    return ModelState.model_construct(format=FORMAT, data=data)


def _listed(user: User, agent: AgentProfile, size: float) -> dict[str, Any]:
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
