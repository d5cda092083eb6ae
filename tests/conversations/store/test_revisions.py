"""The head moves, branches are named, model states are dropped: nothing is ever lost."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent.runtime.exceptions import InvalidState
from conversations import store
from conversations.exceptions import ConversationConflict, ConversationNotFound, RevisionNotFound
from conversations.models import Conversation, Revision, RevisionKind, User
from conversations.store import Branch
from tests.conversations.store.writing import DONE, begin, model_state, said, state, texts, turn
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug="demo")
    return UserFactory()


@pytest.fixture
def talk(user: User) -> Conversation:
    conversation = turn(user, "q1", "a1").conversation
    return turn(user, "q2", "a2", conversation).conversation


def revision(conversation: Conversation, number: int) -> Revision:
    return Revision.objects.get(conversation=conversation, number=number)


def test_restoring_moves_the_head_and_deletes_nothing(user: User, talk: Conversation) -> None:
    first = revision(talk, 1)
    restored = store.restore(user, talk.pk, first.public_id, known=talk.version)
    assert (restored.head, restored.version) == (first, 3)
    assert texts(talk) == ["q1", "a1"]
    assert model_state(talk) == "a1"
    back = store.restore(user, talk.pk, revision(talk, 2).public_id)
    assert back.version == 4
    assert texts(talk) == ["q1", "a1", "q2", "a2"]


def test_a_branch_is_taken_up_where_it_ended(user: User, talk: Conversation) -> None:
    left = revision(talk, 2)
    end = turn(user, "q3", "a3", talk)
    right = turn(user, "Q2", "A2", talk, branch=Branch(revision(talk, 1).public_id))
    assert store.restore(user, talk.pk, left.public_id, newest=True).head == end
    assert store.restore(user, talk.pk, right.public_id, newest=True).head == right


def test_the_version_never_falls_and_what_was_seen_before_is_stale(user: User, talk: Conversation) -> None:
    """R127: also after going back, no old version counts as the present one."""
    seen = talk.version
    store.restore(user, talk.pk, revision(talk, 1).public_id)
    store.restore(user, talk.pk, revision(talk, 2).public_id)
    with pytest.raises(ConversationConflict) as caught:
        begin(user, "q3", talk, base_version=seen)
    assert caught.value.current_revision == seen + 2


def test_a_stale_change_is_refused(user: User, talk: Conversation) -> None:
    """R127."""
    store.change_conversation(user, talk.pk, store.Changes(pinned=True))
    for change in (
        lambda: store.restore(user, talk.pk, revision(talk, 1).public_id, known=2),
        lambda: store.label_revision(user, talk.pk, revision(talk, 1).public_id, "x", known=2),
        lambda: store.reset_model_state(user, talk.pk, known=2),
        lambda: store.change_conversation(user, talk.pk, store.Changes(title="x"), known=2),
    ):
        with pytest.raises(ConversationConflict) as caught:
            change()
        assert caught.value.current_revision == 3


def test_while_a_run_is_live_the_head_stays(user: User, talk: Conversation) -> None:
    begin(user, "q3", talk)
    for change in (
        lambda: store.restore(user, talk.pk, revision(talk, 1).public_id),
        lambda: store.reset_model_state(user, talk.pk, known=2),
        lambda: store.put_conversation(user, talk.pk, "t", 2, store.load_context(talk, None)),
    ):
        with pytest.raises(InvalidState, match="another answer"):
            change()
    talk.refresh_from_db()
    assert talk.version == 2


def test_a_reset_is_a_revision_also_where_there_was_nothing_to_drop(user: User, talk: Conversation) -> None:
    """E3."""
    reset = store.reset_model_state(user, talk.pk, known=2)
    assert (reset.version, model_state(talk)) == (3, None)
    assert store.reset_model_state(user, talk.pk, known=3).version == 4
    assert texts(talk) == ["q1", "a1", "q2", "a2"]
    assert [row.kind for row in Revision.objects.filter(conversation=talk, number__gt=2)] == [RevisionKind.RESET] * 2
    turn(user, "q3", "a3", talk)
    assert texts(talk)[-2:] == ["q3", "a3"]


def test_a_branch_has_a_name_until_it_is_taken_away(user: User, talk: Conversation) -> None:
    first = revision(talk, 1)
    conversation, named = store.label_revision(user, talk.pk, first.public_id, "the first try")
    assert (conversation.version, named.label) == (3, "the first try")
    store.label_revision(user, talk.pk, first.public_id, None)
    assert revision(talk, 1).label == ""


def test_somebody_elses_looks_like_none(user: User, talk: Conversation) -> None:
    """R125, B77."""
    stranger = UserFactory()
    first = revision(talk, 1)
    with pytest.raises(ConversationNotFound) as foreign:
        store.restore(stranger, talk.pk, first.public_id)
    unknown = uuid4()
    with pytest.raises(ConversationNotFound) as missing:
        store.restore(stranger, unknown, first.public_id)
    assert str(foreign.value).replace(str(talk.pk), "x") == str(missing.value).replace(str(unknown), "x")
    mine = turn(user, "x", "y").conversation
    with pytest.raises(RevisionNotFound):
        store.restore(user, mine.pk, first.public_id)


def test_a_turn_costs_the_same_statements_however_long_the_conversation(user: User, talk: Conversation) -> None:
    def cost() -> int:
        execution = begin(user, "q", talk)
        with CaptureQueriesContext(connection) as queries:
            store.save_turn(execution, (said("q"), said("a", "assistant")), state(1), DONE)
        return len(queries)

    first = cost()
    for _ in range(5):
        turn(user, "q", "a", talk)
    assert cost() == first
