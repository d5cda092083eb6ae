"""Stored messages in the shape in which the page shows them; the templates and the page's script share it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, assert_never

from django.utils.safestring import SafeString

from agent.runtime.excerpts import excerpt
from agent.runtime.messages import (
    AgentMessage,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlSource,
)
from conversations.attachments import QuotedFile, picture_of, quoted_file, quoted_files
from conversations.rendering import render
from conversations.sources import Sources
from conversations.unsaved import UnsavedTurn
from conversations.versions import Versions
from conversations.words import CUT_OFF, DECISIONS, Notice, decision

CardStatus: TypeAlias = Literal[
    "writing", "pending", "waiting", "running", "done", "error", "rejected", "not-executed", "unknown", "result-omitted"
]


NO_VERSIONS: Mapping[str, Versions] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Said:
    """What a person wrote, shown as it was written."""

    text: str = ""
    template = "chat/said.html"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model wrote."""

    html: SafeString = field(default_factory=SafeString)
    template = "chat/answer.html"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the model thought."""

    html: SafeString = field(default_factory=SafeString)
    template = "chat/reasoning.html"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that is an attachment; any other is shown by name only, and nothing is fetched.

    `source` is where the picture is.
    """

    name: str = ""
    source: str = ""
    template = "chat/picture.html"


@dataclass(frozen=True, slots=True)
class File:
    """A text or PDF that somebody attached; `source` is where it is."""

    name: str = ""
    kind: str = ""
    text: str = ""
    source: str = ""
    template = "chat/file.html"


@dataclass(frozen=True, slots=True)
class Field:
    """One argument of a call: a text as it is, anything else as JSON."""

    name: str
    text: str
    json: bool


@dataclass(frozen=True, slots=True)
class Card:
    """A tool call with its result; `arguments` is what stands there where there are no `fields`.

    A long result is cut; `whole` is where all of it is.
    """

    call_id: str = ""
    name: str = ""
    fields: tuple[Field, ...] = ()
    arguments: str = "{}"
    status: CardStatus = "pending"
    result: str = ""
    decision: str = ""
    whole: str = ""
    template = "chat/tool.html"


Shown: TypeAlias = Said | Answer | Reasoning | Picture | File | Card


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message of the page; results stand in the cards of their calls. `versions` begin with it."""

    id: str
    role: Literal["user", "assistant"]
    who: str
    blocks: tuple[Shown, ...] = ()
    versions: Versions | None = None
    template = "chat/message.html"


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A turn that is no part of the conversation; `notice` says why. One that is `repeatable` can be sent again from
    the page: what was said is one text."""

    id: str
    status: Literal["failed", "cancelled"]
    notice: Notice
    repeatable: bool
    messages: tuple[ShownMessage, ...]
    template = "chat/run.html"


@dataclass(frozen=True, slots=True)
class CutOff:
    """The model's limit ended the answer above."""

    text: str = CUT_OFF
    template = "chat/cut_off.html"


Entry: TypeAlias = ShownMessage | ShownRun | CutOff


@dataclass(frozen=True, slots=True)
class History:
    """The end of a conversation in order of time; `earlier` messages before it are left out."""

    entries: tuple[Entry, ...]
    earlier: int


def history(
    messages: Sequence[AgentMessage],
    agent_name: str,
    *,
    limit: int,
    unsaved: Sequence[UnsavedTurn] = (),
    cut_off: bool = False,
    sources: Sources = Sources(),  # noqa: B008  it is frozen
    versions: Mapping[str, Versions] = NO_VERSIONS,
) -> History:
    """Return about the last `limit` messages, from the beginning of a turn on, with the `unsaved` turns among them.

    `cut_off` tells that the model's limit ended the last of them; `versions` stand at messages, by their ids.
    """
    start = max(0, len(messages) - limit)
    while start > 0 and messages[start].role != "user":
        start -= 1
    entries = list(_entries(messages[start:], unsaved, agent_name, sources, versions, whole=start == 0))
    if cut_off:
        last = max((at for at, entry in enumerate(entries) if isinstance(entry, ShownMessage)), default=-1)
        entries.insert(last + 1, CutOff())
    return History(tuple(entries), start)


def blank_messages(agent_name: str) -> dict[str, ShownMessage]:
    """Return an empty message of each role, from which the page's script makes its own."""
    return {"user": ShownMessage("", "user", "You"), "assistant": ShownMessage("", "assistant", agent_name)}


def blank_blocks() -> dict[str, Shown]:
    """Return an empty block of each kind, likewise."""
    return {
        "said": Said(),
        "answer": Answer(),
        "reasoning": Reasoning(),
        "picture": Picture(),
        "file": File(),
        "tool": Card(),
    }


def _entries(
    messages: Sequence[AgentMessage],
    unsaved: Sequence[UnsavedTurn],
    agent_name: str,
    sources: Sources,
    versions: Mapping[str, Versions],
    *,
    whole: bool,
) -> Iterator[Entry]:
    following: dict[str | None, list[UnsavedTurn]] = {}
    for turn in unsaved:
        following.setdefault(turn.after, []).append(turn)
    results = _results(messages)
    if whole:
        yield from (_run(turn, agent_name, sources) for turn in following.get(None, ()))
    for message in messages:
        for shown in _shown(message, results, agent_name, sources):
            yield replace(shown, versions=versions.get(message.id))
        yield from (_run(turn, agent_name, sources) for turn in following.get(message.id, ()))


def _run(turn: UnsavedTurn, agent_name: str, sources: Sources) -> ShownRun:
    results, places = _results(turn.messages), sources.of_run(turn.execution_id)
    shown = [each for message in turn.messages for each in _shown(message, results, agent_name, places)]
    if turn.partial is not None and (blocks := tuple(_half_written(turn.partial["blocks"]))):
        shown.append(ShownMessage(turn.partial["messageId"], "assistant", agent_name, blocks))
    said = turn.messages[0]
    repeatable = [type(block) for block in said.blocks] == [TextBlock] and not quoted_files(said)
    return ShownRun(turn.execution_id, turn.status, turn.notice, repeatable, tuple(shown))


def _results(messages: Sequence[AgentMessage]) -> dict[str, ToolResultBlock]:
    return {
        block.call_id: block for message in messages for block in message.blocks if isinstance(block, ToolResultBlock)
    }


def _shown(
    message: AgentMessage, results: dict[str, ToolResultBlock], agent_name: str, sources: Sources
) -> Iterator[ShownMessage]:
    match message.role:
        case "user":
            yield ShownMessage(message.id, "user", "You", tuple(_said(message, sources)))
        case "assistant":
            yield ShownMessage(message.id, "assistant", agent_name, tuple(_answered(message, results, sources)))
        case "tool" | "system":
            pass
        case _:
            assert_never(message.role)


def _half_written(blocks: Sequence[Mapping[str, Any]]) -> Iterator[Shown]:
    for block in blocks:
        if block["type"] == "tool-call":
            yield Card(block["callId"], block["name"], arguments=block["text"], status="not-executed")
        else:
            yield from _written(block["type"], block["text"])


def _written(kind: str, text: str) -> Iterator[Shown]:
    """Yield what the model wrote; what has no word in it is not shown, while it is written neither."""
    if text.strip():
        yield (Reasoning if kind == "reasoning" else Answer)(render(text))


def _said(message: AgentMessage, sources: Sources) -> Iterator[Shown]:
    for block in message.blocks:
        if isinstance(block, TextBlock):
            file = quoted_file(block.text)
            yield Said(block.text) if file is None else _file(file, sources)
        elif isinstance(block, ImageBlock):
            yield _picture(block, sources)


def _answered(message: AgentMessage, results: dict[str, ToolResultBlock], sources: Sources) -> Iterator[Shown]:
    for block in message.blocks:
        match block:
            case TextBlock() | ReasoningBlock():
                yield from _written(block.type, block.text)
            case ImageBlock():
                yield _picture(block, sources)
            case ToolCallBlock():
                yield _card(block, results.get(block.call_id), sources)
            case ToolResultBlock():
                pass
            case _:
                assert_never(block)


def _picture(block: ImageBlock, sources: Sources) -> Picture:
    if (id := picture_of(block)) is not None:
        return Picture(sources.names.get(id, ""), sources.attachment(id))
    return Picture(block.source.url if isinstance(block.source, UrlSource) else block.source.media_type)


def _file(file: QuotedFile, sources: Sources) -> File:
    pages = "" if file.pages is None else f", {file.pages} page{'' if file.pages == 1 else 's'}"
    kind = ("PDF" if file.media_type == "application/pdf" else "Text") + pages
    return File(file.name, kind, file.text, sources.attachment(file.id))


def _card(call: ToolCallBlock, result: ToolResultBlock | None, sources: Sources) -> Card:
    fields = tuple(_field(name, value) for name, value in call.input.items())
    if result is None:
        return Card(call.call_id, call.name, fields, status="unknown")
    place = sources.result(call.call_id)
    text, omitted = excerpt("\n\n".join(block.text for block in result.content), place)
    kind = decision(text) if result.execution == "not-executed" else ""
    status: CardStatus = "rejected" if kind else _status(result)
    return Card(
        call.call_id,
        call.name,
        fields,
        status=status,
        result=text,
        decision=DECISIONS.get(kind, ""),
        whole=place if omitted else "",
    )


def _field(name: str, value: Any) -> Field:
    if isinstance(value, str) and value.strip():
        return Field(name, value, json=False)
    return Field(name, json.dumps(value, indent=2, ensure_ascii=False), json=True)


def _status(result: ToolResultBlock) -> CardStatus:
    if result.execution != "completed":
        return result.execution
    return "error" if result.status == "error" else "done"
