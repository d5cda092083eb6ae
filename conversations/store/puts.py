"""A whole context written by a client (R122, R127): what it may say, and as which revision it is kept."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agent.runtime.exceptions import InvalidArgument, ModelProtocolError
from agent.runtime.history import History
from agent.runtime.messages import AgentMessage, Context, ToolCallBlock, ToolResultBlock
from conversations.models import Conversation, RevisionKind, User
from conversations.store.changes import Changes
from conversations.store.contexts import load_path
from conversations.store.revisions import advance, append_revision, locked_conversation, refuse_while_live
from conversations.store.spelling import canonical


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
    """Return the messages with every tool result marked as imported that is not one of `base`.

    It is one only while it answers the very same call, and while no fact of its tool stands before it that came later:
    a completed result must not move behind an unknown one (E6).
    """
    facts = _Facts(base)
    return tuple(facts.claimed(message) for message in messages)


class _Facts:
    """The results of a context, and which of them still count in the messages that are taken in."""

    def __init__(self, base: tuple[AgentMessage, ...]) -> None:
        self._known: dict[str, tuple[int, ToolCallBlock, ToolResultBlock]] = {}
        self._calls: dict[str, ToolCallBlock] = {}
        self._last: dict[str, int] = {}
        calls: dict[str, ToolCallBlock] = {}
        for block in (block for message in base for block in message.blocks):
            if isinstance(block, ToolCallBlock):
                calls[block.call_id] = block
            elif isinstance(block, ToolResultBlock) and block.call_id in calls:
                self._known[block.call_id] = len(self._known), calls[block.call_id], block

    def claimed(self, message: AgentMessage) -> AgentMessage:
        """Take in a message and return it with its claims marked."""
        self._calls |= {call.call_id: call for call in message.tool_calls}
        if message.role != "tool":
            return message
        blocks = [self._result(block) if isinstance(block, ToolResultBlock) else block for block in message.blocks]
        return message.model_copy(update={"blocks": tuple(blocks)})

    def _result(self, block: ToolResultBlock) -> ToolResultBlock:
        real = self._real(block)
        return block.model_copy(update={"imported": True}) if real is None else real

    def _real(self, block: ToolResultBlock) -> ToolResultBlock | None:
        if block.call_id not in self._known:
            return None
        at, asked, real = self._known[block.call_id]
        call = self._calls.get(block.call_id)
        if call is None or call.name != asked.name:
            return None
        if canonical(call.input) != canonical(asked.input):  # which takes 1 for 1.0, as clients do, but not for true
            return None
        if block.model_copy(update={"imported": real.imported}) != real or at < self._last.get(real.name, 0):
            return None
        if not real.imported and real.execution != "not-executed":
            self._last[real.name] = at
        return real


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
