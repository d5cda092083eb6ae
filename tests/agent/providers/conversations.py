"""Random conversations as the site can hold them, for tests of the requests that every protocol builds.

A conversation is made of turns: something from the user, then steps of an answer with their tools. A turn may have been
answered, cut off, cancelled before or between two tools, or have failed before a word came; it may have been imported,
with ids and names of another product and results that are missing, late or double. Older turns may have become a
summary, and instructions may stand anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from hypothesis import strategies as st

from agent.providers.config import ModelConfig
from agent.runtime.messages import (
    AgentMessage,
    Base64Source,
    ImageBlock,
    ModelState,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlSource,
)
from agent.runtime.tools import ToolDefinition
from tests.agent.providers.pictures import PNG, SVG, TYPES, png
from tests.agent.providers.reading import kept_state

WORDS = ["Hello", "", " ", "\n\t", "Ünïcode 🎉", "a\nb", '{"a": 1}', "x" * 300, "</think>", "\ufffd"]
TEXTS = [TextBlock(text=word) for word in WORDS]
NAMES = ["look", "local.look", "local_look", "mcp.server.find", "Look", "n" * 100, "gone-for-good"]
CALL_IDS = st.sampled_from(["call-{}", "toolu {} ü", "search:{}", "call_{}" + "x" * 90, "{}"])
INPUTS = st.sampled_from(
    [{}, {"city": "Oslo"}, {"": None, "ü": [1, -2.5, True]}, {"b": {"c": {"🎉": "\n"}}, "a": 2**40}, {"x": "x" * 300}]
)
IMAGES = [
    ImageBlock(source=UrlSource(url="https://example.com/a.png")),
    *(
        ImageBlock(source=Base64Source(media_type=media_type, data=data))
        for data in (*TYPES, SVG, PNG[1:], "aGVsbG8=", png(60_000, 60_000))
        for media_type in ("image/png", "image/jpeg", "text/html")
    ),
]
OUTCOMES: list[Any] = [
    ("success", "completed"),
    ("error", "completed"),
    ("error", "not-executed"),
    ("error", "unknown"),
    ("success", "result-omitted"),
]
SAID = st.lists(st.sampled_from([*TEXTS, *IMAGES]), max_size=3)
ANSWERED = st.lists(st.sampled_from([*TEXTS, *(ReasoningBlock(text=word) for word in WORDS)]), max_size=3)
SCHEMAS: list[dict[str, Any]] = [
    {},
    {"type": "object"},
    {"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}, "required": ["city"]},
    {"type": "object", "properties": {"at": {"$ref": "#/$defs/node"}}, "$defs": {"node": {"type": "integer"}}},
    {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}},
    {"anyOf": [{"type": "object", "properties": {"a": {"type": "null"}}}, {"type": "object"}]},
    {"type": "array"},
]


@st.composite
def conversations(draw: st.DrawFn, *, max_turns: int = 4) -> tuple[AgentMessage, ...]:
    """A conversation up to where the model is asked again; the last turn may be in the middle of its tools."""
    messages: list[AgentMessage] = []
    if draw(st.booleans()):
        messages.append(_message("system", 0, [draw(st.sampled_from(TEXTS))]))
    turns = [draw(_turn(turn)) for turn in range(draw(st.integers(1, max_turns)))]
    compacted = draw(st.integers(0, len(turns))) if draw(st.booleans()) else 0
    if compacted:
        messages += draw(_compaction(list(chain(*turns[:compacted]))))
    messages += chain(*turns[compacted:])
    if draw(st.integers(0, 3)):
        messages.append(_message("user", len(messages), [TextBlock(text="Well?")]))
    return tuple(message.model_copy(update={"id": f"message-{at}"}) for at, message in enumerate(messages))


@st.composite
def _compaction(draw: st.DrawFn, older: list[AgentMessage]) -> list[AgentMessage]:
    """A summary in place of older turns, or of all but their last messages, be those in the middle of a turn."""
    kept = draw(st.integers(0, 2))
    role = draw(st.sampled_from(["system", "user", "assistant"]))
    return [_message(role, 0, [TextBlock(text="[Summary] Much was said.")]), *older[len(older) - kept :]]


@st.composite
def _turn(draw: st.DrawFn, turn: int) -> list[AgentMessage]:
    messages = [_message("user", turn, draw(SAID))]
    for step in range(draw(st.integers(0, 2))):
        calls = draw(_calls(f"{turn}-{step}"))
        messages.append(_message("assistant", turn, [*draw(ANSWERED), *calls]))
        messages += draw(_results(calls))
    return messages


@st.composite
def _calls(draw: st.DrawFn, mark: str) -> list[ToolCallBlock]:
    form = draw(CALL_IDS)
    return [
        ToolCallBlock(call_id=form.format(f"{mark}-{at}"), name=draw(st.sampled_from(NAMES)), input=draw(INPUTS))
        for at in range(draw(st.integers(0, 3)))
    ]


@st.composite
def _results(draw: st.DrawFn, calls: Sequence[ToolCallBlock]) -> list[AgentMessage]:
    """What became of the calls: mostly one result each, in any order; perhaps with a word of the user between."""
    messages: list[AgentMessage] = []
    for call in draw(st.permutations(calls)):
        for _ in range(draw(st.sampled_from([1, 1, 1, 1, 1, 1, 0, 2]))):
            status, execution = draw(st.sampled_from(OUTCOMES))
            content = tuple(draw(st.lists(st.sampled_from(TEXTS), max_size=2)))
            block = ToolResultBlock(
                call_id=call.call_id, name=call.name, status=status, content=content, execution=execution
            )
            messages.append(_message("tool", 0, [block]))
        if not draw(st.integers(0, 9)):
            role = draw(st.sampled_from(["user", "system"]))
            messages.append(_message(role, 0, [TextBlock(text="Meanwhile.")]))
    return messages


@st.composite
def tool_lists(draw: st.DrawFn) -> tuple[ToolDefinition, ...]:
    """The tools of a request, some of which no provider can be told about."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    return tuple(
        ToolDefinition(name=name, description="A tool.", input_schema=draw(st.sampled_from(SCHEMAS))) for name in names
    )


@st.composite
def states(
    draw: st.DrawFn,
    messages: Sequence[AgentMessage],
    config: ModelConfig,
    extra: Callable[[AgentMessage], st.SearchStrategy[list[Any]]] = lambda message: st.just([]),
) -> ModelState | None:
    """A model state that fits a conversation: provider ids of some calls, and `extra(message)` of some answers.

    It has been through JSON, as one from the database.
    """
    if draw(st.booleans()):
        return None
    answers = [message for message in messages if message.role == "assistant"]
    calls = [call.call_id for message in answers for call in message.tool_calls]
    ids = {
        call: draw(st.sampled_from([f"theirs-{at}", f"functions.look:{at}", "the-same"]))
        for at, call in enumerate(calls)
        if draw(st.booleans())
    }
    extras = {message.id: draw(extra(message)) for message in answers if draw(st.integers(0, 2))}
    extras = {id: value for id, value in extras.items() if value}
    parts = {"callIds": ids, "extras": extras}
    state = kept_state(config, **{name: part for name, part in parts.items() if part})
    return ModelState.model_validate_json(state.model_dump_json(by_alias=True))


def _message(role: Any, at: int, blocks: Sequence[Any]) -> AgentMessage:
    return AgentMessage(id=f"message-{at}", role=role, blocks=tuple(blocks))
