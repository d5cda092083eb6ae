from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from agent.runtime.events import Cancelled, Completed
from agent.runtime.exceptions import AgentError, InvalidArgument, InvalidState
from agent.runtime.ids import message_id, uuid7
from agent.runtime.limits import PartialLimits
from agent.runtime.messages import AgentMessage, ImageBlock, ModelContext, ModelState, TextBlock, Usage
from conversations import store
from conversations.exceptions import (
    AgentNotFound,
    ConversationConflict,
    ConversationNotFound,
    ExecutionLost,
    ExecutionNotFound,
    RateLimited,
)
from conversations.models import Conversation, Execution, ExecutionStatus, Revision, User
from tests.factories import AgentProfileFactory, ConversationFactory, HostProcessFactory, UserFactory

pytestmark = pytest.mark.django_db

DONE = Completed(stop_reason="end-turn")
STATE = ModelContext(model_state=ModelState(format="x/1", data={"id": "opaque"}))


def said(text: str, role: Any = "user") -> AgentMessage:
    return AgentMessage(id=message_id(), role=role, blocks=(TextBlock(text=text),))


def begin(user: User, text: str = "Hello", **given: Any) -> store.BegunTurn:
    given = {"request_id": uuid7(), "digest": "d", "message": said(text), "agent": "demo"} | given
    return store.begin_turn(user=user, **given)


def save(execution: Execution, answer: str = "Hi", **given: Any) -> Revision:
    messages = (AgentMessage.from_wire(execution.input), said(answer, "assistant"))
    return store.save_turn(execution, messages, STATE, DONE, **given)


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug="demo")
    return UserFactory()


def test_a_first_turn_makes_the_conversation_and_is_saved_as_its_head(user: User) -> None:
    host = HostProcessFactory()
    begun = begin(user, "  What is\na revision?  ", agent="demo", host_id=host.pk, trace_id="trace-1")
    assert begun.created
    execution = Execution.objects.get()
    assert (execution.status, execution.host, execution.started_at is None) == ("running", host, False)
    assert execution.limits["maxModelCalls"] == 16
    conversation = Conversation.objects.get()
    assert (conversation.title, conversation.head, conversation.version) == ("What is a revision?", None, 0)

    usage = Usage(input_tokens=3, output_tokens=4, total_tokens=7)
    revision = store.save_turn(begun.execution, (said("q"), said("a", "assistant")), STATE, DONE, usage, last_seq=9)

    assert (revision.number, revision.parent, revision.conversation.version) == (1, None, 1)
    conversation.refresh_from_db()
    assert (conversation.head, conversation.version) == (revision, 1)
    execution.refresh_from_db()
    assert (execution.status, execution.revision, execution.last_seq) == ("completed", revision, 9)
    assert execution.outcome == {"type": "completed", "stopReason": "end-turn"}
    assert execution.usage == {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}
    assert execution.transcript == []
    assert execution.finished_at is not None
    context = store.load_context(conversation, revision)
    assert [message.text for message in context.messages] == ["q", "a"]
    assert context.model_context == STATE


def test_a_plain_turn_is_two_short_transactions(user: User) -> None:
    """DESIGN §5: begin and save, a handful of statements each."""
    execution = begin(user).execution
    save(execution)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        second = begin(user, conversation_id=execution.conversation_id, base_version=1).execution
    assert len(statements(queries)) == 6
    with CaptureQueriesContext(connection) as queries:
        save(second)
    # Of these one makes the messages findable; SQLite keeps their words in a table of their own.
    assert len(statements(queries)) == (6 if connection.vendor == "sqlite" else 5)


def statements(queries: CaptureQueriesContext) -> list[str]:
    return [q["sql"] for q in queries.captured_queries if "SAVEPOINT" not in q["sql"]]


def test_the_next_turn_builds_on_the_head(user: User) -> None:
    first = begin(user).execution
    head = save(first)
    second = begin(user, conversation_id=first.conversation_id, base_version=1).execution
    assert (second.base, second.base_version) == (head, 1)
    revision = save(second)
    assert (revision.parent, revision.number) == (head, 2)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("short", "short"),
        ("x" * 30, "x" * 30),
        ("x" * 31, "x" * 30 + "…"),
        ("   ", None),
        ("数据" * 20, "数据" * 15 + "…"),
    ],
)
def test_the_title_is_the_beginning_of_the_first_message(text: str, title: str | None) -> None:
    """R136."""
    assert store.title_of(said(text)) == title


def test_a_message_of_pictures_only_has_a_fixed_title() -> None:
    """R136."""
    block = ImageBlock.from_wire({"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}})
    assert store.title_of(AgentMessage(id="m", role="user", blocks=(block,))) == "[image]"


def test_the_same_request_gives_the_same_execution(user: User) -> None:
    request_id = uuid7()
    first = begin(user, request_id=request_id)
    again = begin(user, request_id=request_id)
    assert (again.execution, again.created) == (first.execution, False)
    assert Conversation.objects.count() == 1
    with pytest.raises(InvalidArgument, match=str(request_id)):
        begin(user, request_id=request_id, digest="another")


def test_request_ids_of_two_people_do_not_meet(user: User) -> None:
    request_id = uuid7()
    assert begin(user, request_id=request_id).created
    assert begin(UserFactory(), request_id=request_id).created


def test_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert store.request_digest({"a": 1, "b": 2}) == store.request_digest({"b": 2, "a": 1})
    assert store.request_digest({"a": 1}) != store.request_digest({"a": 2})


def test_a_stale_base_is_a_conflict_that_names_the_current_version(user: User) -> None:
    """R127."""
    execution = begin(user).execution
    save(execution)
    with pytest.raises(ConversationConflict) as caught:
        begin(user, conversation_id=execution.conversation_id, base_version=0)
    assert (caught.value.code, caught.value.current_revision) == ("CONVERSATION_CONFLICT", 1)


def test_a_second_run_of_one_conversation_has_to_wait(user: User) -> None:
    execution = begin(user).execution
    with pytest.raises(InvalidState):
        begin(user, conversation_id=execution.conversation_id)


def test_somebody_elses_conversation_looks_like_none(user: User) -> None:
    """R125."""
    foreign = ConversationFactory()
    for pk in (foreign.pk, uuid7()):
        with pytest.raises(ConversationNotFound) as caught:
            begin(user, conversation_id=pk)
        assert str(foreign.title) not in str(caught.value)
    assert not Execution.objects.exists()


def test_an_agent_that_is_off_or_unknown_is_not_found(user: User) -> None:
    AgentProfileFactory(slug="off", enabled=False)
    for slug in ("off", "nothing"):
        with pytest.raises(AgentNotFound):
            begin(user, agent=slug)
    assert not Conversation.objects.exists()


def test_a_conversation_can_go_on_with_another_agent(user: User) -> None:
    first = begin(user).execution
    save(first)
    other = AgentProfileFactory(slug="other")
    second = begin(user, conversation_id=first.conversation_id, agent="other").execution
    assert second.agent == other
    assert Conversation.objects.get().agent == other


def test_limits_of_the_client_tighten_and_never_widen(user: User) -> None:
    limits = PartialLimits(max_model_calls=2, max_tool_calls=1000)
    execution = begin(user, limits=limits).execution
    assert (execution.limits["maxModelCalls"], execution.limits["maxToolCalls"]) == (2, 32)


def test_a_new_title_during_the_run_does_not_cost_the_turn(user: User) -> None:
    execution = begin(user).execution
    Conversation.objects.update(title="Mine", version=1)
    assert save(execution).number == 2
    conversation = Conversation.objects.get()
    assert (conversation.version, conversation.title) == (2, "Mine")


def test_a_run_that_lost_its_process_saves_nothing(user: User) -> None:
    execution = begin(user, host_id=HostProcessFactory().pk).execution
    Execution.objects.update(host=HostProcessFactory())
    with pytest.raises(ExecutionLost):
        save(execution)
    assert not Revision.objects.exists()
    assert Conversation.objects.get().version == 0


def test_a_deleted_conversation_takes_no_turn(user: User) -> None:
    execution = begin(user).execution
    Conversation.objects.all().delete()
    with pytest.raises(ConversationNotFound):
        save(execution)


def test_a_stopped_run_keeps_what_it_said_and_leaves_the_conversation_alone(user: User) -> None:
    execution = begin(user).execution
    store.finish_failed(
        execution,
        status=ExecutionStatus.CANCELLED,
        messages=(said("q"), said("half", "assistant")),
        model_context=STATE,
        outcome=Cancelled(reason="user"),
        last_seq=5,
    )
    row = Execution.objects.get()
    assert (row.status, row.outcome, row.last_seq) == ("cancelled", {"type": "cancelled", "reason": "user"}, 5)
    assert [message["blocks"][0]["text"] for message in row.transcript] == ["q", "half"]
    assert row.model_context == STATE.to_wire()
    assert (row.conversation.version, row.conversation.head) == (0, None)
    with pytest.raises(ExecutionLost):
        save(execution)


def test_progress_of_a_run_is_noted_while_it_lives(user: User) -> None:
    execution = begin(user).execution
    calls = {"call_1": "started"}
    store.record_progress(execution, messages=(said("q"),), model_context=STATE, calls=calls, interrupt={"id": "i"})
    row = Execution.objects.get()
    assert (row.status, row.interrupt, row.calls) == ("waiting_input", {"id": "i"}, calls)
    store.record_progress(execution, messages=(said("q"), said("a")), model_context=STATE, calls={}, last_seq=3)
    row = Execution.objects.get()
    assert (row.status, row.interrupt, row.last_seq, len(row.transcript)) == ("running", None, 3, 2)
    save(execution)
    with pytest.raises(ExecutionLost):
        store.record_progress(execution, messages=(), model_context=STATE, calls={})


def at_once(jobs: list[Callable[[], Any]]) -> list[Any]:
    """Run the jobs in threads of their own; return what each returned or raised."""

    def one(job: Callable[[], Any]) -> Any:
        try:
            return job()
        except AgentError as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(one, jobs))


@pytest.mark.django_db(transaction=True)
def test_of_eight_writers_with_one_base_one_wins() -> None:
    """R127: nothing is merged, nothing is lost, the losers are told the version."""
    conversation = ConversationFactory()
    executions = [
        Execution(
            conversation=conversation,
            user=conversation.owner,
            agent=conversation.agent,
            request_id=uuid7(),
            request_digest="d",
            input=said("q").to_wire(),
            status="suspended",
        )
        for _ in range(8)
    ]
    Execution.objects.bulk_create(executions)
    results = at_once([lambda execution=execution: save(execution) for execution in executions])
    won = [result for result in results if isinstance(result, Revision)]
    lost = [result for result in results if isinstance(result, ConversationConflict)]
    assert (len(won), len(lost)) == (1, 7)
    assert {error.current_revision for error in lost} == {1}
    assert Revision.objects.get() == won[0]
    assert Execution.objects.filter(status="completed").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_eight_equal_requests_one_run_comes() -> None:
    AgentProfileFactory(slug="demo")
    user, request_id = UserFactory(), uuid7()
    results: list[Any] = at_once([lambda: begin(user, request_id=request_id)] * 8)
    assert sum(result.created for result in results) == 1
    assert {result.execution.pk for result in results} == {Execution.objects.get().pk}
    assert Conversation.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_eight_runs_in_one_conversation_one_starts() -> None:
    conversation = ConversationFactory(agent__slug="demo")
    pk: UUID = conversation.pk
    results = at_once([lambda: begin(conversation.owner, conversation_id=pk, base_version=0)] * 8)
    assert sum(isinstance(result, store.BegunTurn) for result in results) == 1
    assert sum(isinstance(result, InvalidState) for result in results) == 7


def test_codes_that_reach_the_wire_are_stable() -> None:
    codes = [error.code for error in (AgentNotFound, ConversationNotFound, ExecutionNotFound, ExecutionLost)]
    assert codes == ["AGENT_NOT_FOUND", "CONVERSATION_NOT_FOUND", "EXECUTION_NOT_FOUND", "EXECUTION_LOST"]
    assert RateLimited("slow down").retryable
