"""What the host does in the database: plain functions for its `DatabaseExecutor`, each a short transaction or two."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, Self, cast
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from agent.governance import tools as governed
from agent.governance.prices import record_usage
from agent.models import ModelEndpoint
from agent.providers.config import ModelConfig, ProtocolName
from agent.providers.metering import CallUsage
from agent.providers.registry import state_format
from agent.providers.retry import RetryPolicy
from agent.runtime import events as ev
from agent.runtime.exceptions import AgentError
from agent.runtime.execution import AgentExecution, RunResult
from agent.runtime.ids import message_id, trace_id
from agent.runtime.limits import Limits
from agent.runtime.messages import AgentMessage, Context, ImageBlock, ModelContext, TextBlock, Usage
from agent.runtime.ports import ToolDecision
from agent.runtime.recovery import CallState, close_open_calls
from agent.runtime.runtime import FaultPolicy
from agent.runtime.state import ExecutionState
from agent.runtime.tools import Tool, ToolDefinition
from conversations import store
from conversations.bodies import ClientTool, StartBody
from conversations.exceptions import ExecutionLost, ExecutionNotFound
from conversations.hosting.client_tools import check_client_tools
from conversations.hosting.past import state_of
from conversations.models import LIVE, Execution, ExecutionStatus, HostProcess, User

logger = logging.getLogger("conversations.hosting")

LOST_AFTER = timedelta(seconds=20)
STRAYED_AFTER = timedelta(minutes=1)
LOST_MESSAGE = "The server stopped while this answer was being written."


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A wish to start a run; `id` makes it idempotent."""

    id: UUID
    body: StartBody


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Everything a run needs, read from the database once."""

    agent: str
    models: tuple[tuple[str, ModelConfig], ...]
    retries: RetryPolicy | None
    instructions: str
    tools: tuple[Tool, ...]
    limits: Limits
    tool_call_errors: FaultPolicy
    tool_exceptions: FaultPolicy
    parallel_tools: bool
    context: Context
    message: AgentMessage
    client_tools: tuple[ClientTool, ...]
    state_dropped: bool


@dataclass(frozen=True, slots=True)
class Begun:
    """The answer to a start; `setup` is None when the request had been seen before."""

    execution_id: str
    conversation_id: str
    user_id: int
    client_id: str
    trace_id: str
    input: dict[str, Any]
    setup: RunSetup | None

    @property
    def created(self) -> bool:
        return self.setup is not None

    @property
    def state_dropped(self) -> bool:
        """Whether the agent has another model since, which cannot read the conversation's model state."""
        return self.setup is not None and self.setup.state_dropped


@dataclass(frozen=True, slots=True)
class Found:
    """A conversation, and the state of a run of it that is of interest to somebody who arrives."""

    conversation_id: str
    version: int
    state: ExecutionState | None


@dataclass(frozen=True, slots=True)
class Progress:
    """A run's transcript at one moment."""

    execution_id: str
    messages: tuple[AgentMessage, ...]
    model_context: ModelContext
    calls: Mapping[str, CallState]
    interrupt: dict[str, Any] | None
    last_seq: int


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended; `last_seq` is the number of the last event before its closing ones."""

    execution_id: str
    outcome: ev.Outcome | None
    error: AgentError | None
    messages: tuple[AgentMessage, ...]
    model_context: ModelContext
    usage: Usage | None
    last_seq: int
    partial: dict[str, Any] | None = None
    calls: tuple[CallUsage, ...] = ()

    @classmethod
    def of(cls, execution: AgentExecution, state: ExecutionState, calls: Sequence[CallUsage]) -> Self:
        """Return the end of an execution whose gate has closed; `state` is what its readers have seen.

        `calls` are the model calls that were made.
        """
        verdict = execution.verdict
        error = verdict if isinstance(verdict, AgentError) else None
        outcome = verdict.outcome if isinstance(verdict, RunResult) else None
        return cls(
            execution.id,
            outcome,
            error,
            tuple(execution.added),
            execution.model_context,
            execution.usage,
            state.seq,
            state.current(),
            tuple(calls),
        )


@dataclass(frozen=True, slots=True)
class Saved:
    """The revision that holds a turn."""

    public_id: UUID
    number: int
    version: int


class Jobs:
    """The database work of one process; `channel` is its name."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._process: HostProcess | None = None

    def register(self) -> None:
        """Enter this process into the table, and end the runs of processes that are gone."""
        governed.sync_tool_records()
        self._process = HostProcess.objects.create(channel=self._channel, heartbeat_at=timezone.now())
        self.end_lost_runs()

    def protocols(self) -> list[ProtocolName]:
        """Return the wire protocols of the endpoints in use."""
        used = ModelEndpoint.objects.filter(enabled=True).values_list("protocol", flat=True).distinct()
        return [cast(ProtocolName, protocol) for protocol in used]

    def beat(self, running: Collection[str]) -> list[ExecutionState]:
        """Say that this process lives, and end the runs that nobody runs; returns how these ended.

        `running` are the executions that this process does run.
        """
        assert self._process is not None
        HostProcess.objects.filter(pk=self._process.pk).update(heartbeat_at=timezone.now())
        return self.end_lost_runs(running)

    def unregister(self) -> None:
        """Say that this process has stopped in good order."""
        assert self._process is not None
        HostProcess.objects.filter(pk=self._process.pk).update(stopped_at=timezone.now())

    def begin(self, user: User, wanted: StartRequest, input: tuple[TextBlock | ImageBlock, ...] | None = None) -> Begun:
        """Store the start of a turn and read what its run needs; raises as `store.begin_turn` does.

        `input` takes the place of what was asked for, with its addresses fetched.
        """
        assert self._process is not None
        body = wanted.body
        check_client_tools(body.client_tools)
        message = AgentMessage(id=message_id(), role="user", blocks=input or body.input)
        begun = store.begin_turn(
            user=user,
            request_id=wanted.id,
            digest=store.request_digest(body.identity()),
            message=message,
            agent=body.agent,
            conversation_id=body.conversation_id,
            base_version=body.base_revision,
            limits=body.limits,
            host_id=self._process.pk,
            client_id=body.client_id or "",
            trace_id=trace_id(),
        )
        execution = begun.execution
        setup = None
        if begun.created:
            try:
                setup = self._setup(execution, message, body.client_tools)
            except Exception as error:
                known = error if isinstance(error, AgentError) else AgentError("The agent could not be set up.")
                self.fail(_unstarted(execution, message, known), known.code, known.message)
                raise known from error
        return Begun(
            str(execution.pk),
            str(execution.conversation_id),
            user.pk,
            execution.client_id,
            execution.trace_id,
            execution.input,
            setup,
        )

    def repeated(self, user: User, wanted: StartRequest) -> bool:
        """Return whether this start was made before."""
        return Execution.objects.filter(user=user, request_id=wanted.id).exists()

    def _setup(self, execution: Execution, message: AgentMessage, client_tools: tuple[ClientTool, ...]) -> RunSetup:
        profile = execution.agent
        installed = governed.installed_tools()
        models = tuple(profile.model_configs())
        context, dropped = _fitting(store.load_context(execution.conversation, execution.base), models[0][1])
        return RunSetup(
            agent=profile.slug,
            models=models,
            retries=profile.retries(),
            instructions=profile.system_prompt,
            tools=tuple(installed[name] for name in profile.tool_names() if name in installed),
            limits=Limits.from_wire(execution.limits),
            tool_call_errors=cast(FaultPolicy, profile.tool_call_errors),
            tool_exceptions=cast(FaultPolicy, profile.tool_exceptions),
            parallel_tools=profile.parallel_tools,
            context=context,
            message=message,
            client_tools=client_tools,
            state_dropped=dropped,
        )

    def find_execution(self, user: User, pk: UUID) -> Found:
        """Return a run and its conversation; raises `ExecutionNotFound`."""
        run = _runs(user).filter(pk=pk).first()
        if run is None:
            raise ExecutionNotFound(f"there is no execution {str(pk)!r}")
        return Found(str(run.conversation_id), run.conversation.version, state_of(run))

    def find_conversation(self, user: User, pk: UUID) -> Found:
        """Return a conversation and its latest run, unless a revision holds that: the history shows it then.

        Raises `ConversationNotFound`.
        """
        conversation = store.owned_conversation(user, pk)
        run = _runs(user).filter(conversation=conversation).order_by("-created_at", "-id").first()
        state = state_of(run) if run is not None and run.revision_id is None else None
        return Found(str(conversation.pk), conversation.version, state)

    def write_progress(self, progress: Progress) -> None:
        """Store a run's transcript so far; raises `ExecutionLost` when the run is not this process's any more."""
        store.record_progress(
            self._mine(progress.execution_id),
            messages=progress.messages,
            model_context=progress.model_context,
            calls=progress.calls,
            interrupt=progress.interrupt,
            last_seq=progress.last_seq,
        )

    def note_cancel(self, execution_id: str) -> None:
        """Note when a person stopped a run."""
        store.note_cancel(execution_id)

    def finish(self, ending: Ending) -> Saved | None:
        """Store the end of a run: a revision for an outcome that counts (R57), else what remains readable of it.

        May be repeated when its answer was lost.
        """
        execution = self._mine(ending.execution_id, "conversation", "revision")
        if execution.revision is not None:
            return Saved(execution.revision.public_id, execution.revision.number, execution.conversation.version)
        outcome = ending.outcome
        if outcome is None or isinstance(outcome, ev.Cancelled):
            self._keep(execution, ending, ending.error)
            return None
        with transaction.atomic():
            revision = store.save_turn(
                execution,
                ending.messages,
                ending.model_context,
                outcome,
                ending.usage,
                last_seq=ending.last_seq + 2,
            )
            _record_usage(execution, ending)
        return Saved(revision.public_id, revision.number, revision.conversation.version)

    def fail(self, ending: Ending, code: str, message: str) -> None:
        """Store a run as failed with this code, whatever the engine said."""
        self._keep(self._mine(ending.execution_id), ending, AgentError(message, code=code))

    def judge(self, definition: ToolDefinition, user_id: int) -> ToolDecision:
        """Return what the person's rights say about a tool now."""
        user = User.objects.filter(pk=user_id, is_active=True).first()
        if user is None:
            return ToolDecision("deny", "the account is closed")
        return governed.decide(definition, user)

    def end_lost_runs(self, running: Collection[str] = ()) -> list[ExecutionState]:
        """End the runs of processes that are gone, honestly and exactly once; returns their last states.

        A row of this process that has long been live and is not among `running` is one that it lost itself.
        """
        assert self._process is not None
        now = timezone.now()
        gone = Q(host=None) | Q(host__heartbeat_at__lt=now - LOST_AFTER) | Q(host__stopped_at__lte=now)
        if connection.vendor == "sqlite":  # this process is the only one
            gone = Q()
        mine = Q(host=self._process)
        strayed = mine & Q(started_at__lt=now - STRAYED_AFTER) & ~Q(pk__in=running)
        live = Execution.objects.filter(status__in=LIVE).select_related("host", "agent", "revision")
        lost = live.filter((~mine | Q(host=None)) & gone | strayed)
        ended: list[ExecutionState] = []
        for execution in lost:
            try:
                self._end_lost(execution)
            except ExecutionLost:
                continue  # another process was first
            ended.append(state_of(execution))
        if ended:
            logger.warning("%d runs were lost with their process", len(ended))
        return ended

    def _end_lost(self, execution: Execution) -> None:
        calls = cast(Mapping[str, CallState], execution.calls)
        context = execution.model_context
        try:
            messages = [AgentMessage.from_wire(message) for message in execution.transcript or [execution.input]]
        except ValueError:
            logger.exception("the transcript of execution %s cannot be read", execution.pk)
            messages = []
        ending = Ending(
            str(execution.pk),
            None,
            None,
            (*messages, *close_open_calls(messages, calls)),
            ModelContext.from_wire(context) if context else ModelContext(model_state=None),
            None,
            execution.last_seq,
        )
        self._keep(execution, ending, AgentError(LOST_MESSAGE, code=ExecutionLost.code))

    def _keep(self, execution: Execution, ending: Ending, error: AgentError | None) -> None:
        status: Literal[ExecutionStatus.FAILED, ExecutionStatus.CANCELLED] = (
            ExecutionStatus.CANCELLED if error is None else ExecutionStatus.FAILED
        )
        with transaction.atomic():
            store.finish_failed(
                execution,
                status=status,
                messages=ending.messages,
                model_context=ending.model_context,
                outcome=ending.outcome if error is None else None,
                error_code=error.code if error else "",
                error_message=error.message if error else "",
                retryable=error.retryable if error else False,
                usage=ending.usage,
                partial=ending.partial,
                last_seq=ending.last_seq + 1,
            )
            _record_usage(execution, ending)

    def _mine(self, execution_id: str, *related: str) -> Execution:
        runs = Execution.objects.select_related(*related) if related else Execution.objects.all()
        run = runs.filter(pk=execution_id, host=self._process).first()
        if run is None:
            raise ExecutionLost(f"execution {execution_id!r} was deleted or belongs to another process")
        return run


def _record_usage(execution: Execution, ending: Ending) -> None:
    record_usage(ending.calls, user_id=execution.user_id, agent_id=execution.agent_id, execution_id=execution.pk)


def _fitting(context: Context, config: ModelConfig) -> tuple[Context, bool]:
    """Return the context without a model state that this model's protocol cannot read, and whether that was so.

    The agent has another model since: an explicit reset (E36), which the start's answer and the audit log tell of.
    """
    state = context.model_context.model_state
    if state is None or state.format == state_format(config.protocol):
        return context, False
    return context.model_copy(update={"model_context": ModelContext(model_state=None)}), True


def _runs(user: User) -> QuerySet[Execution]:
    return Execution.objects.filter(conversation__owner=user).select_related("agent", "revision", "conversation")


def _unstarted(execution: Execution, message: AgentMessage, error: AgentError) -> Ending:
    return Ending(str(execution.pk), None, error, (message,), ModelContext(model_state=None), None, 0)
