"""Conversations as JSON, piece by piece: a batch of revisions is in memory at a time, and no transaction stays open."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import Any, cast
from uuid import UUID

import orjson
from django.utils import timezone

from agent.runtime.messages import AgentMessage, ModelContext, Usage, Value
from agent.runtime.recovery import CallState, close_open_calls
from conversations.attachments import open_bytes
from conversations.exceptions import AttachmentMissing, ConversationNotFound, CorruptRevision
from conversations.models import Attachment, Conversation, Execution, Revision, RevisionKind
from conversations.moving.document import HalfMessage, RevisionDocument, UnsavedDocument, beginning
from conversations.moving.seals import Trail, seal
from conversations.store.chains import WholeStates

BATCH = 100
PIECE = 64 * 1024
MOST_IN_MEMORY = 1024 * 1024
UNREADABLE = (CorruptRevision,)


def dump(conversations: Iterable[Conversation], *, strict: bool = False) -> Iterator[bytes]:
    """Yield a JSON file of these conversations, which come with `agent` and `head`.

    Each is read to its end before the file goes on. One that cannot be read is named in `damaged` and costs no other;
    with `strict` it raises `CorruptRevision` instead. One that is deleted meanwhile is left out.
    """
    yield _json(beginning(timezone.now()))[:-1] + b',"conversations":['
    first, damaged = True, []
    for conversation in conversations:
        with SpooledTemporaryFile(MOST_IN_MEMORY) as spool:
            try:
                spool.writelines(_conversation(conversation))
            except ConversationNotFound:
                continue
            except UNREADABLE as error:
                if strict:
                    raise
                damaged.append({"conversationId": conversation.pk, "title": conversation.title, "error": error.message})
                continue
            spool.seek(0)
            yield b"" if first else b","
            first = False
            while piece := spool.read(PIECE):
                yield piece
    yield b"]" + (b',"damaged":' + _json(damaged) if damaged else b"") + b"}"


def _conversation(conversation: Conversation) -> Iterator[bytes]:
    yield _json(_fields(conversation))[:-1] + b',"revisions":['
    head = conversation.head
    found = head is None
    trail = Trail()
    for at, document in enumerate(_revisions(conversation, trail)):
        found = found or (head is not None and document.revision_id == head.public_id)
        yield (b"," if at else b"") + _json(document.to_wire())
    if not found:
        raise ConversationNotFound(f"conversation {str(conversation.pk)!r} was deleted")
    yield b'],"attachments":['
    for at, attachment in enumerate(Attachment.objects.filter(conversations=conversation).order_by("pk")):
        yield (b"," if at else b"") + _json(_attachment(attachment))
    yield b'],"unsavedTurns":['
    for at, turn in enumerate(_unsaved(conversation, trail)):
        yield (b"," if at else b"") + _json(turn.to_wire())
    yield b"]}"


def _fields(conversation: Conversation) -> dict[str, Any]:
    return {
        "conversationId": conversation.pk,
        "externalId": conversation.external_id,
        "title": conversation.title,
        "titleByPerson": conversation.title_by_person,
        "agent": conversation.agent.slug,
        "pinned": conversation.pinned,
        "archived": conversation.archived,
        "tags": conversation.tags,
        "temporary": conversation.temporary,
        "version": conversation.version,
        "createdAt": conversation.created_at,
        "updatedAt": conversation.updated_at,
        "head": conversation.head.public_id if conversation.head else None,
    }


def _revisions(conversation: Conversation, trail: Trail) -> Iterator[RevisionDocument]:
    """Yield the revisions, parents first, with their seals; what is added meanwhile is left out."""
    names = dict[int | None, UUID | None]({None: None})
    rows = Revision.objects.filter(conversation=conversation).order_by("pk")
    parents = dict(rows.values_list("pk", "parent_id"))
    states = WholeStates(parents.values())
    rows, last = rows.filter(pk__lte=max(parents, default=0)), 0
    while batch := list(rows.filter(pk__gt=last)[:BATCH]):
        turns = _turns_of(batch)
        for row in batch:
            try:
                state = states.add(row.pk, row.parent_id, row.number, row.model_state)
                document = _document(row, names, state, turns.get(row.pk))
                names[row.pk] = row.public_id
                yield document.model_copy(update={"seal": seal(trail.add(document))})
            except (KeyError, TypeError, ValueError) as error:
                raise CorruptRevision(f"revision {row.number} cannot be read") from error
        last = batch[-1].pk


def _turns_of(rows: Sequence[Revision]) -> dict[int | None, UUID]:
    """Return which turns these revisions are that were not saved at first."""
    recovered = [row.pk for row in rows if row.kind == RevisionKind.RECOVERED]
    if not recovered:
        return {}
    return dict(Execution.objects.filter(revision__in=recovered).values_list("revision_id", "pk"))


def _document(
    row: Revision, names: dict[int | None, UUID | None], state: Any, execution_id: UUID | None
) -> RevisionDocument:
    return RevisionDocument.from_wire(
        {
            "revisionId": row.public_id,
            "number": row.number,
            "parent": names[row.parent_id],
            "kind": row.kind,
            "label": row.label,
            "keyframe": row.keyframe,
            "messages": row.context,
            "modelContext": {**row.model_context, "modelState": state},
            "usage": row.usage,
            "outcome": row.outcome,
            "createdAt": row.created_at,
            "executionId": execution_id,
        }
    )


def _attachment(row: Attachment) -> dict[str, Any]:
    try:
        data = b64encode(open_bytes(row)).decode()
    except AttachmentMissing:
        data = None
    return {"attachmentId": row.pk, "name": row.name, "mediaType": row.media_type, "data": data}


def _unsaved(conversation: Conversation, trail: Trail) -> Iterator[UnsavedDocument]:
    """Yield the turns that were stopped or failed and that nobody continued from, with their seals."""
    runs = Execution.objects.unsaved().filter(conversation=conversation)
    for run in runs.select_related("agent", "base", "beside").order_by("created_at", "pk").iterator(BATCH):
        try:
            document = _unsaved_document(run, current=conversation.head_version <= run.base_version)
            yield document.model_copy(update={"seal": seal(trail.of(document))})
        except KeyError:  # the revision below which it began was added meanwhile
            continue
        except (AttributeError, TypeError, ValueError) as error:
            raise CorruptRevision(f"what execution {run.pk} said cannot be read") from error


def _unsaved_document(run: Execution, *, current: bool) -> UnsavedDocument:
    said = tuple(AgentMessage.from_wire(each) for each in run.transcript or [run.input])
    said += close_open_calls(said, cast(dict[str, CallState], run.calls))
    return UnsavedDocument.from_wire(
        {
            "executionId": run.pk,
            "after": run.base.public_id if run.base else None,
            "beside": run.beside.public_id if run.beside else None,
            "kept": run.kept if run.beside else 0,
            "kind": run.kind if run.beside else RevisionKind.TURN,
            "current": current,
            "agent": run.agent.slug,
            "status": run.status,
            "outcome": run.outcome,
            "error": {"code": run.error_code, "message": run.error_message, "retryable": run.retryable}
            if run.error_code
            else None,
            "messages": [message.to_wire() for message in said],
            "unfinished": _readable(HalfMessage, run.partial),
            "modelContext": _readable(ModelContext, run.model_context),
            "usage": _readable(Usage, run.usage),
            "createdAt": run.created_at,
            "finishedAt": run.finished_at,
        }
    )


def _readable(kind: type[Value], stored: Any) -> Any:
    """Return a part that can be done without; nothing where it cannot be read."""
    try:
        return kind.from_wire(stored)
    except (TypeError, ValueError):
        return None


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_UTC_Z)
