"""What searching a million messages costs.

Ten people share the messages, so that each has a hundred thousand; a third of the messages have some Chinese. A search
is the one of the API, 20 hits with their snippets; `save` is what a turn of two messages costs the index, transaction
included. `python -m tests.benchmarks.search URL SIZE` prints the measurements as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.benchmarks.databases import DATABASES, measured, migrated, servers
from tests.benchmarks.figures import Figure, figure

if TYPE_CHECKING:
    from conversations.models import Conversation, Revision, User

MESSAGES = 1_000_000
PEOPLE = 10
TO_A_CONVERSATION, TO_A_REVISION = 100, 10
RARE = 10_000  # one message in so many has the rare word, all of one person's
RUNS = 7

# What each row searches for: words in every order of frequency, their beginnings and phrases, characters.
QUERIES = {
    "rare": "needle",
    "common": "the",
    "two": "the water",
    "phrase": '"the water"',
    "prefix": "wa",
    "character": "数",
    "characters": "数据",
    "nothing": "unheardof",
    "tagged": "the",
    "deep": "the",
}
SAVE = "save"
WORDS = "the of and water wall was we will with work one light house river garden".split()
CHARACTERS = "的一是不了人我在有他这为之大来以个中上们数据索引查询语言模型天地山水"


def names() -> list[str]:
    return [f"{database}.search.{row}" for database in DATABASES for row in (*QUERIES, SAVE)]


def measure_search(wanted: Sequence[str], *, size: float = 1.0) -> list[Figure]:
    """Measure the databases that there are and that somebody wants to know of."""
    figures: list[Figure] = []
    if not set(wanted) & set(names()):
        return figures
    for database, url in servers(wanted):
        for row, found in json.loads(measured("tests.benchmarks.search", url, str(size))).items():
            if (name := f"{database}.search.{row}") in wanted:
                figures.append(figure(name, f"ms, {found['queries']} queries", found["values"]))
    return figures


def main(url: str, size: float) -> None:
    """Measure one database and print what was found."""
    with migrated(url):
        print(json.dumps(_measured(max(TO_A_CONVERSATION * PEOPLE, round(MESSAGES * size)))))


def _measured(messages: int) -> dict[str, Any]:
    from conversations.search import Filters, Query, search

    conversation = _filled(messages)
    person = conversation.owner
    middle = _place(person, messages)
    found: dict[str, Any] = {}
    for row, typed in QUERIES.items():
        filters = Filters(tag="seldom") if row == "tagged" else None
        before = middle if row == "deep" else None
        found[row] = _timed(partial(search, person, Query.parse(typed), filters, before=before, limit=20))
    found[SAVE] = _timed(partial(_save, conversation, conversation.revisions.latest("pk")))
    return found


def _filled(messages: int) -> Conversation:
    """Store so many messages; returns the last of the conversations."""
    from django.db import connection, transaction

    from conversations.models import Conversation, Revision
    from conversations.search import index_revisions
    from tests.factories import AgentProfileFactory, UserFactory

    draw, begin = random.Random(6), datetime(2026, 1, 1, tzinfo=UTC)
    agent, people = AgentProfileFactory(), [UserFactory() for _ in range(PEOPLE)]
    for nth, first in enumerate(range(0, messages, TO_A_CONVERSATION)):
        tags = ["seldom"] if nth % 1_000 < PEOPLE else []
        with transaction.atomic():
            conversation = Conversation.objects.create(owner=people[nth % PEOPLE], agent=agent, tags=tags)
            rows = [
                Revision(
                    conversation=conversation,
                    number=at,
                    context=[_message(draw, number) for number in range(at, at + TO_A_REVISION)],
                    created_at=begin + timedelta(seconds=30 * at),
                )
                for at in range(first, first + TO_A_CONVERSATION, TO_A_REVISION)
            ]
            index_revisions(conversation, Revision.objects.bulk_create(rows))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return conversation


def _message(draw: random.Random, number: int) -> dict[str, Any]:
    role = "assistant" if number % 2 else "user"
    return {"id": f"message-{number}", "role": role, "blocks": [{"type": "text", "text": _text(draw, number)}]}


def _text(draw: random.Random, number: int) -> str:
    """Return about 50 characters, with more Chinese in every third message."""
    said = draw.choices(WORDS, weights=range(len(WORDS), 0, -1), k=6) + [f"word{draw.randrange(50_000)}"] * 2
    if number % 3 == 0:
        said.append("".join(draw.choices(CHARACTERS, k=25)))
    if number % RARE == RARE - 1:
        said.append("needle")
    return " ".join(said)


def _place(person: User, messages: int) -> int:
    """Return where a page in the middle of all of a person's entries begins."""
    from conversations.models import SearchEntry

    entries = SearchEntry.objects.filter(conversation__owner=person).order_by("-pk")
    return entries.values_list("pk", flat=True)[messages // PEOPLE // 2]


def _save(conversation: Conversation, revision: Revision) -> None:
    from django.db import transaction

    from agent.runtime.messages import AgentMessage
    from conversations.search import index_messages

    said = [AgentMessage.from_wire({**_message(random.Random(), n), "id": str(uuid4())}) for n in (1, 2)]
    with transaction.atomic():
        index_messages(conversation, revision, said)


def _timed(work: Callable[[], object]) -> dict[str, Any]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as queries:
        work()
    values = []
    for _ in range(RUNS):
        began = time.perf_counter()
        work()
        values.append((time.perf_counter() - began) * 1e3)
    return {"values": values, "queries": len(queries)}


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
