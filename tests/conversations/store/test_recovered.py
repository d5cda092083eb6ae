"""Continue from here: what of a run that was stopped or failed becomes part of its conversation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections

from agent.runtime.events import Cancelled, Completed
from agent.runtime.exceptions import AgentError, InvalidState
from agent.runtime.ids import message_id, uuid7
from agent.runtime.messages import AgentMessage, ModelContext, ModelState, TextBlock, ToolCallBlock, tool_result
from conversations import store
from conversations.exceptions import ConversationConflict, ExecutionNotFound
from conversations.models import Conversation, Execution, ExecutionStatus, Revision, User
from conversations.unsaved import unsaved_turns
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db

STATE = ModelContext(model_state=ModelState(format="x/1", data={"id": "kept"}))
BEFORE = ModelContext(model_state=ModelState(format="x/1", data={"id": "before"}))
CALL = ToolCallBlock(call_id="call-1", name="t", input={})


def said(text: str, role: Any = "assistant") -> AgentMessage:
    return AgentMessage(id=message_id(), role=role, blocks=(TextBlock(text=text),))


def begin(user: User, conversation: Conversation | None = None) -> Execution:
    given: dict[str, Any] = {"conversation_id": conversation.pk} if conversation else {}
    return store.begin_turn(
        user=user, request_id=uuid7(), digest="d", message=said("Hello", "user"), agent="demo", **given
    ).execution


def stop(execution: Execution, *messages: AgentMessage, partial: Any = None, context: ModelContext = STATE) -> None:
    store.finish_failed(
        execution,
        status=ExecutionStatus.CANCELLED,
        messages=(AgentMessage.from_wire(execution.input), *messages),
        model_context=context,
        outcome=Cancelled(reason="user"),
        partial=partial,
        last_seq=9,
    )


def half(*blocks: tuple[str, str], id: str = "message-half") -> dict[str, Any]:
    made = [
        {"index": n, "type": kind, "callId": "", "name": "", "text": text, "stopped": False}
        for n, (kind, text) in enumerate(blocks)
    ]
    return {"messageId": id, "blocks": made}


def texts(revision: Revision) -> list[str]:
    return [AgentMessage.from_wire(message).text for message in revision.context]


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug="demo")
    return UserFactory()


@pytest.fixture
def saved(user: User) -> Conversation:
    """A conversation with one turn."""
    execution = begin(user)
    messages = AgentMessage.from_wire(execution.input), said("Hi")
    return store.save_turn(execution, messages, BEFORE, Completed(stop_reason="end-turn")).conversation


def test_what_was_said_becomes_the_head_and_half_an_answer_counts(user: User, saved: Conversation) -> None:
    """DESIGN 3."""
    execution = begin(user, saved)
    call = AgentMessage(id="m", role="assistant", blocks=(CALL,))
    result = AgentMessage(
        id="r", role="tool", blocks=(tool_result(CALL, "done", status="success", execution="completed"),)
    )
    stop(
        execution,
        call,
        result,
        partial=half(("reasoning", "Hm"), ("text", "So "), ("text", ""), ("text", "far"), ("tool-call", '{"a')),
    )
    adopted = store.adopt_recovered(user, execution.pk)
    assert adopted.created
    conversation = Conversation.objects.get()
    revision = conversation.head
    assert revision is not None
    assert (revision.kind, revision.number, conversation.version) == ("recovered", 2, 2)
    assert revision.parent_id == execution.base_id
    assert texts(revision) == ["Hello", "", "", "So far"]
    assert revision.context[-1]["blocks"] == [{"type": "text", "text": "So "}, {"type": "text", "text": "far"}]
    assert revision.model_state == STATE.to_wire()["modelState"]
    assert revision.outcome == {"type": "cancelled", "reason": "user"}
    context = store.load_context(conversation, revision)
    assert [message.text for message in context.messages] == ["Hello", "Hi", "Hello", "", "", "So far"]
    kept = Execution.objects.get(pk=execution.pk)
    assert (kept.revision, kept.status, kept.transcript, kept.partial) == (revision, "cancelled", [], None)
    assert unsaved_turns(conversation, store.load_path(conversation, conversation.head)) == []


@pytest.mark.parametrize(
    "partial", [None, half(), half(("reasoning", "Hm")), half(("text", "  ")), half(("text", "x"), id="m")]
)
def test_without_text_of_its_own_half_an_answer_is_none(user: User, partial: Any) -> None:
    execution = begin(user)
    stop(execution, AgentMessage(id="m", role="assistant", blocks=(TextBlock(text="Whole."),)), partial=partial)
    store.adopt_recovered(user, execution.pk)
    assert texts(Revision.objects.get()) == ["Hello", "Whole."]


def test_a_run_that_never_had_a_model_state_keeps_that_of_its_base(user: User, saved: Conversation) -> None:
    execution = begin(user, saved)
    stop(execution, context=ModelContext(model_state=None))
    store.adopt_recovered(user, execution.pk)
    assert Revision.objects.latest("number").model_state == BEFORE.to_wire()["modelState"]


def test_a_call_without_a_result_gets_one(user: User) -> None:
    execution = begin(user)
    stop(execution, AgentMessage(id="m", role="assistant", blocks=(CALL,)))
    Execution.objects.update(calls={"call-1": "started"})
    store.adopt_recovered(user, execution.pk)
    (result,) = Revision.objects.get().context[-1]["blocks"]
    assert (result["callId"], result["execution"]) == ("call-1", "unknown")


def test_adopting_again_changes_nothing(user: User) -> None:
    execution = begin(user)
    stop(execution)
    store.adopt_recovered(user, execution.pk)
    again = store.adopt_recovered(user, execution.pk)
    assert not again.created
    assert (again.execution.conversation.version, Revision.objects.count()) == (1, 1)


def test_a_conversation_that_went_on_is_not_turned_back(user: User) -> None:
    execution = begin(user)
    stop(execution)
    other = begin(user, execution.conversation)
    store.save_turn(other, [AgentMessage.from_wire(other.input)], STATE, Completed(stop_reason="end-turn"))
    with pytest.raises(ConversationConflict) as caught:
        store.adopt_recovered(user, execution.pk)
    assert caught.value.current_revision == 1
    assert Conversation.objects.get().version == 1


def test_a_new_title_does_not_stand_in_the_way(user: User) -> None:
    execution = begin(user)
    stop(execution)
    Conversation.objects.update(title="Another", version=5)
    store.adopt_recovered(user, execution.pk)
    assert Conversation.objects.get().version == 6


def test_what_lives_or_was_completed_is_not_adopted_and_nothing_beside_it(user: User) -> None:
    stopped = begin(user)
    stop(stopped)
    live = begin(user, stopped.conversation)
    for execution in (stopped, live):
        with pytest.raises(InvalidState):
            store.adopt_recovered(user, execution.pk)
    assert (Conversation.objects.get().version, Revision.objects.count()) == (0, 0)
    store.save_turn(live, [AgentMessage.from_wire(live.input)], STATE, Completed(stop_reason="end-turn"))
    with pytest.raises(InvalidState, match="completed"):
        store.adopt_recovered(user, live.pk)


@pytest.mark.parametrize(
    "transcript",
    [
        [{"role": "nobody"}],
        [
            {
                "id": "m",
                "role": "tool",
                "blocks": [tool_result(CALL, "x", status="success", execution="completed").to_wire()],
            }
        ],
    ],
)
def test_what_cannot_be_replayed_is_not_adopted(user: User, transcript: list[Any]) -> None:
    execution = begin(user)
    stop(execution)
    Execution.objects.update(transcript=transcript)
    with pytest.raises(InvalidState):
        store.adopt_recovered(user, execution.pk)
    assert Conversation.objects.get().version == 0


def test_somebody_elses_run_looks_like_none(user: User) -> None:
    """R125."""
    execution = begin(user)
    stop(execution)
    for who, pk in ((UserFactory(), execution.pk), (user, uuid4())):
        with pytest.raises(ExecutionNotFound):
            store.adopt_recovered(who, pk)


@pytest.mark.django_db(transaction=True)
def test_of_many_who_adopt_or_start_at_once_one_is_first(user: User) -> None:
    execution = begin(user)
    stop(execution)

    def work(number: int) -> str:
        try:
            if number % 2:
                begin(user, execution.conversation)
                return "started"
            return "adopted" if store.adopt_recovered(user, execution.pk).created else "again"
        except AgentError as error:
            return error.code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(work, range(8)))
    assert done.count("adopted") <= 1
    assert done.count("started") == 1
    conversation = Conversation.objects.get()
    live = Execution.objects.get(status=ExecutionStatus.RUNNING)
    assert (live.base_id, live.base_version) == (conversation.head_id, conversation.version)
