"""What the HTTP API answers with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from agent.models import AgentProfile
from agent.providers.windows import context_window
from agent.runtime.messages import (
    AgentMessage,
    Context,
    Usage,
    Value,
)
from conversations.models import Attachment, Conversation, Revision, RevisionKind
from conversations.search import Found, Hit, Piece

PREVIEW = 120  # characters


class ConversationRow(Value):
    """A conversation without its messages (R124); `revision` is the number to save against (R127).

    `head_revision_id` is null until something is stored.
    """

    conversation_id: UUID
    title: str | None
    agent: str
    revision: int
    status: Literal["active", "archived"]
    pinned: bool
    tags: tuple[str, ...]
    temporary: bool
    head_revision_id: UUID | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, conversation: Conversation) -> ConversationRow:
        return cls(
            conversation_id=conversation.pk,
            title=conversation.title,
            agent=conversation.agent.slug,
            revision=conversation.version,
            status="archived" if conversation.archived else "active",
            pinned=conversation.pinned,
            tags=tuple(conversation.tags),
            temporary=conversation.temporary,
            head_revision_id=conversation.head.public_id if conversation.head is not None else None,
            created_at=conversation.created_at,
            updated_at=conversation.updated_at,
        )


class ConversationList(Value):
    """One's own conversations, newest first."""

    conversations: tuple[ConversationRow, ...]
    next_cursor: str | None


class ConversationSnapshot(Value):
    """A conversation with its context at the head (R122, E24)."""

    conversation: ConversationRow
    context: Context

    @property
    def about(self) -> UUID:
        return self.conversation.conversation_id


class Owner(Value):
    """Whose conversation it is."""

    id: int
    email: str


class ReadConversation(Value):
    """A conversation that an administrator reads; what the model keeps for itself stays on the server."""

    conversation: ConversationRow
    owner: Owner
    messages: tuple[dict[str, Any], ...]


class RevisionEntry(Value):
    """A revision without its messages; `preview` is the beginning of what a person said in it, if anybody did."""

    revision_id: UUID
    number: int
    parent_id: UUID | None
    kind: RevisionKind
    label: str | None
    is_head: bool
    on_head_path: bool
    message_count: int
    preview: str
    usage: Usage | None
    outcome: dict[str, Any] | None
    created_at: datetime

    @classmethod
    def of(
        cls, revision: Revision, conversation: Conversation, parent_id: UUID | None, on_path: Collection[int]
    ) -> RevisionEntry:
        return cls(
            revision_id=revision.public_id,
            number=revision.number,
            parent_id=parent_id,
            kind=RevisionKind(revision.kind),
            label=revision.label or None,
            is_head=revision.pk == conversation.head_id,
            on_head_path=revision.pk in on_path,
            message_count=len(revision.context),
            preview=_preview(revision.context),
            usage=Usage.from_wire(revision.usage) if revision.usage else None,
            outcome=revision.outcome,
            created_at=revision.created_at,
        )


class RevisionList(Value):
    """Revisions, newest first; `message_count` says how many messages a revision itself holds."""

    revisions: tuple[RevisionEntry, ...]
    next_before: int | None


class RevisionSnapshot(Value):
    """A revision and the whole context there."""

    revision: RevisionEntry
    context: Context


class RevisionChanged(Value):
    """A revision that was named, and its conversation since."""

    conversation: ConversationRow
    revision: RevisionEntry


class RevisionDiff(Value):
    """What a context lost and gained on the way from one revision to another."""

    from_id: UUID
    to_id: UUID
    common: int
    common_end: int
    removed: tuple[AgentMessage, ...]
    added: tuple[AgentMessage, ...]
    model_state_changed: bool


class TextPiece(Value):
    """A part of a text; `match` tells whether it was searched for."""

    text: str
    match: bool


class SearchHit(Value):
    """A message that was found; without revision, message and role the conversation itself, by its title.

    `snippet` is the part of the message around a match, and `title` the title of the conversation.
    """

    conversation: ConversationRow
    revision_id: UUID | None
    message_id: str | None
    role: Literal["user", "assistant"] | None
    created_at: datetime
    title: tuple[TextPiece, ...]
    snippet: tuple[TextPiece, ...]

    @classmethod
    def of(cls, hit: Hit) -> SearchHit:
        return cls(
            conversation=ConversationRow.of(hit.conversation),
            revision_id=hit.revision_id,
            message_id=hit.message_id,
            role=hit.role,
            created_at=hit.created_at,
            title=_pieces(hit.title),
            snippet=_pieces(hit.snippet),
        )


class SearchResult(Value):
    """What was found, newest first; `next_cursor` leads to the next page and is null on the last."""

    hits: tuple[SearchHit, ...]
    next_cursor: str | None

    @classmethod
    def of(cls, found: Found) -> SearchResult:
        return cls(
            hits=tuple(map(SearchHit.of, found.hits)),
            next_cursor=None if found.after is None else str(found.after),
        )


def _pieces(pieces: Sequence[Piece]) -> tuple[TextPiece, ...]:
    return tuple(TextPiece(text=piece.text, match=piece.match) for piece in pieces)


class AgentRow(Value):
    """An agent that the caller may use; `context_window` is in tokens (P99)."""

    slug: str
    name: str
    description: str
    context_window: int

    @classmethod
    def of(cls, agent: AgentProfile) -> AgentRow:
        window = context_window(agent.model, agent.context_window)
        return cls(slug=agent.slug, name=agent.name, description=agent.description, context_window=window)


class AgentList(Value):
    """The agents that the caller may use."""

    agents: tuple[AgentRow, ...]


class AttachmentRow(Value):
    """A file that was uploaded; `width` and `height` are those of a picture, `pages` those of a PDF."""

    attachment_id: UUID
    name: str
    media_type: str
    size: int
    width: int | None
    height: int | None
    pages: int | None

    @classmethod
    def of(cls, attachment: Attachment) -> AttachmentRow:
        return cls(
            attachment_id=attachment.pk,
            name=attachment.name,
            media_type=attachment.media_type,
            size=attachment.size,
            width=attachment.width,
            height=attachment.height,
            pages=attachment.pages,
        )


class ConversationHead(Value):
    """A conversation after a change."""

    conversation: ConversationRow

    @property
    def about(self) -> UUID:
        return self.conversation.conversation_id


class Problem(Value):
    """What was refused and why; `current_revision` comes with `CONVERSATION_CONFLICT`."""

    code: str
    message: str
    current_revision: int | None = None


class ErrorBody(Value):
    """The one shape of errors."""

    error: Problem


REFUSED = {frozenset({400, 401, 403, 404, 409, 413, 415, 429, 500, 503}): ErrorBody}


def _preview(messages: list[dict[str, Any]]) -> str:
    """Return how a revision's first message of a person begins; of damaged ones nothing."""
    try:
        said = (message["blocks"] for message in messages if message["role"] == "user")
        texts = (block["text"] for blocks in said for block in blocks if block["type"] == "text")
        return " ".join(next(texts, "")[: 2 * PREVIEW].split())[:PREVIEW]
    except (KeyError, TypeError, AttributeError):
        return ""
