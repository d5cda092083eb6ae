"""A model state that grows with its conversation is stored as what changed, and comes back whole."""

from __future__ import annotations

import json
from collections import deque
from copy import deepcopy
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from agent.models import AgentProfile
from agent.providers.state import ProviderState
from agent.runtime.messages import ModelContext, ModelState
from agent.runtime.values import freeze
from conversations import store
from conversations.checking import Tally, check_conversation
from conversations.exceptions import CorruptRevision
from conversations.models import Conversation, Revision, User
from conversations.moving.dump import dump
from conversations.store.branching import Branch
from conversations.store.spelling import canonical
from conversations.store.states import change_between, changed, larger_than
from tests.conversations.store.writing import AGENT, DONE, begin, said
from tests.factories import AgentProfileFactory, UserFactory

FORMAT = "test/v1"
SIGNATURE = "signed-" * 60

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))  # such as may be stored
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | texts
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=4)
)


def spelled(value: Any) -> str:
    """Return a text that tells 1 from 1.0 and from true."""
    return json.dumps(value, sort_keys=True)


@given(values, values)
def test_a_change_makes_the_new_value_of_the_old_one(old: Any, new: Any) -> None:
    change = change_between(old, new)
    assert spelled(changed(deepcopy(old), deepcopy(change))) == spelled(new)
    stored = json.loads(json.dumps([old, change]))
    assert spelled(changed(*stored)) == spelled(new)


@given(values, values)
def test_frozen_values_have_the_same_change(old: Any, new: Any) -> None:
    assert spelled(change_between(freeze(old), freeze(new))) == spelled(change_between(freeze(old), new))
    assert spelled(change_between(freeze(new), freeze(new))) == "{}"


@given(values)
def test_a_value_is_never_said_to_be_larger_than_it_is(value: Any) -> None:
    length = len(json.dumps(value, ensure_ascii=False))
    assert not larger_than(value, length + 2)


def test_what_only_grew_costs_what_was_added() -> None:
    old = {"ids": {"a": "1"}, "list": [1, 2], "gone": 1}
    new = {"ids": {"a": "1", "b": "2"}, "list": [1, 2, 3]}
    assert change_between(old, new) == {
        "keys": {"ids": {"keys": {"b": {"value": "2"}}}, "list": {"more": [3]}},
        "gone": ["gone"],
    }


@given(values)
def test_one_spelling_for_a_value_and_for_what_json_makes_of_it(value: Any) -> None:
    assert canonical(value) == canonical(json.loads(json.dumps(value, sort_keys=True))) == canonical(freeze(value))


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug=AGENT)
    return UserFactory()


def more(state: ModelState | None, at: str) -> ModelState | None:
    """Return the state after an answer, as adapters make it."""
    read = ProviderState.read(state, FORMAT, "issuer")
    extras = [{"type": "reasoning", "signature": f"{at}-{SIGNATURE}", "weight": 1e16, "part": 0.5}]
    return read.plus({f"call_{at}": f"toolu_{at}"}, f"message-{at}", extras).to_model_state(FORMAT)


def answered(user: User, at: str, conversation: Conversation | None = None, **given: Any) -> Revision:
    """Save a turn as the host does it."""
    execution = begin(user, f"q{at}", conversation, **given)
    base = store.base_of(execution)
    context = ModelContext(model_state=more(base.context.model_context.model_state, at))
    return store.save_turn(execution, (said(f"q{at}"), said(f"a{at}", "assistant")), context, DONE, base=base.state)


def talked(user: User, turns: int) -> Conversation:
    row = answered(user, "1").conversation
    for at in range(2, turns + 1):
        row = answered(user, str(at), row).conversation
    return row


def expected(*names: str) -> Any:
    state: ModelState | None = None
    for name in names:
        state = more(state, name)
    return state.to_wire() if state is not None else None


def state_at(row: Conversation, number: int) -> Any:
    state = store.load_context(row, revision(row, number)).model_context.model_state
    return state.to_wire() if state is not None else None


def revision(row: Conversation, number: int) -> Revision:
    return Revision.objects.get(conversation=row, number=number)


def size(row: Revision) -> int:
    return len(json.dumps(row.model_state))


def damages(row: Conversation) -> list[tuple[str, int | None]]:
    return [(each.kind, each.revision) for each in check_conversation(row.pk, Tally())]


pytestmark = pytest.mark.django_db


def test_the_state_of_any_revision_is_whole_again(user: User) -> None:
    row = talked(user, 12)
    for number in range(1, 13):
        assert state_at(row, number) == expected(*map(str, range(1, number + 1)))
    assert damages(row) == []


def test_a_turn_stores_as_much_as_any_other(user: User) -> None:
    row = talked(user, 25)
    assert size(revision(row, 25)) <= size(revision(row, 12)) + 40
    assert size(revision(row, 25)) < len(json.dumps(expected(*map(str, range(1, 26))))) / 10


def test_two_queries_load_a_state_of_many_changes(user: User) -> None:
    row = talked(user, 8)
    with CaptureQueriesContext(connection) as queries:
        store.load_context(row, row.head)
    assert len(queries) == 2


def test_branches_build_on_the_state_where_they_begin(user: User) -> None:
    row = talked(user, 6)
    fourth = revision(row, 4)
    answered(user, "left", row, branch=Branch(revision_id=fourth.public_id))
    answered(user, "right", row, branch=Branch(revision_id=fourth.public_id))
    assert state_at(row, 7) == expected("1", "2", "3", "4", "left")
    assert state_at(row, 8) == expected("1", "2", "3", "4", "right")
    assert "change" in (revision(row, 8).model_state or {})
    assert damages(row) == []


def test_a_state_of_another_revision_is_nothing_to_build_on(user: User) -> None:
    row = talked(user, 5)
    execution = begin(user, "q", row)
    other = store.load_path(row, revision(row, 3))
    state = more(other.model_context.model_state, "new")
    messages = (said("q"), said("a", "assistant"))
    saved = store.save_turn(execution, messages, ModelContext(model_state=state), DONE, base=other.state)
    assert "data" in (saved.model_state or {})
    assert state_at(row, 6) == expected("1", "2", "3", "new")


def test_a_state_that_is_another_one_altogether_is_stored_whole(user: User) -> None:
    row = talked(user, 5)
    execution = begin(user, "q", row)
    base = store.base_of(execution).state
    for state in (more(None, "new"), ModelState(format="other/v1", data={"x": [SIGNATURE] * 4})):
        assert state is not None
        assert store.chains.stored_state(state, base) == state.to_wire()


def test_a_state_that_keeps_its_size_is_whole_from_time_to_time(user: User) -> None:
    """Else what is read to get at it would grow without end."""
    row, state, kinds = talked(user, 8), None, []
    for at in range(40):
        execution = begin(user, "q", row)
        base = store.base_of(execution)
        found = base.context.model_context.model_state
        assert found is not None
        extras = dict(found.data["extras"])
        extras[min(extras)] = [{"signature": f"{at}-{SIGNATURE}"}]
        state = ModelState(format=FORMAT, data={**found.data, "extras": extras})
        messages = (said("q"), said("a", "assistant"))
        saved = store.save_turn(execution, messages, ModelContext(model_state=state), DONE, base=base.state)
        kinds.append("change" in (saved.model_state or {}))
        row = saved.conversation
    assert kinds.count(False) in range(1, 4)
    assert state is not None
    assert state_at(row, 48) == state.to_wire()


def test_a_fork_has_the_same_states_in_as_much_room(user: User) -> None:
    row = talked(user, 9)
    answered(user, "left", row, branch=Branch(revision_id=revision(row, 4).public_id))
    for whole in (False, True):
        copy = store.fork(user, row.pk, revision(row, 9).public_id, whole=whole)
        assert state_at(copy, 9) == expected(*map(str, range(1, 10)))
        assert size(revision(copy, 9)) == size(revision(row, 9))
        assert damages(copy) == []
        later = answered(user, "later", copy)
        assert state_at(copy, later.number) == expected(*map(str, range(1, 10)), "later")


def test_an_export_holds_every_state_whole(user: User) -> None:
    row = talked(user, 7)
    answered(user, "left", row, branch=Branch(revision_id=revision(row, 4).public_id))
    file = json.loads(
        b"".join(dump([Conversation.objects.select_related("head", "agent").get(pk=row.pk)], strict=True))
    )
    exported = [each["modelContext"]["modelState"] for each in file["conversations"][0]["revisions"]]
    names = [[str(at) for at in range(1, number + 1)] for number in range(1, 8)] + [["1", "2", "3", "4", "left"]]
    assert exported == [json.loads(json.dumps(expected(*each))) for each in names]
    Revision.objects.filter(conversation=row, number=2).update(model_state={"format": "f", "data": 1})
    with pytest.raises(CorruptRevision):
        deque(dump([row], strict=True), maxlen=0)


def test_planted_revisions_build_on_one_another(user: User) -> None:
    contexts: list[ModelContext] = []
    for at in range(20):
        contexts.append(ModelContext(model_state=more(contexts[-1].model_state if contexts else None, str(at))))
    nodes = [store.Node(at - 1 if at else None, (said(str(at)),), context) for at, context in enumerate(contexts)]
    row = store.plant_tree(user, AgentProfile.objects.get(), nodes)
    assert size(revision(row, 20)) <= size(revision(row, 10)) + 40
    assert [state_at(row, at + 1) for at in range(20)] == [expected(*map(str, range(at + 1))) for at in range(20)]
    assert damages(row) == []


@pytest.mark.parametrize(
    ("number", "damage", "named"),
    [
        (2, lambda stored: stored["data"]["callIds"].update(call_1="forged"), 3),
        (3, lambda stored: stored["change"]["keys"]["data"].update(gone=["callIds"]), 3),
        (3, lambda stored: stored.update(digest="0" * 64), 3),
        (3, lambda stored: stored.update(change=7), 3),
        (3, lambda stored: stored.pop("digest"), 3),
        (6, lambda stored: stored.update(since=99), 6),
        (6, lambda stored: stored.update(since="1"), 6),
        (6, lambda stored: stored.pop("size"), 6),
    ],
)
def test_damage_names_the_revision_and_gives_no_other_state(user: User, number: int, damage: Any, named: int) -> None:
    row = talked(user, 6)
    broken = revision(row, number)
    assert ("change" in (broken.model_state or {})) == (number > 2)
    damage(broken.model_state)
    broken.save()
    with pytest.raises(CorruptRevision, match=f"revision {named} "):
        store.load_context(row, revision(row, 6))
    assert damages(row) == [("model-context", named)]
    with pytest.raises(CorruptRevision):
        store.fork(user, row.pk)


def test_a_part_that_is_not_there_is_named(user: User) -> None:
    row = talked(user, 6)
    Revision.objects.filter(pk=revision(row, 3).pk).update(model_state=None)
    with pytest.raises(CorruptRevision, match="the model context of revision 3 cannot be read"):
        store.load_context(row, row.head)
    assert damages(row) == [("model-context", 4)]


def test_a_state_may_be_dropped_and_begins_anew(user: User) -> None:
    row = talked(user, 5)
    store.reset_model_state(user, row.pk, known=5)
    row.refresh_from_db()
    assert state_at(row, 6) is None
    answered(user, "again", row)
    answered(user, "more", row)
    answered(user, "most", row)
    assert state_at(row, 9) == expected("again", "more", "most")
