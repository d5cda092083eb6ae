"""Turns that begin elsewhere than at the head: siblings with model states of their own."""

from __future__ import annotations

import pytest

from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import AgentMessage, Context
from conversations import store
from conversations.exceptions import ConversationConflict, RevisionNotFound
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
    """Two turns."""
    conversation = turn(user, "q1", "a1").conversation
    return turn(user, "q2", "a2", conversation).conversation


def message(conversation: Conversation, text: str) -> AgentMessage:
    context = store.load_context(conversation, conversation.head)
    return next(each for each in context.messages if each.text == text)


def test_an_edited_message_makes_a_sibling_and_leaves_everything_there(user: User, talk: Conversation) -> None:
    old = talk.head
    assert old is not None
    new = turn(user, "q2, better", "a2, better", talk, branch=Branch(edit=message(talk, "q2").id))
    assert (new.kind, new.parent, new.keyframe) == (RevisionKind.EDIT, old.parent, False)
    assert texts(talk) == ["q1", "a1", "q2, better", "a2, better"]
    assert texts(talk, old) == ["q1", "a1", "q2", "a2"]
    assert (model_state(talk), model_state(talk, old)) == ("a2, better", "a2")


def test_an_answer_is_made_again_for_the_same_message_with_the_state_before_it(user: User, talk: Conversation) -> None:
    question, old = message(talk, "q2"), talk.head
    assert old is not None
    for asked in (question, message(talk, "a2")):
        execution = begin(user, None, talk, branch=Branch(old.public_id, regenerate=asked.id))
        assert AgentMessage.from_wire(execution.input) == question
        base = store.base_of(execution).context
        assert [each.text for each in base.messages] == ["q1", "a1"]
        assert base.model_context == state("a1")
        revision = store.save_turn(execution, (question, said("again", "assistant")), state("again"), DONE)
        assert revision.kind == RevisionKind.REGENERATE
        talk = revision.conversation
    assert texts(talk) == ["q1", "a1", "q2", "again"]
    assert Revision.objects.filter(parent__number=1).count() == 3


def test_the_first_message_can_be_edited_too(user: User, talk: Conversation) -> None:
    new = turn(user, "Q1", "A1", talk, branch=Branch(edit=message(talk, "q1").id))
    assert new.parent is None
    assert texts(talk) == ["Q1", "A1"]


def test_a_turn_goes_on_from_any_revision(user: User, talk: Conversation) -> None:
    first = Revision.objects.get(conversation=talk, number=1)
    new = turn(user, "other", "way", talk, branch=Branch(first.public_id))
    assert (new.parent, new.kind) == (first, RevisionKind.TURN)
    assert texts(talk) == ["q1", "a1", "other", "way"]


def test_a_message_in_the_middle_of_a_keyframe_can_be_edited(user: User, talk: Conversation) -> None:
    messages = (said("k1"), said("k2", "assistant"), said("k3"), said("k4", "assistant"))
    saved = store.put_conversation(user, talk.pk, "t", talk.version, Context(messages=messages))
    keyframe = saved.head
    assert keyframe is not None
    assert keyframe.keyframe
    new = turn(user, "K3", "K4", saved, branch=Branch(edit=messages[2].id))
    assert (new.keyframe, new.parent) == (True, keyframe.parent)
    assert texts(talk) == ["k1", "k2", "K3", "K4"]
    assert texts(talk, keyframe) == ["k1", "k2", "k3", "k4"]
    assert texts(talk, keyframe.parent) == ["q1", "a1", "q2", "a2"]


def test_of_a_turn_that_is_cut_in_its_middle_no_model_state_is_known(user: User, talk: Conversation) -> None:
    recovered = (said("r1"), said("r2", "assistant"), said("r3"), said("r4", "assistant"))
    head = talk.head
    assert head is not None
    store.append_revision(talk, RevisionKind.TURN, recovered, state("r"), parent_id=head.pk, known=None)
    execution = begin(user, "R3", talk, branch=Branch(edit=recovered[2].id))
    context = store.base_of(execution).context
    assert [each.text for each in context.messages] == ["q1", "a1", "q2", "a2", "r1", "r2"]
    assert context.model_context.model_state is None
    store.save_turn(execution, (said("R3"), said("R4", "assistant")), state("R"), DONE)
    assert texts(talk) == ["q1", "a1", "q2", "a2", "r1", "r2", "R3", "R4"]


def test_what_is_not_on_the_branch_cannot_be_edited(user: User, talk: Conversation) -> None:
    other = turn(user, "x", "y").conversation
    with pytest.raises(InvalidArgument, match="no message"):
        begin(user, "x", talk, branch=Branch(edit=message(other, "x").id))
    with pytest.raises(InvalidArgument, match="only a message of a person"):
        begin(user, "x", talk, branch=Branch(edit=message(talk, "a2").id))
    assert other.head is not None
    with pytest.raises(RevisionNotFound):
        begin(user, "x", talk, branch=Branch(other.head.public_id))


def test_a_base_is_fresh_as_long_as_the_head_has_not_moved(user: User, talk: Conversation) -> None:
    """B66: a rename elsewhere costs nobody a turn, a turn elsewhere is a conflict."""
    seen = talk.version
    renamed = store.change_conversation(user, talk.pk, store.Changes(title="Renamed"))
    assert renamed.version == seen + 1
    execution = begin(user, "q3", talk, base_version=seen)
    store.save_turn(execution, (said("q3"),), state(1), DONE)
    with pytest.raises(ConversationConflict) as caught:
        begin(user, "q4", talk, base_version=seen)
    assert caught.value.current_revision == seen + 2
    with pytest.raises(ConversationConflict):
        begin(user, "q4", talk, base_version=seen + 40)
