from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations import store
from conversations.exceptions import CorruptRevision
from conversations.models import Conversation, Revision
from tests.factories import ConversationFactory

pytestmark = pytest.mark.django_db


def message(text: str, role: str = "user") -> dict[str, Any]:
    return {"id": f"message-{text}", "role": role, "blocks": [{"type": "text", "text": text}]}


def grow(conversation: Conversation, parent: Revision | None, *texts: str, **given: Any) -> Revision:
    number = conversation.revisions.count() + 1
    return Revision.objects.create(
        conversation=conversation, parent=parent, number=number, context=[message(text) for text in texts], **given
    )


def texts(conversation: Conversation, tip: Revision | None) -> list[str]:
    return [message.text for message in store.load_context(conversation, tip).messages]


@pytest.fixture
def conversation() -> Conversation:
    return ConversationFactory()


def test_without_a_revision_the_context_is_empty(conversation: Conversation) -> None:
    context = store.load_context(conversation, None)
    assert context.messages == ()
    assert context.model_context.model_state is None


def test_each_branch_has_its_own_messages_and_state(conversation: Conversation) -> None:
    root = grow(conversation, None, "a", "b", model_state={"format": "x", "data": 1})
    left = grow(conversation, root, "c", model_state={"format": "x", "data": 2})
    right = grow(conversation, root, "d")
    end = grow(conversation, left, "e", model_state={"format": "x", "data": [3]})
    assert texts(conversation, end) == ["a", "b", "c", "e"]
    assert texts(conversation, right) == ["a", "b", "d"]
    state = store.load_context(conversation, end).model_context.model_state
    assert state is not None
    assert state.to_wire() == {"format": "x", "data": (3,)}
    assert store.load_context(conversation, right).model_context.model_state is None


def test_a_keyframe_holds_everything_before_it(conversation: Conversation) -> None:
    old = grow(conversation, None, "a", "b")
    whole = grow(conversation, old, "A", keyframe=True)
    assert texts(conversation, grow(conversation, whole, "c")) == ["A", "c"]


@pytest.mark.parametrize("turns", [1, 60])
def test_two_queries_load_any_length(conversation: Conversation, turns: int) -> None:
    tip = None
    for turn in range(turns):
        tip = grow(conversation, tip, str(turn))
    with CaptureQueriesContext(connection) as queries:
        assert texts(conversation, tip) == [str(turn) for turn in range(turns)]
    assert len(queries) == 2


def test_a_body_that_cannot_be_read_is_named(conversation: Conversation) -> None:
    """R123: never an empty or shortened history instead."""
    root = grow(conversation, None, "a")
    tip = grow(conversation, root, "b")
    for broken in ([{"nonsense": 1}], {"not": "a list"}, [7], None):
        Revision.objects.filter(pk=root.pk).update(context=broken if broken is not None else "null")
        with pytest.raises(CorruptRevision, match="revision 1 "):
            store.load_context(conversation, tip)


def test_a_state_that_cannot_be_read_is_named(conversation: Conversation) -> None:
    """R123."""
    tip = grow(conversation, None, "a", model_state={"data": 1})
    with pytest.raises(CorruptRevision, match="revision 1 "):
        store.load_context(conversation, tip)


def test_a_missing_ancestor_is_named(conversation: Conversation) -> None:
    """R123: a parent of another conversation is as good as none."""
    foreign = grow(ConversationFactory(), None, "x")
    tip = grow(conversation, foreign, "b")
    with pytest.raises(CorruptRevision, match="revision 1 builds on"):
        store.load_context(conversation, tip)
    with pytest.raises(CorruptRevision, match="the conversation builds on"):
        store.load_context(conversation, foreign)


def test_a_ring_of_revisions_is_found_out(conversation: Conversation) -> None:
    root = grow(conversation, None, "a")
    tip = grow(conversation, root, "b")
    Revision.objects.filter(pk=root.pk).update(parent=tip)
    with pytest.raises(CorruptRevision):
        store.load_context(conversation, tip)
