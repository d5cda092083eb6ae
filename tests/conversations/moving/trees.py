"""Conversations with branches, made of random turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias
from uuid import uuid4

from hypothesis import strategies as st

from agent.models import AgentProfile
from agent.runtime.messages import AgentMessage, ModelContext, ModelState
from conversations.models import Conversation, Execution, RevisionKind, User
from conversations.store import trees

Planting: TypeAlias = tuple[list[trees.Node], int, dict[str, Any], list[dict[str, Any]]]

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20) | st.sampled_from(
    ["数据 索引", "```\nopen", "\u202e\ufeff", "## You", "𝄞" * 3]
)
NUMBERS = st.one_of(
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15),
    st.sampled_from([1e16, -0.0, 2.5, 1e-7]),
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)
MOMENTS = st.integers(1_000_000_000, 1_700_000_000).map(lambda n: datetime.fromtimestamp(n + n % 997 / 1000, UTC))


@st.composite
def turns(draw: st.DrawFn) -> tuple[AgentMessage, ...]:
    """A person's message, perhaps a tool, and an answer."""

    def message(role: str, *blocks: dict[str, Any]) -> AgentMessage:
        return AgentMessage.from_wire({"id": f"message-{uuid4()}", "role": role, "blocks": list(blocks)})

    picture = {"type": "image", "source": {"type": "base64", "mediaType": "image/png", "data": "iVBORw0KGgo="}}
    said = [message("user", {"type": "text", "text": draw(TEXTS)}, *([picture] if draw(st.booleans()) else []))]
    if draw(st.booleans()):
        call = {"type": "tool-call", "callId": f"call_{uuid4().hex[:24]}", "name": "look", "input": draw(OBJECTS)}
        result = {
            "type": "tool-result",
            "callId": call["callId"],
            "name": "look",
            "status": draw(st.sampled_from(["success", "error"])),
            "content": [{"type": "text", "text": draw(TEXTS)}],
            "execution": draw(st.sampled_from(["completed", "unknown", "not-executed", "result-omitted"])),
        }
        said += [message("assistant", call), message("tool", result)]
    said.append(message("assistant", {"type": "reasoning", "text": "Hm."}, {"type": "text", "text": draw(TEXTS)}))
    return tuple(said)


@st.composite
def nodes(draw: st.DrawFn) -> list[trees.Node]:
    """A tree of revisions, parents first, with labels, states, keyframes and gaps in the numbers."""
    made: list[trees.Node] = []
    number = 0
    for at in range(draw(st.integers(0, 6))):
        number += draw(st.integers(1, 3))
        state = ModelState(format="tests/v1", data=draw(VALUES)) if draw(st.booleans()) else None
        kind = draw(st.sampled_from(RevisionKind.values))
        made.append(
            trees.Node(
                parent=draw(st.none() | st.integers(0, at - 1)) if at else None,
                messages=draw(turns()),
                model_context=ModelContext(model_state=state),
                kind=RevisionKind(kind),
                keyframe=draw(st.booleans()),
                label=draw(TEXTS),
                number=number,
                usage=draw(st.none() | st.just({"inputTokens": 1, "outputTokens": 2, "totalTokens": 3})),
                outcome=draw(
                    st.none()
                    | st.sampled_from([{"type": "max-tokens"}, {"type": "completed", "stopReason": "end-turn"}])
                ),
                created_at=draw(MOMENTS),
            )
        )
    return made


@st.composite
def leftovers(draw: st.DrawFn, drawn: list[trees.Node]) -> list[dict[str, Any]]:
    """Columns of turns that were not saved; `base` and `beside` are places of revisions."""
    made: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(0, 3))):
        beside = draw(st.none() | st.integers(0, len(drawn) - 1)) if drawn else None
        base = draw(st.none() | st.integers(0, len(drawn) - 1)) if drawn else None
        said = [message.to_wire() for message in draw(turns())]
        begun = draw(MOMENTS)
        failed = draw(st.booleans())
        columns: dict[str, Any] = {
            "base": base if beside is None else drawn[beside].parent,
            "beside": beside,
            "kept": 0 if beside is None else draw(st.integers(0, len(drawn[beside].messages))),
            "kind": RevisionKind.TURN if beside is None else RevisionKind.EDIT,
            "status": "failed" if failed else "cancelled",
            "outcome": None if failed else {"type": "cancelled", "reason": "user"},
            "error_code": "MODEL_FAILED" if failed else "",
            "error_message": draw(TEXTS) if failed else "",
            "retryable": failed and draw(st.booleans()),
            "input": said[0],
            "transcript": draw(st.sampled_from([[], said[:1], said])),
            "usage": draw(st.none() | st.just({"inputTokens": 1, "outputTokens": 2, "totalTokens": 3})),
            "created_at": begun,
            "finished_at": begun + timedelta(seconds=1),
        }
        if draw(st.booleans()):
            text = {"index": 0, "type": "text", "callId": "", "name": "", "text": draw(TEXTS), "stopped": False}
            columns["partial"] = {"messageId": f"message-{uuid4()}", "blocks": [text]}
        if draw(st.booleans()):
            state = {"format": "tests/v1", "data": draw(VALUES)}
            columns["model_context"] = {"checkpoint": None, "modelState": state, "usage": None}
        made.append(columns)
    return made


@st.composite
def planting(draw: st.DrawFn) -> Planting:
    """The revisions of a conversation, the place of its head, its columns, and turns that are no part of it."""
    drawn = draw(nodes())
    head = draw(st.integers(0, len(drawn) - 1)) if drawn else 0
    created = draw(MOMENTS)
    columns = {
        "title": draw(st.none() | TEXTS),
        "title_by_person": draw(st.booleans()),
        "pinned": draw(st.booleans()),
        "archived": draw(st.booleans()),
        "temporary": draw(st.booleans()),
        "tags": draw(st.lists(st.sampled_from(["work", "数据", "a b"]), unique=True)),
        "version": draw(st.integers(0, 100)),
        "created_at": created,
        "updated_at": created + timedelta(seconds=draw(st.integers(0, 1000))),
    }
    return drawn, head, columns, draw(leftovers(drawn))


def planted(user: User, agent: AgentProfile, drawn: Planting) -> Conversation:
    made, head, columns, unsaved = drawn
    conversation = trees.plant_tree(user, agent, made, head=head if made else None, **columns)
    rows = list(conversation.revisions.order_by("pk"))
    executions = []
    for at, each in enumerate(unsaved):
        places = {name: None if each[name] is None else rows[each[name]] for name in ("base", "beside")}
        version = conversation.version if at % 2 else 0
        more = {"user": user, "agent": agent, "request_id": uuid4(), "base_version": version}
        executions.append(Execution(conversation=conversation, **{**each, **places, **more}))
    trees.leave_turns(conversation, executions)
    return conversation
