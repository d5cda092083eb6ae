"""Conversations with branches, made of random turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from hypothesis import strategies as st

from agent.models import AgentProfile
from agent.runtime.messages import AgentMessage, ModelContext, ModelState
from conversations.models import Conversation, RevisionKind, User
from conversations.store import trees

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
def planting(draw: st.DrawFn) -> tuple[list[trees.Node], int, dict[str, Any]]:
    """The revisions of a conversation, the place of its head, and its columns."""
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
    return drawn, head, columns


def planted(user: User, agent: AgentProfile, drawn: tuple[list[trees.Node], int, dict[str, Any]]) -> Conversation:
    made, head, columns = drawn
    return trees.plant_tree(user, agent, made, head=head if made else None, **columns)
