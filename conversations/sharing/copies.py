"""A reader's own conversation that begins with what a link shows."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from agent.models import AgentProfile
from agent.runtime.messages import AgentMessage
from conversations.attachments import copied_messages
from conversations.models import Conversation, ShareLink, User
from conversations.sharing.redaction import said_messages, shared_messages
from conversations.sharing.snapshots import turns
from conversations.store import Node, load_context, plant_tree, usable_agent


def copy_share(user: User, share: ShareLink) -> Conversation:
    """Make a conversation of the shared messages, without tools, one revision for each turn.

    It goes on with the same agent, if the person may use it, else with their usual one. Raises `AgentNotFound` where
    there is none for them, `CorruptRevision`, and `AttachmentMissing` for a picture that is not there any more.
    """
    said = said_messages(shared_messages(load_context(share.conversation, share.revision).messages))
    with transaction.atomic():
        return plant_tree(
            user,
            agent_for(user, share),
            _nodes(turns(copied_messages(user, share.owner, said))),
            title=share.title or None,
            title_by_person=share.conversation.title_by_person,
        )


def agent_for(user: User, share: ShareLink) -> AgentProfile:
    """Return the agent with which this person goes on; raises `AgentNotFound`."""
    same = AgentProfile.objects.visible_to(user).filter(pk=share.conversation.agent_id).first()
    return usable_agent(user, None) if same is None else same


def _nodes(said: Sequence[tuple[AgentMessage, ...]]) -> list[Node]:
    return [Node(at - 1 if at else None, turn) for at, turn in enumerate(said)]
