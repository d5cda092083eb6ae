"""Whole trees of revisions: planted into a new conversation, or copied from another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from agent.models import AgentProfile
from agent.runtime.exceptions import InvalidArgument
from agent.runtime.ids import uuid7
from agent.runtime.messages import AgentMessage, ModelContext
from conversations.attachments import attach
from conversations.models import Conversation, Execution, Revision, RevisionKind, User
from conversations.search import index_revisions, index_title
from conversations.store.chains import KnownState, StateTrail, is_change, known_state, stored_rest, stored_state
from conversations.store.contexts import NOTHING, load_path
from conversations.store.conversations import owned_conversation
from conversations.store.integrity import stored_messages, stored_model_context
from conversations.store.revisions import advance, owned_revision, refuse_while_live

BATCH = 200


@dataclass(frozen=True, slots=True)
class Node:
    """A revision to be planted; `parent` is the place of an earlier node, or the public id of a revision that exists.

    `number` None takes the next one, and so does one that the conversation has given already. `state_change` is a
    stored model state that is copied as it is, together with all that it builds on, in the place of the context's.
    """

    parent: int | UUID | None
    messages: Sequence[AgentMessage]
    model_context: ModelContext = NOTHING
    kind: RevisionKind = RevisionKind.IMPORT
    keyframe: bool = False
    state_change: dict[str, Any] | None = None
    label: str = ""
    number: int | None = None
    public_id: UUID = field(default_factory=uuid7)
    usage: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = None
    created_at: datetime = field(default_factory=timezone.now)


def plant_tree(
    user: User,
    agent: AgentProfile,
    nodes: Sequence[Node],
    *,
    head: int | None = -1,
    **columns: Any,
) -> Conversation:
    """Make a conversation of these revisions; `head` is the place of one of them, `columns` are the conversation's.

    All of it is one transaction. Raises `InvalidArgument` for a node before its parent.
    """
    with transaction.atomic():
        conversation = Conversation.objects.create(owner=user, agent=agent, **columns)
        index_title(conversation)
        rows = graft(conversation, nodes)
        conversation.head = rows[head] if rows and head is not None else None
        conversation.head_version = conversation.version
        conversation.save(update_fields=["head", "head_version"])
    return conversation


def graft(conversation: Conversation, nodes: Sequence[Node]) -> list[Revision]:
    """Add revisions to a conversation and leave its head where it is; part of a transaction that holds its lock.

    The version rises to their highest number: the next revision takes one above it. Returns them in order. Raises
    `InvalidArgument` for a node before its parent, or below a revision that is not there, and `AttachmentNotFound` for
    a picture that its owner does not have.
    """
    if not nodes:
        return []
    attach(conversation, [message for node in nodes for message in node.messages])
    named = [node.parent for node in nodes if isinstance(node.parent, UUID)]
    known = dict(Revision.objects.filter(conversation=conversation, public_id__in=named).values_list("public_id", "pk"))
    given = set(conversation.revisions.values_list("number", flat=True))
    highest = max([conversation.version, *given])
    rows: list[Revision] = []
    states: list[KnownState | None] = []
    for pk, node in zip(_keys(len(nodes)), nodes, strict=True):
        state = node.model_context.model_state
        base = states[node.parent] if isinstance(node.parent, int) and node.parent < len(states) else None
        stored = node.state_change or stored_state(state, None if node.keyframe else base)
        number = highest + 1 if node.number is None or node.number in given else node.number
        given.add(number)
        highest = max(highest, number)
        row = Revision(
            pk=pk,
            public_id=node.public_id,
            conversation=conversation,
            number=number,
            parent_id=_parent(node, rows, known),
            kind=node.kind,
            keyframe=node.keyframe,
            label=node.label,
            model_state=stored,
            model_context=stored_rest(node.model_context),
            context=[message.to_wire() for message in node.messages],
            usage=node.usage,
            outcome=node.outcome,
            created_at=node.created_at,
        )
        rows.append(row)
        states.append(known_state(pk, number, state, stored))
    Revision.objects.bulk_create(rows, batch_size=BATCH)
    index_revisions(conversation, rows)
    if highest > conversation.version:
        Conversation.objects.filter(pk=conversation.pk).update(version=highest)
        conversation.version = highest
    return rows


def leave_turns(conversation: Conversation, executions: Sequence[Execution]) -> None:
    """Keep turns that ended elsewhere and are no part of the conversation; part of a transaction that holds its lock.

    Raises `AttachmentNotFound` for a picture that its owner does not have.
    """
    attach(conversation, [AgentMessage.from_wire(each) for row in executions for each in row.transcript])
    begun = {row.pk: row.created_at for row in executions}
    Execution.objects.bulk_create(executions, batch_size=BATCH)
    for row in executions:
        row.created_at = begun[row.pk]  # which becomes the present when a row is made
    Execution.objects.bulk_update(executions, ["created_at"], batch_size=BATCH)


def fork(
    user: User, conversation_id: UUID, revision_id: UUID | None = None, *, whole: bool = False, title: str | None = None
) -> Conversation:
    """Copy the branch that ends at a revision, or with `whole` all branches, into a new conversation.

    `revision_id` None is the head. Labels, model states and numbers are copied, unsaved turns are not. Raises
    `ConversationNotFound`, `RevisionNotFound` and `CorruptRevision`.
    """
    with transaction.atomic():
        source = owned_conversation(user, conversation_id)
        tip = source.head if revision_id is None else owned_revision(source, revision_id)
        rows = Revision.objects.filter(conversation=source).order_by("pk")
        if not whole:
            rows = rows.filter(pk__in=[step.pk for step in load_path(source, tip).steps])
        nodes: list[Node] = []
        places: dict[int, int] = {}
        trail = StateTrail()
        for row in rows.iterator(BATCH):
            places[row.pk] = len(nodes)
            trail.check(row.pk, row.parent_id, row.number, row.keyframe, row.model_state)
            change = row.model_state if is_change(row.model_state) else None
            nodes.append(
                Node(
                    places.get(row.parent_id) if row.parent_id is not None else None,
                    stored_messages(row.context, row.number),
                    stored_model_context(None if change else row.model_state, row.model_context, row.number),
                    RevisionKind(row.kind),
                    row.keyframe,
                    change,
                    row.label,
                    row.number,
                    usage=row.usage,
                    outcome=row.outcome,
                    created_at=row.created_at,
                )
            )
        return plant_tree(
            user,
            source.agent,
            nodes,
            head=places[tip.pk] if tip is not None else None,
            title=source.title if title is None else title,
            title_by_person=source.title_by_person or title is not None,
            tags=source.tags,
            temporary=source.temporary,
        )


def move_head(conversation: Conversation, row: Revision, now: datetime | None = None) -> None:
    """Make a grafted revision the head; part of a transaction. Raises `InvalidState` while a run is live.

    `now` is when the conversation counts as changed.
    """
    advance(conversation, head=True, now=now or timezone.now())
    refuse_while_live(conversation)
    Conversation.objects.filter(pk=conversation.pk).update(head=row)
    conversation.head = row


def _parent(node: Node, rows: Sequence[Revision], known: dict[UUID, int]) -> int | None:
    match node.parent:
        case None:
            return None
        case UUID():
            if node.parent in known:
                return known[node.parent]
        case place if 0 <= place < len(rows):
            return rows[place].pk
    raise InvalidArgument(f"a revision comes before its parent {node.parent!r}")


def _keys(count: int) -> list[int]:
    """Return keys for new rows, rising: a child is stored with its parent's key."""
    table = Revision._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", [table, count]
            )
            return sorted(row[0] for row in cursor.fetchall())
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
        last = (cursor.fetchone() or (0,))[0]
        return list(range(last + 1, last + 1 + count))
