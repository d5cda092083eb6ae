"""The start of a run in the database: its row, and everything that it needs, read once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from django.db import transaction

from agent.governance import tools as governed
from agent.providers.config import ModelConfig
from agent.providers.registry import fits
from agent.providers.retry import RetryPolicy
from agent.runtime.exceptions import AgentError
from agent.runtime.ids import message_id, trace_id
from agent.runtime.limits import Limits
from agent.runtime.messages import AgentMessage, Context, ImageBlock, ModelContext, TextBlock
from agent.runtime.runtime import FaultPolicy
from agent.runtime.tools import Tool
from conversations import store
from conversations.bodies import ClientTool, StartBody
from conversations.hosting.client_tools import check_client_tools
from conversations.hosting.ending import Ending, keep
from conversations.models import Execution, ExecutionStatus, User


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A wish to start a run; `id` makes it idempotent."""

    id: UUID
    body: StartBody


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Everything a run needs, read from the database once.

    `stored_state` is the context's model state as it is stored. `state_dropped`: the agent has another model since,
    which cannot read the conversation's model state.
    """

    agent: str
    models: tuple[tuple[str, ModelConfig], ...]
    retries: RetryPolicy | None
    instructions: str
    volatile_prompt: bool
    tools: tuple[Tool, ...]
    limits: Limits
    tool_call_errors: FaultPolicy
    tool_exceptions: FaultPolicy
    parallel_tools: bool
    context: Context
    stored_state: store.KnownState | None
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
    state_dropped: bool
    setup: RunSetup | None

    @property
    def created(self) -> bool:
        return self.setup is not None


def repeated(user: User, wanted: StartRequest) -> bool:
    """Return whether this start was made before; raises as `store.begin_turn` does for one that would be refused."""
    if Execution.objects.filter(user=user, request_id=wanted.id).exists():
        return True
    body = wanted.body
    store.check_key(user, wanted.id, store.request_digest(body.identity()))
    store.check_turn(user=user, agent=body.agent, conversation_id=body.conversation_id, base_version=body.base_revision)
    return False


def begin(
    host_id: UUID, user: User, wanted: StartRequest, input: tuple[TextBlock | ImageBlock, ...] | None = None
) -> Begun:
    """Store the start of a turn and read what its run needs; the same request again gets the first answer.

    `input` takes the place of what was asked for, with attachments in the place of pictures and files; without it, a
    request that has such must have been seen before. Raises as `store.begin_turn` does, and what kept the run from
    being set up.
    """
    body = wanted.body
    check_client_tools(body.client_tools)
    said = tuple([block for block in body.input if isinstance(block, TextBlock)])
    blocks = said if input is None else input
    message = AgentMessage(id=message_id(), role="user", blocks=blocks) if blocks else None
    begun = store.begin_turn(
        user=user,
        known=input is None and len(said) < len(body.input),
        request_id=wanted.id,
        digest=store.request_digest(body.identity()),
        message=message,
        agent=body.agent,
        conversation_id=body.conversation_id,
        base_version=body.base_revision,
        branch=body.branch,
        temporary=body.temporary,
        limits=body.limits,
        host_id=host_id,
        client_id=body.client_id or "",
        trace_id=trace_id(),
    )
    execution = begun.execution
    if not begun.created and execution.status == ExecutionStatus.FAILED and execution.started_at is None:
        raise AgentError(execution.error_message, code=execution.error_code, retryable=execution.retryable)
    setup = _set_up(execution, AgentMessage.from_wire(execution.input), body.client_tools) if begun.created else None
    return Begun(
        str(execution.pk),
        str(execution.conversation_id),
        user.pk,
        execution.client_id,
        execution.trace_id,
        execution.input,
        execution.model_state_reset,
        setup,
    )


def _set_up(execution: Execution, message: AgentMessage, client_tools: tuple[ClientTool, ...]) -> RunSetup:
    """Return the setup of a run whose row is there, or end the row as one that never started."""
    try:
        setup = _read(execution, message, client_tools)
        if setup.state_dropped:
            execution.model_state_reset = True
            execution.save(update_fields=["model_state_reset"])
        return setup
    except Exception as error:
        known = error if isinstance(error, AgentError) else AgentError("The agent could not be set up.")
        nothing = Ending(str(execution.pk), None, known, (message,), ModelContext(model_state=None), None, 0)
        with transaction.atomic():
            keep(execution, nothing, known)
            execution.started_at = None
            execution.save(update_fields=["started_at"])
        raise known from error


def _read(execution: Execution, message: AgentMessage, client_tools: tuple[ClientTool, ...]) -> RunSetup:
    profile = execution.agent
    installed = governed.installed_tools()
    models = tuple(profile.model_configs())
    base = store.base_of(execution)
    context, dropped = _fitting(base.context, models[0][1])
    return RunSetup(
        agent=profile.slug,
        models=models,
        retries=profile.retries(),
        instructions=profile.system_prompt,
        volatile_prompt=profile.prompt_zone == "volatile",
        tools=tuple(installed[name] for name in profile.tool_names() if name in installed),
        limits=Limits.from_wire(execution.limits),
        tool_call_errors=cast(FaultPolicy, profile.tool_call_errors),
        tool_exceptions=cast(FaultPolicy, profile.tool_exceptions),
        parallel_tools=profile.parallel_tools,
        context=context,
        stored_state=None if dropped else base.state,
        message=message,
        client_tools=client_tools,
        state_dropped=dropped,
    )


def _fitting(context: Context, config: ModelConfig) -> tuple[Context, bool]:
    """Return the context without a model state that is of no use to this model, and whether that was so.

    The agent has another model since: an explicit reset (E36), which the start's answer and the audit log tell of.
    """
    state = context.model_context.model_state
    if state is None or fits(state, config):
        return context, False
    return context.model_copy(update={"model_context": ModelContext(model_state=None)}), True
