"""What the host does in the database: plain functions for its `DatabaseExecutor`, each a short transaction or two."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from django.utils import timezone

from agent.governance import tools as governed
from agent.models import ModelEndpoint
from agent.providers.config import ProtocolName
from agent.runtime.exceptions import AgentError
from agent.runtime.messages import AgentMessage, ImageBlock, ModelContext, TextBlock
from agent.runtime.ports import ToolDecision
from agent.runtime.recovery import CallState
from agent.runtime.state import ExecutionState
from agent.runtime.tools import ToolDefinition
from conversations import store
from conversations.attachments import owned_attachments
from conversations.exceptions import ExecutionLost, ExecutionNotFound
from conversations.hosting import ending as ends
from conversations.hosting import lost
from conversations.hosting import setup as starts
from conversations.hosting.ending import Ending, Saved
from conversations.hosting.past import state_of
from conversations.hosting.setup import Begun, StartRequest
from conversations.models import Attachment, Execution, HostProcess, User
from conversations.models.executions import ExecutionSet


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

    def repeated(self, user: User, wanted: StartRequest) -> bool:
        """Return whether this start was made before, see `setup.repeated`."""
        return starts.repeated(user, wanted)

    def begin(self, user: User, wanted: StartRequest, input: tuple[TextBlock | ImageBlock, ...] | None = None) -> Begun:
        """Store the start of a turn, see `setup.begin`."""
        assert self._process is not None
        return starts.begin(self._process.pk, user, wanted, input)

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
        run = _runs(user).made_here().filter(conversation=conversation).order_by("-created_at", "-id").first()
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
        """Store the end of a run, see `ending.save`."""
        return ends.save(self._mine(ending.execution_id, "conversation", "revision"), ending)

    def fail(self, ending: Ending, code: str, message: str) -> None:
        """Store a run as failed with this code, whatever the engine said."""
        ends.keep(self._mine(ending.execution_id), ending, AgentError(message, code=code))

    def end_lost_runs(self, running: Collection[str] = ()) -> list[ExecutionState]:
        """End the runs that nobody runs, see `lost.end_lost_runs`."""
        assert self._process is not None
        return lost.end_lost_runs(self._process, running)

    def judge(self, definition: ToolDefinition, user_id: int) -> ToolDecision:
        """Return what the person's rights say about a tool now."""
        user = User.objects.filter(pk=user_id, is_active=True).first()
        if user is None:
            return ToolDecision("deny", "the account is closed")
        return governed.decide(definition, user)

    def attachments(self, user_id: int, ids: Collection[UUID]) -> dict[UUID, Attachment]:
        """Return attachments of a person; raises `AttachmentNotFound`."""
        return owned_attachments(user_id, ids)

    def _mine(self, execution_id: str, *related: str) -> Execution:
        runs = Execution.objects.select_related(*related) if related else Execution.objects.all()
        run = runs.filter(pk=execution_id, host=self._process).first()
        if run is None:
            raise ExecutionLost(f"execution {execution_id!r} was deleted or belongs to another process")
        return run


def _runs(user: User) -> ExecutionSet:
    return Execution.objects.filter(conversation__owner=user).select_related("agent", "revision", "conversation")
