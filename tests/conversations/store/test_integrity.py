"""Damage of what is stored is an error that names the revision, never another copy of history (R123)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from conversations import store
from conversations.exceptions import CorruptRevision
from conversations.models import ApiToken, Conversation, Execution, Revision
from tests.damage import answer, call, grow, message, result, write_raw
from tests.factories import ConversationFactory, ExecutionFactory

pytestmark = pytest.mark.django_db

on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL stores no text that is no JSON")


@pytest.fixture
def conversation() -> Conversation:
    """Four turns: the second is the one that tests damage."""
    row = ConversationFactory()
    for number in range(1, 5):
        grow(row, row.head, message(f"q{number}"), answer(f"a{number}"))
    return row


def load(row: Conversation) -> Any:
    found = Conversation.objects.select_related("head").get(pk=row.pk)
    return store.load_context(found, found.head)


NO_JSON = [b"", b"{", b'[{"id": "q2"', b"\xff\xfe[]", b"[" * 100_000, b"[" + b"9" * 5_000 + b"]"]


@on_sqlite
@pytest.mark.parametrize("column", ["context", "model_state", "model_context"])
@pytest.mark.parametrize("raw", NO_JSON, ids=["empty", "brace", "cut", "no UTF-8", "deep", "digits"])
def test_text_that_is_no_json_is_named(conversation: Conversation, column: str, raw: bytes) -> None:
    number = 2 if column == "context" else 4  # only the tip's model context counts
    write_raw(Revision.objects.get(conversation=conversation, number=number), column, raw)
    with pytest.raises(CorruptRevision, match=f"revision {number} "):
        load(conversation)


@on_sqlite
def test_damage_beside_the_path_harms_nobody(conversation: Conversation) -> None:
    head = conversation.head
    beside = grow(conversation, Revision.objects.get(conversation=conversation, number=2), message("other"), head=False)
    later = grow(conversation, head, message("q6"))
    write_raw(beside, "context", b"\xff{")
    assert load(conversation).messages[-1].id == "q6"
    assert later.pk > beside.pk


@pytest.mark.parametrize("stored", [{}, "", "[]", 0, None, {"messages": []}, [[]], [7], [{"id": "x"}], [None]])
def test_what_is_no_list_of_messages_is_named(conversation: Conversation, stored: Any) -> None:
    """An empty object or text must not pass for a revision that adds nothing."""
    Revision.objects.filter(conversation=conversation, number=2).update(context=stored if stored is not None else "")
    with pytest.raises(CorruptRevision, match="the messages of revision 2 cannot be read"):
        load(conversation)


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        ("model_state", {"data": 1}),
        ("model_state", {"format": "x", "data": 1, "more": 2}),
        ("model_state", [1]),
        ("model_context", []),
        ("model_context", {"checkpoint": 1}),
        ("model_context", {"unknown": None}),
    ],
)
def test_a_model_context_of_the_wrong_shape_is_named(conversation: Conversation, column: str, stored: Any) -> None:
    Revision.objects.filter(conversation=conversation, number=4).update(**{column: stored})
    with pytest.raises(CorruptRevision, match="the model context of revision 4 cannot be read"):
        load(conversation)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ([message("q1")], "revision 5 has a second message with the id 'q1'"),
        ([message("new"), message("new")], "revision 5 has a second message with the id 'new'"),
        ([call("c", "x"), call("d", "x")], "revision 5 has a second call with the id 'x'"),
        ([result("r", "x")], "revision 5 has a result without its call 'x'"),
        ([call("c", "x"), result("r", "x"), result("s", "x")], "revision 5 has a second result with the id 'x'"),
    ],
)
def test_ids_that_do_not_add_up_are_named(conversation: Conversation, context: list[Any], words: str) -> None:
    grow(conversation, conversation.head, *context)
    with pytest.raises(CorruptRevision) as caught:
        load(conversation)
    assert caught.value.message == words


def test_the_same_ids_on_two_branches_are_no_damage(conversation: Conversation) -> None:
    """A fork, or an answer made again, repeats what it keeps."""
    second = Revision.objects.get(conversation=conversation, number=2)
    grow(conversation, second, message("q3"), answer("another"))
    assert [each.id for each in load(conversation).messages] == ["q1", "a1", "q2", "a2", "q3", "another"]
    grow(conversation, conversation.head, message("q1"), keyframe=True)
    assert [each.id for each in load(conversation).messages] == ["q1"]


def test_a_tip_of_another_conversation_is_named(conversation: Conversation) -> None:
    foreign = grow(ConversationFactory(), None, message("x"))
    with pytest.raises(CorruptRevision, match="revision 1, which the conversation builds on, is not one of its own"):
        store.load_context(conversation, foreign)


def test_a_ring_is_named_by_both_ends(conversation: Conversation) -> None:
    rows = {row.number: row for row in Revision.objects.filter(conversation=conversation)}
    Revision.objects.filter(pk=rows[2].pk).update(parent=rows[4])
    with pytest.raises(CorruptRevision, match="revision 2 builds on revision 4, which is not older"):
        load(conversation)


def test_a_good_context_still_takes_two_queries(conversation: Conversation) -> None:
    row = Conversation.objects.select_related("head").get(pk=conversation.pk)
    with CaptureQueriesContext(connection) as queries:
        store.load_context(row, row.head)
    assert len(queries) == 2


@pytest.fixture
def damaged(conversation: Conversation) -> Conversation:
    Revision.objects.filter(conversation=conversation, number=2).update(context=[{"broken": True}])
    return conversation


def test_the_page_says_which_revision_it_is(client: Client, damaged: Conversation) -> None:
    client.force_login(damaged.owner)
    shown = client.get(f"/c/{damaged.pk}/")
    assert shown.status_code == 200
    page = shown.content.decode()
    assert "REVISION_CORRUPT: the messages of revision 2 cannot be read." in page
    assert 'data-message-id="a4"' not in page
    assert client.get("/").status_code == 200


def test_the_page_names_a_stopped_turn_that_cannot_be_read(client: Client, conversation: Conversation) -> None:
    run = ExecutionFactory(conversation=conversation, base=conversation.head, status="failed", transcript=[7])
    client.force_login(conversation.owner)
    assert f"what execution {run.pk} said cannot be read" in client.get(f"/c/{conversation.pk}/").content.decode()


def test_http_says_which_revision_it_is(client: Client, damaged: Conversation) -> None:
    _, token = ApiToken.issue(damaged.owner, "test")
    answered = client.get(f"/ai/conversations/{damaged.pk}", headers={"Authorization": f"Bearer {token}"})
    assert answered.json()["error"] == {
        "code": "REVISION_CORRUPT",
        "message": "the messages of revision 2 cannot be read",
    }


@on_sqlite
def test_a_row_with_a_damaged_column_can_be_loaded_and_the_column_says_so(conversation: Conversation) -> None:
    write_raw(conversation.head, "outcome", b"\xff")
    row = Conversation.objects.select_related("head").get(pk=conversation.pk)
    assert row.head is not None
    assert row.head.context[0]["id"] == "q4"
    with pytest.raises(CorruptRevision, match="the outcome of revision 4 cannot be read"):
        _ = row.head.outcome
    row.head.label = "kept"
    row.head.save()  # leaves alone what it could not read
    run = ExecutionFactory(conversation=conversation, status="failed")
    write_raw(run, "transcript", b"{")
    with pytest.raises(CorruptRevision, match=r"the transcript of .* cannot be read"):
        _ = Execution.objects.get(pk=run.pk).transcript


def test_json_is_still_json(conversation: Conversation) -> None:
    """The column is Django's, with its lookups."""
    Revision.objects.filter(conversation=conversation, number=3).update(outcome={"type": "max-tokens", "n": 5})
    rows = Revision.objects.filter(outcome__type="max-tokens")
    assert list(rows.values_list("outcome__type", "outcome__n")) == [("max-tokens", 5)]
    row = rows.defer("outcome").get()
    assert row.outcome == {"type": "max-tokens", "n": 5}
