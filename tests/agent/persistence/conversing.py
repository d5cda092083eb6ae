"""What the tests of stores share: contexts and save commands."""

from __future__ import annotations

from typing import Any

from agent.runtime import AgentMessage, Context, ModelContext, ModelState, TextBlock
from agent.runtime.ports import SaveConversation


def said(*texts: str, state: Any = None) -> Context:
    """A context of user messages; `state` is the data of its model state."""
    messages = tuple(
        AgentMessage(id=f"message-{number}", role="user", blocks=(TextBlock(text=text),))
        for number, text in enumerate(texts)
    )
    model_state = None if state is None else ModelState(format="test/v1", data=state)
    return Context(messages=messages, model_context=ModelContext(model_state=model_state))


def saving(*texts: str, revision: int = 0, title: str | None = "A title", state: Any = None) -> SaveConversation:
    return SaveConversation(title=title, revision=revision, context=said(*texts, state=state))


def texts(context: Context) -> list[str]:
    return [message.text for message in context.messages]
