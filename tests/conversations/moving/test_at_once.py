"""An import while somebody goes on in the conversation that it adds to."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from django.db import connection, connections

from conversations.models import Execution
from conversations.moving import Form, export_all, planting
from conversations.store import adopt_recovered, recovered
from tests.conversations.moving.files import taken
from tests.conversations.store.writing import turn
from tests.factories import AgentProfileFactory, ExecutionFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

WITHIN = 20.0  # seconds


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
def test_who_continues_from_a_turn_and_who_brings_that_in_wait_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """One has the turn and wants the conversation, the other the other way round."""
    AgentProfileFactory(slug="demo")
    owner, other = UserFactory(), UserFactory()
    conversation = turn(owner, "q", "a").conversation
    said = {"id": "u-1", "role": "user", "blocks": [{"type": "text", "text": "And now?"}]}
    failed = ExecutionFactory(
        conversation=conversation,
        agent=conversation.agent,
        base=conversation.head,
        base_version=conversation.version,
        status="failed",
        input=said,
        transcript=[said],
    )

    def written() -> bytes:
        return b"".join(export_all(owner, Form.JSON).pieces)

    taken(other, written())
    mine = Execution.objects.get(conversation__owner=other)
    adopt_recovered(owner, failed.pk)
    newer = written()
    adopting, importing = Event(), Event()

    def then(first: Event, wait: Event | None, work: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any) -> Any:
            first.set()
            assert wait is None or wait.wait(WITHIN)
            return work(*given)

        return step

    monkeypatch.setattr(recovered, "base_of", then(adopting, importing, recovered.base_of))
    monkeypatch.setattr(planting, "note_continued", then(importing, None, planting.note_continued))

    def alone(work: Callable[[], Any]) -> Any:
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(alone, lambda: adopt_recovered(other, mine.pk, as_branch=True))
        assert adopting.wait(WITHIN)
        two = pool.submit(alone, lambda: taken(other, newer))
        assert one.result(WITHIN).created
        assert two.result(WITHIN).updated == 1
