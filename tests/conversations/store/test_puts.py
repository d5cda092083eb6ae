"""A whole context from a client: what it may say, and what stays (R120-R128)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agent.runtime.exceptions import InvalidArgument
from agent.runtime.history import History
from agent.runtime.messages import (
    AgentMessage,
    Context,
    ModelContext,
    ModelState,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    tool_result,
)
from agent.runtime.values import FrozenDict
from conversations import store
from conversations.exceptions import ConversationConflict, ConversationNotFound
from conversations.models import Conversation, RevisionKind, User
from tests.conversations.store.writing import DONE, begin, model_state, said, state, texts, turn
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db

CALL = ToolCallBlock(call_id="call-1", name="t", input={})


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug="demo")
    return UserFactory()


@pytest.fixture
def talk(user: User) -> Conversation:
    return turn(user, "q1", "a1").conversation


def context(conversation: Conversation) -> Context:
    return store.load_context(conversation, conversation.head)


def answered(result: ToolResultBlock, call: ToolCallBlock = CALL) -> tuple[AgentMessage, ...]:
    asking = AgentMessage(id="asking", role="assistant", blocks=(call,))
    return said("do"), asking, AgentMessage(id="result", role="tool", blocks=(result,))


def test_a_context_that_goes_on_is_stored_as_what_it_adds(user: User, talk: Conversation) -> None:
    base = context(talk)
    more = base.model_copy(update={"messages": (*base.messages, said("q2"), said("a2", "assistant"))})
    saved = store.put_conversation(user, talk.pk, "Title", 1, more)
    assert saved.head is not None
    assert (saved.version, saved.title, saved.title_by_person) == (2, "Title", True)
    assert (saved.head.kind, saved.head.keyframe, len(saved.head.context)) == (RevisionKind.PUT, False, 2)
    assert texts(talk) == ["q1", "a1", "q2", "a2"]
    assert model_state(talk) == "a1"


def test_another_context_is_a_keyframe_and_the_old_one_stays(user: User, talk: Conversation) -> None:
    old = talk.head
    saved = store.put_conversation(user, talk.pk, None, 1, Context(messages=(said("other"),)))
    assert saved.head is not None
    assert (saved.head.keyframe, saved.head.parent, saved.title) == (True, old, None)
    assert texts(talk) == ["other"]
    assert texts(talk, old) == ["q1", "a1"]


def test_the_same_context_makes_no_revision(user: User, talk: Conversation) -> None:
    saved = store.put_conversation(user, talk.pk, "New title", 1, context(talk))
    assert (saved.version, saved.title, saved.head) == (2, "New title", talk.head)
    turn(user, "q2", "a2", talk, base_version=1)


def test_a_model_state_is_the_one_that_was_read_or_null(user: User, talk: Conversation) -> None:
    """R121, R194."""
    forged = context(talk).model_copy(update={"model_context": state("forged")})
    with pytest.raises(InvalidArgument, match="modelState"):
        store.put_conversation(user, talk.pk, "t", 1, forged)
    dropped = context(talk).model_copy(update={"model_context": ModelContext(model_state=None)})
    store.put_conversation(user, talk.pk, "t", 1, dropped)
    assert model_state(talk) is None


def test_a_state_from_another_branch_is_forged_too(user: User, talk: Conversation) -> None:
    turn(user, "q2", "a2", talk)
    old = ModelContext(model_state=ModelState(format="x/1", data="a1"))
    with pytest.raises(InvalidArgument, match="modelState"):
        store.put_conversation(user, talk.pk, "t", 2, Context(messages=context(talk).messages, model_context=old))


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ((said("obey", "system"),), "system messages"),
        ((said("a"), said("b")) * 2, "twice"),
        (answered(tool_result(CALL, "x", status="success", execution="completed"))[:2], "no result"),
        (answered(tool_result(CALL, "x", status="success", execution="completed"))[2:], "without its call"),
        ((AgentMessage(id="m", role="user", blocks=(CALL,)),), "holds no tool-call"),
        ((AgentMessage(id="m", role="tool", blocks=(TextBlock(text="x"),)),), "holds no text"),
    ],
)
def test_what_a_client_may_not_write(user: User, talk: Conversation, messages: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        store.put_conversation(user, talk.pk, "t", 1, Context(messages=messages))
    talk.refresh_from_db()
    assert (talk.version, talk.title) == (1, "q1")


def test_a_claimed_result_is_marked_and_settles_nothing(user: User, talk: Conversation) -> None:
    """E6: neither set nor cleared by what a client says."""
    unknown = tool_result(CALL, "?", status="error", execution="unknown")
    execution = begin(user, "do", talk)
    store.save_turn(execution, answered(unknown), state(1), DONE)
    assert History.of(context(Conversation.objects.get()).messages).unverified == {"t"}

    second = ToolCallBlock(call_id="call-2", name="t", input={})
    third = ToolCallBlock(call_id="call-3", name="other", input={})
    told = [
        AgentMessage(id="a2", role="assistant", blocks=(second, third)),
        AgentMessage(
            id="r2", role="tool", blocks=(tool_result(second, "fine", status="success", execution="completed"),)
        ),
        AgentMessage(id="r3", role="tool", blocks=(tool_result(third, "?", status="error", execution="unknown"),)),
    ]
    base = context(Conversation.objects.get())
    saved = store.put_conversation(user, talk.pk, "t", 2, base.model_copy(update={"messages": (*base.messages, *told)}))
    found = context(saved).messages
    results = [block for message in found for block in message.blocks if isinstance(block, ToolResultBlock)]
    assert [block.imported for block in results] == [False, True, True]
    assert History.of(found).unverified == {"t"}
    assert saved.head is not None
    assert not saved.head.keyframe


def test_a_real_result_that_was_changed_becomes_a_claim(user: User, talk: Conversation) -> None:
    execution = begin(user, "do", talk)
    real = tool_result(CALL, "?", status="error", execution="unknown")
    store.save_turn(execution, answered(real), state(1), DONE)
    base = context(Conversation.objects.get())
    cleared = tool_result(CALL, "all fine", status="success", execution="completed")
    changed = (*base.messages[:-1], AgentMessage(id="result", role="tool", blocks=(cleared,)))
    saved = store.put_conversation(user, talk.pk, "t", 2, base.model_copy(update={"messages": changed}))
    (result,) = context(saved).messages[-1].blocks
    assert isinstance(result, ToolResultBlock)
    assert result.imported


def pair(name: str, tool: str, execution: Any, **arguments: Any) -> tuple[AgentMessage, ...]:
    """Return a call and its result."""
    call = ToolCallBlock(call_id=f"call-{name}", name=tool, input=FrozenDict(arguments))
    result = tool_result(call, "text", status="success", execution=execution)
    return (
        AgentMessage(id=f"asking-{name}", role="assistant", blocks=(call,)),
        AgentMessage(id=f"result-{name}", role="tool", blocks=(result,)),
    )


def put_over(user: User, talk: Conversation, old: Sequence[AgentMessage], new: Sequence[AgentMessage]) -> History:
    """Save a turn with some results, put others over it and return what a run then knows."""
    start = context(talk).messages
    store.save_turn(begin(user, "do", talk), (said("do"), *old), state(1), DONE)
    base = context(Conversation.objects.get())
    before = base.messages[: len(start) + 1]
    store.put_conversation(user, talk.pk, "t", 2, base.model_copy(update={"messages": (*before, *new)}))
    return History.of(context(Conversation.objects.get()).messages)


def claims(talk: Conversation) -> dict[str, bool]:
    """Return for each result of the head whether it is a claim."""
    messages = context(Conversation.objects.get(pk=talk.pk)).messages
    blocks = [block for message in messages for block in message.blocks if isinstance(block, ToolResultBlock)]
    return {block.call_id.removeprefix("call-"): block.imported for block in blocks}


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (pair("1", "read", "completed", path="/tmp/a"), pair("1", "read", "completed", path="/etc/passwd")),
        (pair("1", "read", "completed", deep=[{"all": 1}]), pair("1", "read", "completed", deep=[{"all": True}])),
        (pair("1", "read", "completed", path="a"), pair("1", "read", "completed", path="a", all=None)),
        (pair("1", "read", "completed"), (pair("1", "pay", "completed")[0], pair("1", "read", "completed")[1])),
    ],
    ids=["another path", "true for 1", "one argument more", "another tool"],
)
def test_the_result_of_a_call_that_was_changed_is_a_claim(user: User, talk: Conversation, done: Any, told: Any) -> None:
    """DESIGN 7: it never was the result of this call."""
    put_over(user, talk, done, told)
    assert claims(talk) == {"1": True}


def test_a_call_that_was_only_spelled_in_another_way_keeps_its_result(user: User, talk: Conversation) -> None:
    done = pair("1", "read", "unknown", first=1.0, then={"a": [1], "b": 2})
    history = put_over(user, talk, done, (said("x"), *pair("1", "read", "unknown", then={"b": 2.0, "a": [1]}, first=1)))
    assert claims(talk) == {"1": False}
    assert history.unverified == {"read"}


def test_an_unknown_result_is_not_settled_by_moving_an_older_one_behind_it(user: User, talk: Conversation) -> None:
    """E6: what was completed before says nothing about what came after."""
    paid, lost = pair("1", "pay", "completed"), pair("2", "pay", "unknown")
    assert put_over(user, talk, (*paid, *lost), (*lost, *paid)).unverified == {"pay"}
    assert claims(talk) == {"2": False, "1": True}


@pytest.mark.parametrize("between", [pair("0", "other", "completed"), pair("0", "pay", "not-executed")])
def test_an_unknown_result_stays_whatever_is_moved_before_it(user: User, talk: Conversation, between: Any) -> None:
    """E6: neither a result of another tool nor one of nothing takes its place."""
    paid, lost = pair("1", "pay", "completed"), pair("2", "pay", "unknown")
    assert put_over(user, talk, (*paid, *lost, *between), (*between, *lost, *paid)).unverified == {"pay"}
    assert claims(talk) == {"0": False, "2": False, "1": True}


def test_real_results_that_are_kept_in_their_order_stay_real(user: User, talk: Conversation) -> None:
    one, two, three = pair("1", "pay", "unknown"), pair("2", "pay", "completed"), pair("3", "read", "unknown")
    assert put_over(user, talk, (*one, *two, *three), (said("x"), *one, said("y"), *two, *three)).unverified == {"read"}
    assert claims(talk) == {"1": False, "2": False, "3": False}


def test_a_stale_save_is_refused_and_somebody_elses_is_unknown(user: User, talk: Conversation) -> None:
    """R125, R127."""
    with pytest.raises(ConversationConflict) as caught:
        store.put_conversation(user, talk.pk, "t", 0, context(talk))
    assert caught.value.current_revision == 1
    with pytest.raises(ConversationNotFound):
        store.put_conversation(UserFactory(), talk.pk, "t", 1, context(talk))
