"""Turns and contexts for the tests of the store."""

from __future__ import annotations

from typing import Any

from agent.runtime.events import Completed
from agent.runtime.ids import message_id, uuid7
from agent.runtime.messages import AgentMessage, ModelContext, ModelState, TextBlock
from conversations import store
from conversations.models import Conversation, Execution, Revision, User

DONE = Completed(stop_reason="end-turn")
AGENT = "demo"


def said(text: str, role: Any = "user") -> AgentMessage:
    return AgentMessage(id=message_id(), role=role, blocks=(TextBlock(text=text),))


def state(data: Any) -> ModelContext:
    return ModelContext(model_state=ModelState(format="x/1", data=data))


def begin(user: User, text: str | None = "Hello", conversation: Conversation | None = None, **given: Any) -> Execution:
    """Start a turn; with `text` None an answer is to be made again."""
    if conversation is not None:
        given["conversation_id"] = conversation.pk
    message = said(text) if text is not None else None
    given = {"request_id": uuid7(), "digest": "d", "agent": AGENT} | given
    return store.begin_turn(user=user, message=message, **given).execution


def turn(
    user: User,
    text: str | None,
    answer: str,
    conversation: Conversation | None = None,
    *,
    context: ModelContext | None = None,
    base: store.KnownState | None = None,
    **given: Any,
) -> Revision:
    """Start and save a turn; its model state is the answer unless there is another `context`."""
    execution = begin(user, text, conversation, **given)
    messages = (AgentMessage.from_wire(execution.input), said(answer, "assistant"))
    return store.save_turn(execution, messages, context or state(answer), DONE, base=base)


def texts(conversation: Conversation, tip: Revision | None = None) -> list[str]:
    """Return what is said at a revision, at the head if none is given."""
    conversation.refresh_from_db()
    return [message.text for message in store.load_context(conversation, tip or conversation.head).messages]


def model_state(conversation: Conversation, tip: Revision | None = None) -> Any:
    conversation.refresh_from_db()
    found = store.load_context(conversation, tip or conversation.head).model_context.model_state
    return None if found is None else found.data
