"""What the HTTP API answers with."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from agent.runtime.messages import Value
from conversations.models import Conversation


class ConversationRow(Value):
    """A conversation without its messages (R124); `revision` is the number to save against (R127)."""

    conversation_id: UUID
    title: str | None
    agent: str
    revision: int
    status: str
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
            created_at=conversation.created_at,
            updated_at=conversation.updated_at,
        )


class ConversationList(Value):
    """One's own conversations, newest first."""

    conversations: tuple[ConversationRow, ...]


class ConversationSnapshot(Value):
    """A conversation with its context at the head (R122); the opaque model state stays on the server."""

    conversation: ConversationRow
    messages: tuple[dict[str, Any], ...]


class AgentRow(Value):
    """An agent that the caller may use."""

    slug: str
    name: str
    description: str


class AgentList(Value):
    """The agents that the caller may use."""

    agents: tuple[AgentRow, ...]
