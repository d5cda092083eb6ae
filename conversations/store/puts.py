"""A whole context written by a client (R122, R127): what it may say, and as which revision it is kept."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agent.runtime.exceptions import InvalidArgument, ModelProtocolError
from agent.runtime.history import History
from agent.runtime.messages import AgentMessage, Context, ToolResultBlock
from conversations.models import Conversation, RevisionKind, User
from conversations.store.changes import Changes
from conversations.store.contexts import load_path
from conversations.store.revisions import advance, append_revision, locked_conversation, refuse_while_live


def put_conversation(user: User, pk: UUID, title: str | None, known: int, context: Context) -> Conversation:
    """Replace title and context, if nothing has changed since the version `known`; what was there stays a revision.

    Results of tools that are not those of the head are marked as imported. Raises `ConversationNotFound`,
    `ConversationConflict`, `InvalidState` while a run is live, and `InvalidArgument` for system messages, a model state
    that is neither the head's nor null, ids that repeat, and calls without their one result.
    """
    with transaction.atomic():
        conversation = locked_conversation(user, pk, known)
        refuse_while_live(conversation)
        path = load_path(conversation, conversation.head)
        base = path.context
        messages = _checked(context, base)
        if title != conversation.title:
            Changes(title=title).write(conversation)
        if (messages, context.model_context) == (base.messages, base.model_context):
            advance(conversation, now=timezone.now())
            return conversation
        extends = messages[: len(base.messages)] == base.messages
        append_revision(
            conversation,
            RevisionKind.PUT,
            messages[len(base.messages) :] if extends else messages,
            context.model_context,
            parent_id=conversation.head_id,
            known=known,
            exact=True,
            keyframe=not extends,
            base=path.state,
        )
    return conversation


def claimed(messages: tuple[AgentMessage, ...], base: tuple[AgentMessage, ...] = ()) -> tuple[AgentMessage, ...]:
    """Return the messages with every tool result marked as imported that is not one of `base`."""
    known = {block.call_id: block for message in base for block in message.blocks if isinstance(block, ToolResultBlock)}
    return tuple(_claimed(message, known) for message in messages)


def _claimed(message: AgentMessage, known: dict[str, ToolResultBlock]) -> AgentMessage:
    if message.role != "tool":
        return message
    blocks = []
    for block in message.blocks:
        if isinstance(block, ToolResultBlock):
            real = known.get(block.call_id)
            same = real is not None and block.model_copy(update={"imported": real.imported}) == real
            block = real if real is not None and same else block.model_copy(update={"imported": True})
        blocks.append(block)
    return message.model_copy(update={"blocks": tuple(blocks)})


def _checked(context: Context, base: Context) -> tuple[AgentMessage, ...]:
    state = context.model_context.model_state
    if state is not None and state != base.model_context.model_state:
        raise InvalidArgument("modelState is the one that was read, or null")
    check_messages(context.messages)
    return claimed(context.messages, base.messages)


def check_messages(messages: tuple[AgentMessage, ...]) -> None:
    """Raise `InvalidArgument` for what a client may not write into a history."""
    seen: set[str] = set()
    for at, message in enumerate(messages):
        if message.role == "system":
            raise InvalidArgument(f"messages.{at}: system messages are the agent's own")
        if message.id in seen:
            raise InvalidArgument(f"messages.{at}: the message id {message.id[:64]!r} is there twice")
        seen.add(message.id)
        for block in message.blocks:
            if block.type not in ALLOWED[message.role]:
                raise InvalidArgument(f"messages.{at}: a {message.role} message holds no {block.type}")
    try:
        history = History.of(messages)
    except ModelProtocolError as error:
        raise InvalidArgument(f"messages: {error.message}") from None
    if open_calls := history.issued - history.answered:
        raise InvalidArgument(f"messages: the call {min(open_calls)[:64]!r} has no result")


ALLOWED = {
    "user": frozenset({"text", "image"}),
    "assistant": frozenset({"text", "image", "reasoning", "tool-call"}),
    "tool": frozenset({"tool-result"}),
    "system": frozenset[str](),
}
