"""Histories as providers accept them (B08, B09, B34, B35, B40, B53).

Neighbours of one role are joined, what says nothing is left out, each call is followed by exactly one result, in call
order. An `Encoder` writes the pieces in the form of its protocol. A message is encoded once and keeps its bytes. An
adapter also remembers its last history: within a run each request repeats the one before it, so that only the turn in
progress is walked again.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from agent.providers.names import ToolNames
from agent.providers.state import ProviderState, StateMismatch
from agent.runtime.messages import AgentMessage, ToolResultBlock

NO_OUTPUT = "(no output)"
NO_RESULT = "There is no result: it is not known whether this tool was run."

_LEGAL_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True)
class WireCall:
    """The id and name of a call as they go out."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call on its way out; `block` and `message` are None where there is none."""

    call: WireCall
    message: AgentMessage | None
    block: ToolResultBlock | None

    @property
    def text(self) -> str:
        """What the tool said, or words for nothing."""
        if self.block is None:
            return NO_RESULT
        text = "".join(part.text for part in self.block.content)
        return text if text.strip() else NO_OUTPUT


class Encoder(Protocol):
    """Writes pieces of one protocol; a piece is JSON, or several values with commas between."""

    # The name under which messages keep their bytes.
    protocol: ClassVar[str]
    # Whether results are the beginning of the user's next message.
    results_open_user_message: ClassVar[bool]

    def message(
        self, neighbours: Sequence[AgentMessage], calls: Sequence[WireCall], extras: Sequence[Sequence[Any]]
    ) -> bytes:
        """Return one piece for neighbours of one role, nothing if there is nothing to say.

        `calls` belong to the last neighbour, `extras` to each of them in turn.
        """
        ...

    def results(self, results: Sequence[Result], following: Sequence[AgentMessage]) -> list[bytes]:
        """Return the pieces of the results of one answer.

        `following` are the user's messages after them, where `results_open_user_message`; then it is one piece.
        """
        ...


def checked(state: ProviderState, is_extra: Callable[[Any], bool]) -> ProviderState:
    """Return a state whose extras all have the form of their protocol; raises `StateMismatch`."""
    if not all(is_extra(extra) for extras in state.extras.values() for extra in extras):
        raise StateMismatch("the model state holds what goes back with no answer")
    return state


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place where a history can be continued: a user message begins there and every call before it has a result."""

    messages: int
    pieces: int
    calls: int


class History:
    """Encodes the histories of one adapter; `calls` are the call ids of the last one, in order."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._names: ToolNames | None = None
        self._messages: tuple[AgentMessage, ...] = ()
        self._provider_ids: dict[str, str] = {}
        self._extras: Mapping[str, Sequence[Any]] = {}
        self._wire_ids: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._marks: list[_Mark] = []
        self.calls: list[str] = []

    def encode(self, messages: tuple[AgentMessage, ...], names: ToolNames, state: ProviderState) -> list[bytes]:
        """Return the wire messages; `state` holds the provider's own ids and what goes back unchanged."""
        self._rewind(messages, names, state)
        self._messages, self._names, self._extras = messages, names, state.extras
        start = self._marks[-1].messages if self._marks else 0
        tail = messages[start:]
        calls = [block.call_id for message in tail for block in message.blocks if block.type == "tool-call"]
        theirs = [state.call_ids.get(call_id, "") for call_id in calls]
        if not set(self._wire_ids.values()).isdisjoint(theirs):
            self._forget(0)  # an id that was unique is unique no longer
            return self.encode(messages, names, state)
        ids = _wire_ids(calls, state.call_ids, known=self._provider_ids.values())
        self._provider_ids.update(zip(calls, theirs, strict=True))
        self._wire_ids.update(ids)
        done = len(self.calls)
        self.calls += calls
        self._extend(tail, names, ids, done)
        return self._pieces

    def _rewind(self, messages: Sequence[AgentMessage], names: ToolNames, state: ProviderState) -> None:
        """Go back to the last mark before which everything is as it was."""
        same = 0
        if names is self._names:
            extras, before = state.extras, self._extras
            for known, message in zip(self._messages, messages, strict=False):
                if known is not message and not _say_the_same(known, message):
                    break
                if extras is not before and extras.get(message.id) != before.get(message.id):
                    break
                same += 1
        # What a mark promises depends on the message that it stands before, so that one has to be the same as well.
        while self._marks and self._marks[-1].messages >= same:
            self._marks.pop()
        self._forget(len(self._marks))
        if any(state.call_ids.get(ours, "") != theirs for ours, theirs in self._provider_ids.items()):
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
        answers = _results(tail)
        first, pieces = len(self._messages) - len(tail), self._pieces
        answered = answers.keys() >= ids.keys()
        neighbours: list[AgentMessage] = []
        opening: list[Result] = []  # results that the user's next message goes on from
        for at, message in enumerate(tail, start=first):
            if message.role == "tool":
                continue
            blocks = message.tool_calls if message.role == "assistant" and ids else ()
            calls = tuple(WireCall(ids[block.call_id], names.wire(block.name)) for block in blocks)
            piece = self._kept(message, calls)
            if not piece:
                continue
            if opening and message.role == "user":
                neighbours.append(message)
                (pieces[-1],) = self._encoder.results(opening, neighbours)
                continue
            if neighbours and not opening and neighbours[-1].role == message.role:
                neighbours.append(message)
                pieces[-1] = self._encoder.message(
                    neighbours, calls, [self._extras.get(each.id, ()) for each in neighbours]
                )
            else:
                if message.role == "user" and at > first and answered:
                    self._marks.append(_Mark(at, len(pieces), done))
                neighbours = [message]
                pieces.append(piece)
            opening = []
            if calls:
                found = [
                    Result(call, *answers.get(block.call_id, (None, None)))
                    for block, call in zip(blocks, calls, strict=True)
                ]
                pieces.extend(self._encoder.results(found, ()))
                neighbours = []
                opening = found if self._encoder.results_open_user_message else []
                done += len(calls)

    def _kept(self, message: AgentMessage, calls: tuple[WireCall, ...]) -> bytes:
        extras, key = self._extras.get(message.id, ()), (self._encoder.protocol, calls)
        known: tuple[Sequence[Any], bytes] | None = message.encoded.get(key)
        if known is None or known[0] != extras:
            known = message.encoded[key] = extras, self._encoder.message([message], calls, [extras])
        return known[1]


def kept_result(protocol: str, result: Result, encode: Any) -> bytes:
    """Return the bytes of a result, made by `encode(result)` once and kept with its message."""
    if result.message is None or result.block is None:
        piece: bytes = encode(result)
        return piece
    key = (protocol, result.block.call_id, result.call.id)
    known: bytes | None = result.message.encoded.get(key)
    if known is None:
        known = result.message.encoded[key] = encode(result)
    return known


def _results(messages: Iterable[AgentMessage]) -> dict[str, tuple[AgentMessage, ToolResultBlock]]:
    results: dict[str, tuple[AgentMessage, ToolResultBlock]] = {}
    for message in messages:
        if message.role == "tool":
            for block in message.blocks:
                if isinstance(block, ToolResultBlock):
                    results.setdefault(block.call_id, (message, block))
    return results


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
