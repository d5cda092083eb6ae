"""Copies of trees."""

from __future__ import annotations

import pytest

from agent.runtime.exceptions import InvalidArgument
from agent.runtime.ids import uuid7
from conversations import store
from conversations.exceptions import CorruptRevision
from conversations.models import Conversation, Revision, RevisionKind, User
from conversations.store import Branch, Node
from tests.conversations.store.writing import model_state, said, state, texts, turn
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug="demo")
    return UserFactory()


@pytest.fixture
def talk(user: User) -> Conversation:
    """Two branches below the first turn; the head is on the second."""
    first = turn(user, "q1", "a1")
    left = turn(user, "q2", "a2", first.conversation)
    store.label_revision(user, first.conversation_id, left.public_id, "left")
    return turn(user, "Q2", "A2", first.conversation, branch=Branch(first.public_id)).conversation


def test_a_branch_is_copied_with_states_and_goes_on_by_itself(user: User, talk: Conversation) -> None:
    left = Revision.objects.get(conversation=talk, label="left")
    copy = store.fork(user, talk.pk, left.public_id)
    assert copy.pk != talk.pk
    assert texts(copy) == ["q1", "a1", "q2", "a2"]
    assert model_state(copy) == "a2"
    assert copy.revisions.count() == 2
    assert not set(copy.revisions.values_list("public_id")) & set(talk.revisions.values_list("public_id"))
    turn(user, "q3", "a3", copy, base_version=copy.version)
    assert texts(talk) == ["q1", "a1", "Q2", "A2"]


def test_all_branches_are_copied_with_their_names(user: User, talk: Conversation) -> None:
    copy = store.fork(user, talk.pk, whole=True, title="Copy")
    assert (copy.title, copy.revisions.count()) == ("Copy", 3)
    left = copy.revisions.get(label="left")
    assert texts(copy) == ["q1", "a1", "Q2", "A2"]
    assert texts(copy, left) == ["q1", "a1", "q2", "a2"]
    assert store.restore(user, copy.pk, left.public_id).version == copy.version + 1


def test_a_copy_of_what_is_damaged_names_the_revision(user: User, talk: Conversation) -> None:
    """R123."""
    Revision.objects.filter(conversation=talk, label="left").update(context=[{"id": 1}])
    with pytest.raises(CorruptRevision, match="revision 2"):
        store.fork(user, talk.pk, whole=True)


def test_an_empty_conversation_is_copied_too(user: User) -> None:
    empty = store.create_conversation(user, title="Nothing yet")
    copy = store.fork(user, empty.pk)
    assert (copy.head, copy.version, copy.title) == (None, 0, "Nothing yet")


def test_a_tree_is_planted_and_grows(user: User, talk: Conversation) -> None:
    root, left = uuid7(), uuid7()
    nodes = [
        Node(None, (said("q1"), said("a1", "assistant")), public_id=root),
        Node(0, (said("q2"),), state("s"), public_id=left, label="left"),
        Node(0, (said("Q2"),)),
    ]
    made = store.plant_tree(user, talk.agent, nodes, head=1, title="Planted")
    assert (texts(made), model_state(made), made.version) == (["q1", "a1", "q2"], "s", 3)
    assert set(made.revisions.values_list("kind", flat=True)) == {RevisionKind.IMPORT}
    (more,) = store.graft(made, [Node(left, (said("a2", "assistant"),))])
    assert texts(made) == ["q1", "a1", "q2"]
    store.move_head(made, more)
    assert texts(made) == ["q1", "a1", "q2", "a2"]
    for parent in (5, uuid7()):
        with pytest.raises(InvalidArgument, match="before its parent"):
            store.graft(made, [Node(parent, ())])


def test_keys_of_planted_revisions_collide_with_none(user: User, talk: Conversation) -> None:
    store.plant_tree(user, talk.agent, [Node(None, (said("x"),)) for _ in range(3)])
    turn(user, "q3", "a3", talk)
    store.plant_tree(user, talk.agent, [Node(None, (said("x"),)), Node(0, (said("y"),))])
    assert texts(talk)[-2:] == ["q3", "a3"]


def test_a_number_that_was_given_is_given_to_no_other(user: User, talk: Conversation) -> None:
    before = talk.version
    rows = store.graft(
        talk, [Node(None, (said("a"),), number=2), Node(0, (said("b"),)), Node(1, (said("c"),), number=9)]
    )
    assert [row.number for row in rows] == [before + 1, before + 2, 9]
    assert turn(user, "q3", "a3", talk).number == 10
