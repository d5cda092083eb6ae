"""Turns that ended without a revision: no part of the conversation, but still to be read where they stood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from agent.runtime.messages import AgentMessage
from conversations.exceptions import CorruptRevision
from conversations.models import Conversation, Execution, ExecutionStatus, Revision
from conversations.store import Path
from conversations.words import Notice, cancellation, failure

MOST_TURNS = 50
MOST_LOOKED_AT = 1000


@dataclass(frozen=True, slots=True)
class UnsavedTurn:
    """A stopped or failed turn; it stands after the message `after`, or at the beginning where that is None.

    `messages` begin with the person's; `partial` is the message that was being written, as the execution keeps it.
    """

    execution_id: str
    after: str | None
    status: Literal["failed", "cancelled"]
    notice: Notice
    messages: tuple[AgentMessage, ...]
    partial: dict[str, Any] | None


def unsaved_turns(conversation: Conversation, path: Path) -> list[UnsavedTurn]:
    """Return the newest unsaved turns that began on this path, in order of time, with at most three queries.

    Raises `CorruptRevision`.
    """
    ends = _ends(path)
    newest = Execution.objects.unsaved().filter(conversation=conversation).order_by("-created_at", "-id")
    begun_here = [pk for pk, base in newest.values_list("pk", "base")[:MOST_LOOKED_AT] if base in ends]
    rows = newest.filter(pk__in=begun_here[:MOST_TURNS]).values_list(
        "pk",
        "base",
        "beside",
        "kept",
        "status",
        "error_code",
        "error_message",
        "outcome",
        "transcript",
        "input",
        "partial",
    )
    found = list(rows)
    kept = _kept({beside for _, _, beside, kept, *_ in found if kept})
    turns = []
    for pk, base, beside, stays, status, code, message, outcome, transcript, given, partial in found:
        try:
            said = tuple(AgentMessage.from_wire(each) for each in transcript or [given])
        except (TypeError, ValueError) as error:
            raise CorruptRevision(f"what execution {pk} said cannot be read") from error
        begun = _begun(said, partial)
        if status == ExecutionStatus.CANCELLED:
            notice = cancellation((outcome or {}).get("reason", ""), begun=begun)
        else:
            notice = failure(code, message, begun=begun)
        after = kept[beside][stays - 1]["id"] if stays and beside in kept else ends[base]
        turns.append(UnsavedTurn(str(pk), after, cast(Literal["failed", "cancelled"], status), notice, said, partial))
    return turns[::-1]


def _ends(path: Path) -> dict[int | None, str | None]:
    """Return the id of the last message at each revision of a path, and at its beginning."""
    last: str | None = None
    ends: dict[int | None, str | None] = {}
    if not path.steps or not path.steps[0].keyframe:
        ends[None] = None
    for step in path.steps:
        if step.messages:
            last = step.messages[-1].id
        ends[step.pk] = last
    return ends


def _kept(keys: set[int]) -> dict[int, list[dict[str, Any]]]:
    if not keys:
        return {}
    return dict(Revision.objects.filter(pk__in=keys).values_list("pk", "context"))


def _begun(messages: tuple[AgentMessage, ...], partial: dict[str, Any] | None) -> bool:
    """Tell whether the model had answered anything; a thought or half a call is no answer."""
    written = partial["blocks"] if partial is not None else ()
    return any(each.role == "assistant" for each in messages) or any(
        block["type"] == "text" and block["text"].strip() for block in written
    )
