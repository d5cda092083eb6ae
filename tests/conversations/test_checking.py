"""`manage.py check_conversations` finds every kind of damage, says where it is, and changes nothing."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations import checking
from conversations.models import Conversation, Execution, Revision
from conversations.store.inspection import Damage
from tests.damage import answer, call, grow, message, result, write_raw
from tests.factories import ConversationFactory, ExecutionFactory, HostProcessFactory

pytestmark = pytest.mark.django_db

on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL does not store this")


def talked(turns: int = 4) -> Conversation:
    row = ConversationFactory()
    for number in range(1, turns + 1):
        at = f"{row.pk.hex[-6:]}-{number}"
        grow(row, row.head, message(f"q{at}"), call(f"c{at}", at), result(f"r{at}", at), answer(f"a{at}"))
    return row


def revision(row: Conversation, number: int) -> Revision:
    return Revision.objects.get(conversation=row, number=number)


def found() -> list[tuple[str, int | None, str]]:
    """Return all damage in an order that does not depend on ids."""
    damages = checking.check_all(checking.Tally())
    return sorted(((each.kind, each.revision, each.message) for each in damages), key=str)


def run(**options: Any) -> tuple[list[str], str, int]:
    """Return the lines on standard output, the words on the other one, and the exit status."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("check_conversations", stdout=out, stderr=err, **options)
    except CommandError as error:
        return out.getvalue().splitlines(), str(error), error.returncode
    return out.getvalue().splitlines(), err.getvalue(), 0


def test_what_is_whole_is_whole() -> None:
    row = talked()
    grow(row, revision(row, 2), message("q"), answer("other"), label="a try", outcome={"type": "completed"}, usage={})
    grow(row, row.head, message("all"), keyframe=True, model_state={"format": "x", "data": 1})
    ConversationFactory()
    ExecutionFactory(conversation=row, status="failed", base=row.head, transcript=[message("t")])
    ExecutionFactory(host=HostProcessFactory())
    lines, words, status = run()
    assert (lines, status) == ([], 0)
    assert words == "3 conversations with 6 revisions were looked at: no damage.\n"


def test_all_damage_is_told_and_the_exit_status_is_one() -> None:
    first, second = talked(), talked()
    Revision.objects.filter(pk=revision(first, 2).pk).update(context={})
    Conversation.objects.filter(pk=second.pk).update(version=3)
    lines, words, status = run()
    assert sorted(lines) == sorted(
        [
            f"conversation {first.pk}, revision 2: its messages cannot be read",
            f"conversation {second.pk}: its version is 3, but 4 was given already",
        ]
    )
    assert "2 conversations with 8 revisions were looked at: damage in 2 places." in words
    assert status == 1


def test_one_conversation_can_be_looked_at_alone() -> None:
    good, bad = talked(), talked()
    Revision.objects.filter(conversation=bad, number=1).update(context={})
    assert run(conversation=str(good.pk))[2] == 0
    assert run(conversation=str(bad.pk))[2] == 1
    assert run(conversation=str(uuid4()))[2] == 2


def test_programs_get_an_object_a_line() -> None:
    row = talked()
    Revision.objects.filter(pk=revision(row, 2).pk).update(context={})
    lines, _, _ = run(json=True)
    assert [json.loads(line) for line in lines] == [
        {
            "kind": "context",
            "message": "its messages cannot be read",
            "conversation_id": str(row.pk),
            "revision": 2,
            "execution_id": None,
        }
    ]


@pytest.mark.parametrize(
    ("column", "value", "kind"),
    [
        ("context", [7], "context"),
        ("model_state", {"data": 1}, "model-context"),
        ("model_context", [], "model-context"),
        ("usage", [1], "usage"),
        ("outcome", {}, "outcome"),
        ("label", "\ufffd" * 100, ""),
    ],
)
def test_columns_of_a_revision(column: str, value: Any, kind: str) -> None:
    row = talked()
    Revision.objects.filter(pk=revision(row, 3).pk).update(**{column: value})
    assert [(each[0], each[1]) for each in found()] == ([(kind, 3)] if kind else [])


@on_sqlite
@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[" * 5000, b"9" * 5000])
@pytest.mark.parametrize("column", ["context", "model_state", "model_context", "usage", "outcome"])
def test_columns_that_are_no_json(column: str, raw: bytes) -> None:
    """Ids of a message that cannot be read are missed nowhere else."""
    row = talked()
    write_raw(revision(row, 3), column, raw)
    assert [each[1] for each in found()] == [3]


@on_sqlite
@pytest.mark.parametrize("raw", [b"a\x00b", b"\xed\xa0\x80", b"x" * 257, b"\xff"])
def test_titles_and_labels_that_cannot_be_stored(raw: bytes) -> None:
    row = talked()
    write_raw(row, "title", raw)
    write_raw(revision(row, 2), "label", raw)
    assert [each[:2] for each in found()] == [("label", 2), ("title", None)]


@on_sqlite
def test_tags_that_are_no_list_of_texts() -> None:
    write_raw(talked(), "tags", b"[")
    Conversation.objects.filter(pk=talked().pk).update(tags=[1])
    assert [each[0] for each in found()] == ["tags", "tags"]


def test_parents_elsewhere_and_rings() -> None:
    row, other = talked(), talked()
    Revision.objects.filter(pk=revision(row, 2).pk).update(parent=revision(row, 4))
    Revision.objects.filter(pk=revision(other, 3).pk).update(parent=revision(row, 1))
    assert found() == [
        ("parent", 2, "it builds on a revision that is not older than itself"),
        ("parent", 3, f"it builds on a revision of conversation {row.pk}"),
    ]


def test_heads() -> None:
    none, foreign = talked(2), talked(1)
    Conversation.objects.filter(pk=none.pk).update(head=None)
    Conversation.objects.filter(pk=foreign.pk).update(head=none.head)
    assert found() == [
        ("head", None, "it has 2 revisions and no head"),
        ("head", None, f"its head is a revision of conversation {none.pk}"),
    ]


def test_versions_below_what_was_given() -> None:
    low, behind = talked(), talked()
    Conversation.objects.filter(pk=low.pk).update(version=2, head_version=2)
    Conversation.objects.filter(pk=behind.pk).update(head_version=9)
    assert found() == [
        ("version", None, "its version is 2, but 4 was given already"),
        ("version", None, "its version is 4, but 9 was given already"),
    ]


def test_ids_that_repeat_on_a_way_are_told_once_and_on_another_branch_not_at_all() -> None:
    row = talked(2)
    head = row.head
    grow(row, head, message("x"))
    grow(row, row.head, message("x"), call("y", "open"))
    grow(row, row.head, message("z"))
    grow(row, head, message("x"), result("v", "nowhere"))
    assert found() == [
        ("ids", 4, "has a call without its result 'open'"),
        ("ids", 4, "has a second message with the id 'x'"),
        ("ids", 6, "has a result without its call 'nowhere'"),
    ]


def test_executions_that_point_elsewhere_or_cannot_be_read() -> None:
    row, other = talked(1), talked(1)
    run = ExecutionFactory(conversation=row, status="failed", base=other.head, beside=row.head, transcript=[7])
    assert list(checking.check_all(checking.Tally())) == [
        Damage("execution", f"its base is one of conversation {other.pk}", row.pk, execution_id=run.pk),
        Damage("execution", "its transcript cannot be read", row.pk, execution_id=run.pk),
    ]


@on_sqlite
def test_executions_that_are_no_json() -> None:
    run = ExecutionFactory(status="failed")
    for column in ("input", "outcome", "transcript", "calls", "partial", "model_context", "interrupt", "limits"):
        write_raw(run, column, b"\xff")
    assert [each[0] for each in found()] == ["execution"] * 8


@pytest.mark.parametrize("status", ["running", "waiting_input", "pending"])
def test_live_executions_of_processes_that_are_gone(status: str) -> None:
    now = timezone.now()
    silent = HostProcessFactory(heartbeat_at=now - timedelta(minutes=1))
    stopped = HostProcessFactory(stopped_at=now)
    for host in (silent, stopped, None):
        ExecutionFactory(status=status, host=host)
    ExecutionFactory(status=status, host=HostProcessFactory())
    ExecutionFactory(status="completed", host=silent)
    assert [each[2] for each in found()] == [f"it is {status!r}, and its process is gone"] * 3


@pytest.fixture
def no_foreign_keys(transactional_db: None) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA foreign_keys = OFF")
        yield
        cursor.execute("PRAGMA foreign_keys = ON")


@on_sqlite
@pytest.mark.usefixtures("no_foreign_keys")
def test_rows_that_are_missing() -> None:
    row, gone = talked(4), talked(2)
    run = ExecutionFactory(conversation=row, status="failed", base=revision(row, 2))
    Revision.objects.filter(pk=revision(row, 2).pk)._raw_delete("default")
    Revision.objects.filter(pk=revision(row, 4).pk)._raw_delete("default")
    Conversation.objects.filter(pk=gone.pk)._raw_delete("default")
    assert list(checking.check_all(checking.Tally())) == [
        Damage("parent", "the revision that it builds on is missing", row.pk, 3),
        Damage("head", "its head is missing", row.pk),
        Damage("execution", "its base is missing", row.pk, execution_id=run.pk),
        Damage("stray", "its conversation is missing", gone.pk, 1),
        Damage("stray", "its conversation is missing", gone.pk, 2),
    ]


def test_what_is_written_meanwhile_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between reading the conversation and its revisions a turn is saved."""
    row = talked()
    real, raced = checking._revisions, []

    def saved_meanwhile(batch: list[Any]) -> Any:
        if not raced:
            raced.append(grow(row, row.head, message("new")))
        return real(batch)

    monkeypatch.setattr(checking, "_revisions", saved_meanwhile)
    assert found() == []
    assert raced


def test_nothing_is_changed() -> None:
    row = talked()
    Revision.objects.filter(pk=revision(row, 2).pk).update(context={})
    before = [list(model.objects.order_by("pk").values()) for model in (Conversation, Revision, Execution)]
    run()
    assert [list(model.objects.order_by("pk").values()) for model in (Conversation, Revision, Execution)] == before


def test_queries_grow_with_batches_not_with_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for _ in range(2):
        talked(2), talked(2)
        with CaptureQueriesContext(connection) as queries:
            assert found() == []
        counts.append(len(queries))
    assert counts[0] == counts[1]
    monkeypatch.setattr(checking, "BATCH", 1)
    assert found() == []


def test_memory_does_not_grow_with_what_is_stored() -> None:
    """A conversation of large messages is never in memory as a whole."""
    row = ConversationFactory()
    for number in range(60):
        grow(row, row.head, message(f"q{number}", "x" * 500_000))
    tracemalloc.start()
    assert found() == []
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60 * 500_000


def test_a_long_conversation_with_many_branches_is_walked(django_assert_max_num_queries: Any) -> None:
    row = ConversationFactory()
    rows = [
        Revision(pk=100_000 + n, conversation=row, number=n, parent_id=100_000 + n - 1 if n > 1 else None)
        for n in range(1, 3001)
    ]
    rows += [
        Revision(pk=200_000 + n, conversation=row, number=3000 + n, parent_id=100_000 + 10 * n) for n in range(1, 101)
    ]
    for each in rows:
        each.context = [message(f"m{each.number}")]
    Revision.objects.bulk_create(rows, batch_size=500)
    Conversation.objects.filter(pk=row.pk).update(head_id=103_000, version=3100)
    with django_assert_max_num_queries(20):
        assert found() == []
