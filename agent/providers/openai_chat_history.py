"""Histories as a chat completions server accepts them (B08, B09, B35, B40, B53).

Neighbours of one role are joined, empty text is left out, each call is followed by exactly one result, in call order.
A message is encoded once and keeps its bytes. An adapter also remembers its last history: within a run each request
repeats the one before it, so that only the turn in progress is walked again.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agent.providers.openai_chat_tools import ToolNames
from agent.runtime.messages import (
    AgentMessage,
    ImageBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UrlSource,
)

NO_OUTPUT = "(no output)"
NO_RESULT = "There is no result: it is not known whether this tool was run."

_LEGAL_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place where a history can be continued: a user message begins there and every call before it has a result."""

    messages: int
    pieces: int
    calls: int


class ChatHistory:
    """Encodes the histories of one adapter; `calls` are the call ids of the last one, in order."""

    def __init__(self) -> None:
        self._names: ToolNames | None = None
        self._messages: tuple[AgentMessage, ...] = ()
        self._provider_ids: dict[str, str] = {}
        self._wire_ids: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._marks: list[_Mark] = []
        self.calls: list[str] = []

    def encode(
        self, messages: tuple[AgentMessage, ...], names: ToolNames, provider_ids: Mapping[str, str]
    ) -> list[bytes]:
        """Return the wire messages; `provider_ids` are the provider's ids by ours, as far as they are known."""
        self._rewind(messages, names, provider_ids)
        self._messages, self._names = messages, names
        start = self._marks[-1].messages if self._marks else 0
        tail = messages[start:]
        calls = [block.call_id for message in tail for block in message.blocks if block.type == "tool-call"]
        theirs = [provider_ids.get(call_id, "") for call_id in calls]
        if not set(self._wire_ids.values()).isdisjoint(theirs):
            self._forget(0)  # an id that was unique is unique no longer
            return self.encode(messages, names, provider_ids)
        ids = _wire_ids(calls, provider_ids, known=self._provider_ids.values())
        self._provider_ids.update(zip(calls, theirs, strict=True))
        self._wire_ids.update(ids)
        done = len(self.calls)
        self.calls += calls
        self._extend(tail, names, ids, done)
        return self._pieces

    def _rewind(self, messages: Sequence[AgentMessage], names: ToolNames, provider_ids: Mapping[str, str]) -> None:
        """Go back to the last mark before which everything is as it was."""
        same = 0
        if names is self._names:
            for known, message in zip(self._messages, messages, strict=False):
                if known is not message and not _say_the_same(known, message):
                    break
                same += 1
        # What a mark promises depends on the message that it stands before, so that one has to be the same as well.
        while self._marks and self._marks[-1].messages >= same:
            self._marks.pop()
        self._forget(len(self._marks))
        if any(provider_ids.get(ours, "") != theirs for ours, theirs in self._provider_ids.items()):
            self._forget(0)

    def _forget(self, marks: int) -> None:
        del self._marks[marks:]
        last = self._marks[-1] if self._marks else _Mark(0, 0, 0)
        del self._pieces[last.pieces :]
        for call_id in self.calls[last.calls :]:
            self._provider_ids.pop(call_id, None)
            self._wire_ids.pop(call_id, None)
        del self.calls[last.calls :]

    def _extend(self, tail: Sequence[AgentMessage], names: ToolNames, ids: Mapping[str, str], done: int) -> None:
        results: dict[str, tuple[AgentMessage, ToolResultBlock]] = {}
        for message in tail:
            if message.role == "tool":
                for block in message.blocks:
                    if isinstance(block, ToolResultBlock):
                        results.setdefault(block.call_id, (message, block))
        first, pieces = len(self._messages) - len(tail), self._pieces
        answered = results.keys() >= ids.keys()
        neighbours: list[AgentMessage] = []
        for at, message in enumerate(tail, start=first):
            if message.role == "tool":
                continue
            calls = message.tool_calls if message.role == "assistant" and ids else ()
            wire_calls = tuple((ids[call.call_id], names.wire(call.name)) for call in calls)
            piece = _kept(message, wire_calls)
            if not piece:
                continue
            if neighbours and neighbours[-1].role == message.role:
                neighbours.append(message)
                pieces[-1] = _encode(neighbours, wire_calls)
            else:
                if message.role == "user" and at > first and answered:
                    self._marks.append(_Mark(at, len(pieces), done))
                neighbours = [message]
                pieces.append(piece)
            if calls:
                pieces.extend(_result(results.get(call.call_id), ids[call.call_id]) for call in calls)
                neighbours = []
                done += len(calls)


def _say_the_same(one: AgentMessage, other: AgentMessage) -> bool:
    """Return whether two messages are instructions with the same blocks; those are composed anew for each call."""
    return one.role == other.role == "system" and one.blocks == other.blocks


def _wire_ids(calls: Sequence[str], provider_ids: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """Return the id to send for each call: the provider's where it is unique and not among `known`, else ours."""
    legal = {call_id: call_id if _LEGAL_ID.fullmatch(call_id) else _digest_id(call_id) for call_id in calls}
    taken = Counter(provider_ids.get(call_id, "") for call_id in calls)
    taken.update(legal.values())
    taken.update(known)
    return {
        call_id: theirs if (theirs := provider_ids.get(call_id)) and taken[theirs] == 1 else legal[call_id]
        for call_id in calls
    }


def _digest_id(call_id: str) -> str:
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:24]}"


def _kept(message: AgentMessage, wire_calls: tuple[tuple[str, str], ...]) -> bytes:
    key = ("openai-chat", wire_calls)
    piece: bytes | None = message.encoded.get(key)
    if piece is None:
        piece = message.encoded[key] = _encode([message], wire_calls)
    return piece


def _encode(neighbours: Sequence[AgentMessage], wire_calls: Sequence[tuple[str, str]]) -> bytes:
    """Return one wire message for neighbours of one role, nothing if there is nothing to say."""
    role = neighbours[0].role
    parts = [part for message in neighbours for part in _parts(message)]
    texts = [part for part in parts if isinstance(part, str)]
    content: Any = None
    if len(texts) < len(parts):
        content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    elif texts:
        content = "\n\n".join(texts)
    calls = [block for block in neighbours[-1].blocks if isinstance(block, ToolCallBlock)] if wire_calls else []
    if content is None and not calls:
        return b""
    wire: dict[str, Any] = {"role": role, "content": content}
    if calls:
        wire["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": name, "arguments": orjson.dumps(call.input).decode()},
            }
            for call, (call_id, name) in zip(calls, wire_calls, strict=True)
        ]
    return orjson.dumps(wire)


def _parts(message: AgentMessage) -> list[str | dict[str, Any]]:
    """Return what a message says: its text, in pieces where pictures stand between; reasoning is not sent back."""
    if message.role != "user":
        return [text] if (text := message.text).strip() else []
    parts: list[str | dict[str, Any]] = []
    for block in message.blocks:
        match block:
            case TextBlock() if block.text.strip():
                parts.append(block.text)
            case ImageBlock():
                source = block.source
                url = source.url if isinstance(source, UrlSource) else f"data:{source.media_type};base64,{source.data}"
                parts.append({"type": "image_url", "image_url": {"url": url}})
            case _:
                pass
    return parts


def _result(found: tuple[AgentMessage, ToolResultBlock] | None, call_id: str) -> bytes:
    if found is None:
        return orjson.dumps({"role": "tool", "tool_call_id": call_id, "content": NO_RESULT})
    message, block = found
    key = ("openai-chat", block.call_id, call_id)
    piece: bytes | None = message.encoded.get(key)
    if piece is None:
        text = "".join(part.text for part in block.content)
        wire = {"role": "tool", "tool_call_id": call_id, "content": text if text.strip() else NO_OUTPUT}
        piece = message.encoded[key] = orjson.dumps(wire)
    return piece
