"""Conversations as their owner sees them: found, made and deleted."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from agent.models import AgentProfile
from conversations.exceptions import AgentNotFound, ConversationNotFound
from conversations.models import Conversation, User
from conversations.search import index_title
from conversations.store.keys import forget_answers


def owned_conversation(user: User, pk: UUID) -> Conversation:
    """Return the person's conversation; raises `ConversationNotFound`, also for somebody else's (R125)."""
    found = Conversation.objects.filter(pk=pk, owner=user).select_related("head", "agent").first()
    if found is None:
        raise ConversationNotFound(f"there is no conversation {str(pk)!r}")
    return found


def usable_agent(user: User, slug: str | None) -> AgentProfile:
    """Return an agent that the person may use, without a slug the usual one; raises `AgentNotFound`."""
    agents = AgentProfile.objects.visible_to(user).select_related("endpoint")
    found = (
        agents.order_by("-is_default", "order", "name").first() if slug is None else agents.filter(slug=slug).first()
    )
    if found is None:
        raise AgentNotFound("there is no agent for you" if slug is None else f"there is no agent {slug!r}")
    return found


def create_conversation(
    user: User, *, title: str | None = None, agent: str | None = None, temporary: bool = False
) -> Conversation:
    """Make an empty conversation; raises `AgentNotFound`."""
    with transaction.atomic():
        made = Conversation.objects.create(
            owner=user,
            agent=usable_agent(user, agent),
            title=title,
            title_by_person=title is not None,
            temporary=temporary,
        )
        index_title(made)
    return made


def delete_conversation(user: User, pk: UUID) -> bool:
    """Make sure that the person has no such conversation; returns whether there was one (R128)."""
    with transaction.atomic():
        found = Conversation.objects.select_for_update(of=("self",)).filter(pk=pk, owner=user).first()
        if found is None:
            return False
        found.delete()
        forget_answers(pk)
    return True
