"""Conversations to be shared, with a marker in every place that nobody else may see."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.db import transaction

from agent.runtime.messages import (
    AgentMessage,
    Base64Source,
    Block,
    ImageBlock,
    ModelContext,
    ModelState,
    ReasoningBlock,
    Role,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlSource,
)
from conversations import store
from conversations.models import Conversation, ExecutionStatus, RevisionKind, User
from tests.factories import AgentProfileFactory, ExecutionFactory

SECRET = "HIDDEN"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def message(role: Role, *blocks: Block, id: str | None = None) -> AgentMessage:
    return AgentMessage(id=id or f"message-{uuid4()}", role=role, blocks=blocks)


def said(text: str) -> AgentMessage:
    return message("user", TextBlock(text=text))


def answered(text: str) -> AgentMessage:
    return message("assistant", TextBlock(text=text))


def called(name: str = "look_up", **result: Any) -> tuple[AgentMessage, AgentMessage]:
    """A call and its result, with markers in arguments, result and ids."""
    call = ToolCallBlock(call_id=f"call-{SECRET}-{uuid4()}", name=name, input={f"key-{SECRET}": f"value-{SECRET}"})
    block: dict[str, Any] = {"status": "success", "execution": "completed", **result}
    content = (TextBlock(text=f"result-{SECRET}"),)
    return (
        message("assistant", ReasoningBlock(text=f"thought-{SECRET}"), TextBlock(text="Let me look."), call),
        message("tool", ToolResultBlock(call_id=call.call_id, name=name, content=content, **block)),
    )


def talk(owner: User, *turns: tuple[AgentMessage, ...], **columns: Any) -> Conversation:
    """A conversation with a revision for each turn."""
    state = ModelContext(model_state=ModelState(format=f"state-{SECRET}", data={"key": SECRET}))
    nodes = [
        store.Node(at - 1 if at else None, turn, state, RevisionKind.TURN, label=f"label-{SECRET}")
        for at, turn in enumerate(turns)
    ]
    agent = columns.pop("agent", None) or AgentProfileFactory(name="Guide", system_prompt=f"prompt-{SECRET}")
    columns = {"title": "A talk", "title_by_person": True, "tags": [f"tag-{SECRET}"]} | columns
    return store.plant_tree(owner, agent, nodes, **columns)


def go_on(conversation: Conversation, *messages: AgentMessage) -> Conversation:
    """The same with one more turn at its head."""
    conversation.refresh_from_db()
    with transaction.atomic():
        store.append_revision(
            conversation,
            RevisionKind.TURN,
            messages,
            ModelContext(model_state=None),
            parent_id=conversation.head_id,
            known=None,
        )
    return conversation


def everything(owner: User) -> Conversation:
    """A conversation with all that there can be in one."""
    row = talk(
        owner,
        (said("What is there?"), *called(), answered("There is **much**.")),
        (
            message(
                "user",
                TextBlock(text="And this?"),
                ImageBlock(source=UrlSource(url=f"https://example.org/x.png?key={SECRET}")),
                ImageBlock(source=Base64Source(media_type="image/png", data=PIXEL)),
                id=f"id-{SECRET}",
            ),
            *called("fetch", status="error", execution="unknown"),
            message("assistant", ReasoningBlock(text=f"only-{SECRET}")),
            answered("A picture."),
        ),
    )
    first = row.revisions.order_by("pk")[0]
    other = store.append_revision(
        row,
        RevisionKind.EDIT,
        (said(f"other-branch-{SECRET}"), answered(SECRET)),
        ModelContext(model_state=None),
        parent_id=first.pk,
        known=None,
    )
    assert other.parent_id == first.pk
    tip = row.revisions.order_by("pk")[1]
    store.restore(owner, row.pk, tip.public_id)
    ExecutionFactory(
        conversation=row,
        base=tip,
        status=ExecutionStatus.FAILED,
        error_code="MODEL_FAILED",
        error_message=f"error-{SECRET}",
        transcript=[said(f"unsaved-{SECRET}").to_wire()],
        partial={"messageId": "half", "blocks": []},
    )
    row.refresh_from_db()
    return row
