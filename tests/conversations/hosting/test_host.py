"""The host beyond one socket: drain, crash, audit, and what cannot be stored."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.governance import tools as governed
from agent.governance.audit import AuditEntry
from agent.models import AgentProfile, AuditRecord, ToolRecord
from agent.runtime import AgentMessage, ModelContext, TextBlock, ToolCallBlock
from agent.runtime.exceptions import ModelFailed
from agent.testing import ScriptedModel, calls, says, scripted_tool
from conversations.bodies import StartBody
from conversations.exceptions import Draining
from conversations.hosting.jobs import Jobs
from conversations.hosting.markdown import MarkdownRun
from conversations.hosting.setup import Begun, StartRequest
from conversations.models import Conversation, Execution, HostProcess, Revision, User
from conversations.store import record_progress
from tests.factories import AgentProfileFactory, ToolRecordFactory, UserFactory
from tests.live import hosted, settled, socket_of

pytestmark = pytest.mark.django_db(transaction=True)

AGENT = "assistant"


@pytest.fixture
def user(transactional_db: None) -> User:
    AgentProfileFactory(slug=AGENT, all_tools=True)
    return UserFactory()


def start(text: str = "Hi") -> StartRequest:
    return StartRequest(uuid4(), StartBody(agent=AGENT, input=(TextBlock(text=text),)))


def ignore(begun: Begun) -> None:
    pass


async def only(model: type[Any]) -> Any:
    return await sync_to_async(model.objects.get)()


async def test_drain_lets_a_run_end_and_takes_no_new_one(user: User) -> None:
    gate = asyncio.Event()
    async with hosted(ScriptedModel(says("a", gate, "b"))) as host, socket_of(host, user) as socket:
        await socket.say("Hi", AGENT)
        await socket.until("block-delta")
        host.refuse()
        assert (await socket.until("draining"))["type"] == "draining"
        assert (await socket.say("Hi", AGENT))["code"] == "DRAINING"
        draining = asyncio.create_task(host.drain(30))
        gate.set()
        await draining
        assert (await only(Execution)).status == "completed"


async def test_drain_cancels_what_does_not_end_with_the_reason_shutdown(user: User) -> None:
    async with hosted(ScriptedModel(says("a", asyncio.Event()))) as host:
        await host.start_run(user, start(), ignore)
        await host.drain(0)
        execution = await only(Execution)
        assert (execution.status, execution.outcome) == ("cancelled", {"type": "cancelled", "reason": "shutdown"})
        with pytest.raises(Draining):
            await host.start_run(user, start(), ignore)


async def test_a_second_signal_hurries_the_drain(user: User) -> None:
    hurry = asyncio.Event()
    async with hosted(ScriptedModel(says("a", asyncio.Event()))) as host:
        await host.start_run(user, start(), ignore)
        draining = asyncio.create_task(host.drain(3600, hurry))
        hurry.set()
        await draining
        assert (await only(Execution)).status == "cancelled"


async def test_runs_of_a_lost_process_are_ended_honestly_and_once(user: User) -> None:
    """DESIGN 5 crash; E5, B51, B53: what was dispatched is unknown, what was not is not executed."""

    def crash() -> None:
        jobs = Jobs("crashed")
        jobs.register()
        begun = jobs.begin(user, start())
        execution = Execution.objects.get(pk=begun.execution_id)
        ask = AgentMessage(
            id="m1",
            role="assistant",
            blocks=tuple(ToolCallBlock(call_id=f"call_{n}", name="t", input={}) for n in (1, 2)),
        )
        record_progress(
            execution,
            messages=[AgentMessage.from_wire(execution.input), ask],
            model_context=ModelContext(model_state=None),
            calls={"call_1": "started"},
            last_seq=7,
        )
        HostProcess.objects.update(heartbeat_at="2020-01-01T00:00:00Z")

    await sync_to_async(crash)()
    async with hosted(ScriptedModel(says("fine"))) as host:
        execution = await only(Execution)
        assert (execution.status, execution.error_code, execution.last_seq) == ("failed", "EXECUTION_LOST", 8)
        results = [m["blocks"][0]["execution"] for m in execution.transcript if m["role"] == "tool"]
        assert results == ["unknown", "not-executed"]
        assert await host.executor.run(host.jobs.end_lost_runs) == []
        async with socket_of(host, user) as socket:
            await socket.say("again", AGENT, conversationId=str(execution.conversation_id))
            assert (await socket.end())["type"] == "execution-completed"


async def test_before_a_tool_with_effects_runs_the_row_says_so(user: User) -> None:
    async with hosted(ScriptedModel(calls(("local.send_postcard", {"to": "A", "text": "b"})), says("ok"))) as host:
        async with socket_of(host, user) as socket:
            ack = await socket.say("Send", AGENT)
            asked = await socket.until("interrupt-requested")
            await socket.command(type="approve", executionId=ack["executionId"], interruptId=asked["interrupt"]["id"])
            started = await socket.until("tool-call-started")
            await socket.end()
        execution = await only(Execution)
        assert execution.calls == {started["callId"]: "started"}


async def test_a_turn_that_meets_another_head_fails_visibly_and_is_kept(user: User) -> None:
    """B66: nothing is overwritten."""
    gate = asyncio.Event()
    async with hosted(ScriptedModel(says("a", gate, "b"))) as host, socket_of(host, user) as socket:
        await socket.say("Hi", AGENT)
        await socket.until("block-delta")

        def interfere() -> None:
            conversation = Conversation.objects.get()
            revision = Revision.objects.create(conversation=conversation, number=1)
            Conversation.objects.update(head=revision, version=1, head_version=1)

        await sync_to_async(interfere)()
        gate.set()
        failed = await socket.end()
        assert (failed["type"], failed["errorCode"]) == ("execution-failed", "CONVERSATION_CONFLICT")
        execution = await only(Execution)
        assert execution.status == "failed"
        assert execution.transcript[1]["blocks"][0]["text"] == "ab"


async def test_a_conversation_deleted_during_its_run_ends_the_run_in_words(user: User) -> None:
    gate = asyncio.Event()
    async with hosted(ScriptedModel(says("a", gate, "b"))) as host, socket_of(host, user) as socket:
        await socket.say("Hi", AGENT)
        await socket.until("block-delta")
        await sync_to_async(lambda: Conversation.objects.get().delete())()
        gate.set()
        assert (await socket.end())["type"] == "execution-failed"
        await settled(host)


async def test_lifecycle_events_become_audit_records(user: User) -> None:
    """R111, R158: metadata only by default."""
    async with hosted(ScriptedModel(calls(("local.calculate", {"expression": "1+1"})), says("2"))) as host:
        async with socket_of(host, user) as socket:
            ack = await socket.say("secret words", AGENT)
            await socket.end()
        await settled(host)
        await host.trail.flush()
    records = await sync_to_async(lambda: list(AuditRecord.objects.order_by("pk")))()
    assert [record.event for record in records] == [
        "execution-started",
        "model-call-started",
        "model-call-completed",
        "tool-call-started",
        "tool-call-completed",
        "model-call-started",
        "model-call-completed",
        "execution-completed",
    ]
    assert {str(record.execution_id) for record in records} == {ack["executionId"]}
    assert {record.user_id for record in records} == {user.pk}


async def test_a_run_that_cannot_be_set_up_ends_in_words(user: User) -> None:
    async with hosted() as host:

        def broken(config: Any) -> Any:
            raise RuntimeError("secret detail")

        host.model = broken
        async with socket_of(host, user) as socket:
            await socket.say("Hi", AGENT)
            failed = await socket.end()
            assert failed["errorMessage"] == "The agent could not be set up."
        assert (await only(Execution)).status == "failed"


async def test_a_run_that_cannot_be_set_up_keeps_the_code_of_its_error(user: User) -> None:
    async with hosted() as host:

        def refused(config: Any) -> Any:
            raise ModelFailed("the endpoint is switched off", retryable=True)

        host.model = refused
        async with socket_of(host, user) as socket:
            await socket.say("Hi", AGENT)
            failed = await socket.end()
        assert (failed["errorCode"], failed["retryable"]) == ("MODEL_FAILED", True)
        assert (await only(Execution)).error_code == "MODEL_FAILED"


async def test_an_agent_may_run_its_tools_side_by_side(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    second_started = asyncio.Event()

    async def first(_: object) -> str:
        await second_started.wait()
        return "1"

    async def second(_: object) -> str:
        second_started.set()
        return "2"

    tools = {"first": scripted_tool("first", first), "second": scripted_tool("second", second)}

    def prepare() -> None:
        AgentProfile.objects.filter(slug=AGENT).update(parallel_tools=True)
        for name in tools:
            ToolRecordFactory(name=name)

    await sync_to_async(prepare)()
    async with hosted(ScriptedModel(calls(("first", {}), ("second", {})), says("ok"))) as host:
        monkeypatch.setattr(governed, "installed_tools", lambda: tools)
        await sync_to_async(ToolRecord.objects.filter(name__in=tools).update)(present=True)
        async with socket_of(host, user) as socket:
            await socket.say("Go", AGENT)
            await socket.end()
    revision = await only(Revision)
    results = [b["content"][0]["text"] for m in revision.context if m["role"] == "tool" for b in m["blocks"]]
    assert results == ["1", "2"]


async def test_a_start_that_cannot_be_set_up_leaves_no_run_behind(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong, the conversation stays usable."""
    async with hosted(ScriptedModel(says("ok"))) as host, socket_of(host, user) as socket:

        def broken(profile: object) -> None:
            raise ValueError("the key cannot be read")

        with monkeypatch.context() as patch:
            patch.setattr(AgentProfile, "model_configs", broken)
            refused = await socket.say("Hi", AGENT)
        assert (refused["type"], refused["message"]) == ("error", "The agent could not be set up.")
        assert await socket.say("Hi", AGENT, id=refused["id"]) == refused, "the same start gets its first answer"
        execution = await only(Execution)
        assert (execution.status, execution.started_at) == ("failed", None)
        await socket.say("again", AGENT, conversationId=str(execution.conversation_id))
        assert (await socket.end())["type"] == "execution-completed"


async def test_a_renderer_that_fails_costs_the_looks_and_not_the_turn(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(run: object) -> None:
        raise RuntimeError("markdown")

    monkeypatch.setattr(MarkdownRun, "tick", broken)
    async with hosted(ScriptedModel(says("Hello"))) as host, socket_of(host, user) as socket:
        await socket.say("Hi", AGENT, format="html")
        assert (await socket.end())["type"] == "execution-completed"
    assert (await only(Revision)).context[1]["blocks"][0]["text"] == "Hello"


async def test_a_heartbeat_leaves_running_runs_alone(user: User) -> None:
    gate = asyncio.Event()
    async with hosted(ScriptedModel(says("a", gate, "b"))) as host, socket_of(host, user) as socket:
        await socket.say("Hi", AGENT)
        await socket.until("block-delta")
        assert await host.executor.run(host.jobs.beat, tuple(host._runs)) == []
        gate.set()
        assert (await socket.end())["type"] == "execution-completed"


@pytest.mark.parametrize("whose", ["another's", "mine"])
async def test_a_heartbeat_ends_what_nobody_runs(user: User, whose: str) -> None:
    async with hosted() as host:

        def stray() -> None:
            jobs = host.jobs if whose == "mine" else Jobs("gone")
            if whose != "mine":
                jobs.register()
            jobs.begin(user, start())
            long_ago = timezone.now() - timedelta(minutes=5)
            Execution.objects.update(started_at=long_ago)
            HostProcess.objects.filter(channel="gone").update(heartbeat_at=long_ago)

        await host.executor.run(stray)
        (state,) = await host.executor.run(host.jobs.beat, ())
        assert (state.status, state.error and state.error["code"]) == ("failed", "EXECUTION_LOST")


async def test_a_process_that_lost_its_run_cannot_store_it(user: User) -> None:
    """DESIGN 5: every write is conditional on "mine and live"."""
    gate = asyncio.Event()
    async with hosted(ScriptedModel(says("a", gate, "b"))) as host, socket_of(host, user) as socket:
        await socket.say("Hi", AGENT)
        await socket.until("block-delta")

        def take_over() -> None:
            other = HostProcess.objects.create(channel="other", heartbeat_at=timezone.now())
            Execution.objects.update(host=other)

        await sync_to_async(take_over)()
        gate.set()
        assert (await socket.end())["errorCode"] == "EXECUTION_LOST"
    assert not await sync_to_async(Revision.objects.exists)()
    assert (await only(Execution)).status == "running"  # it is the other process's now


async def test_a_waiting_run_is_on_record_with_its_question(user: User) -> None:
    """B51: what a crash would need."""
    async with hosted(ScriptedModel(calls(("local.send_postcard", {"to": "A", "text": "b"})))) as host:
        async with socket_of(host, user) as socket:
            ack = await socket.say("Send", AGENT)
            asked = await socket.until("interrupt-requested")
            while host._tasks:
                await asyncio.gather(*host._tasks)
            execution = await only(Execution)
            assert (execution.status, execution.interrupt["id"]) == ("waiting_input", asked["interrupt"]["id"])
            assert [message["role"] for message in execution.transcript] == ["user", "assistant"]
            await socket.command(type="cancel", executionId=ack["executionId"])
            await socket.end()
        await settled(host)
        execution = await only(Execution)
        assert (execution.status, execution.interrupt) == ("cancelled", None)
        assert execution.cancel_requested_at is not None


async def test_a_tool_with_effects_does_not_run_when_that_cannot_be_noted(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with hosted(ScriptedModel(calls(("local.send_postcard", {"to": "A", "text": "b"})))) as host:

        def broken(progress: object) -> None:
            raise OSError("disk")

        async with socket_of(host, user) as socket:
            ack = await socket.say("Send", AGENT)
            asked = await socket.until("interrupt-requested")
            await asyncio.gather(*host._tasks)
            monkeypatch.setattr(host.jobs, "write_progress", broken)
            await socket.command(type="approve", executionId=ack["executionId"], interruptId=asked["interrupt"]["id"])
            assert (await socket.end())["errorCode"] == "CONVERSATION_SAVE_FAILED"
    execution = await only(Execution)
    (result,) = [m["blocks"][0] for m in execution.transcript if m["role"] == "tool"]
    assert result["execution"] == "not-executed"


async def test_drain_waits_for_a_start_that_is_being_stored(user: User) -> None:
    """Whoever was let in gets an answer."""
    async with hosted(ScriptedModel(says("x"))) as host:
        answered: list[Begun] = []
        starting = asyncio.create_task(host.start_run(user, start(), answered.append))
        await asyncio.sleep(0)
        await host.drain(0)
        await starting
        assert len(answered) == 1
        assert (await only(Execution)).status in ("completed", "cancelled")


async def test_an_audit_entry_that_cannot_be_stored_costs_itself_only(user: User) -> None:
    async with hosted() as host:
        for user_id in (user.pk, 2**70, user.pk):
            host.trail.add(AuditEntry(event="execution-started", user_id=user_id))
        await host.trail.flush()
        assert host.trail.lost == 1
        assert await sync_to_async(AuditRecord.objects.count)() == 2
