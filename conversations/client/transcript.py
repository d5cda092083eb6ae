"""What the caller of one run has been told so far, and how that grows.

A frame of the server is compared with what was told, and what is new becomes events. Live events and snapshots go
through the same few steps (`_say`, `_message`, `_tool`, …), each of which tells a difference once. So a snapshot after
a broken connection yields exactly what was missed. Text that was told and that the server no longer has is told as
lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, get_args

from conversations.client import events as ev
from conversations.client.events import Kind, Message, Outcome, Revision

KINDS: tuple[Kind, ...] = get_args(Kind)
ENDED = ("completed", "failed", "cancelled")


@dataclass(slots=True)
class _Call:
    """A tool's run as it was told."""

    name: str
    progress: int = 0
    ended: bool = False


@dataclass(slots=True)
class Transcript:
    """One run; its attributes are as the last frame left them."""

    execution_id: str
    conversation_id: str
    seq: int = 0
    messages: list[Message] = field(default_factory=list)
    interrupt: ev.ApprovalRequested | None = None
    revision: Revision | None = None
    outcome: Outcome | None = None
    failure: ev.RunFailed | None = None
    _writing: str = ""
    _said: dict[str, dict[Kind, list[str]]] = field(default_factory=dict)
    _calls: dict[str, _Call] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.outcome is not None or self.failure is not None

    @property
    def text(self) -> str:
        """The answer so far, of all messages of the run."""
        return "".join(piece for said in tuple(self._said.values()) for piece in said["text"])

    def event(self, frame: dict[str, Any]) -> list[ev.Event] | None:
        """Take in an event and return what is new, None if events between it and the last one are missing."""
        if self.ended or frame["seq"] <= self.seq:
            return []
        if frame.get("fromSeq", frame["seq"]) != self.seq + 1:
            return None
        self.seq = frame["seq"]
        if frame["type"] == "block-delta":  # first: nearly all events are deltas
            delta = frame["delta"]
            return [self._say(self._writing, delta["type"], delta["text"])] if delta["type"] in KINDS else []
        return list(self._apply(frame))

    def snapshot(self, state: dict[str, Any]) -> list[ev.Event]:
        """Take in the state of the run and return what was missed.

        One that is older than what was seen changes nothing, unless the run has ended: a server that crashed knows
        less, and what it knows counts.
        """
        if self.ended or (state["seq"] < self.seq and state["status"] not in ENDED):
            return []
        self.seq = state["seq"]
        return list(self._replace(state))

    def _apply(self, frame: dict[str, Any]) -> Iterator[ev.Event]:
        match frame["type"]:
            case "model-call-started":
                yield from self._keep_only({message.id for message in self.messages})
                self._writing = frame["responseMessageId"]
            case "messages":
                yield from self._messages(frame["messages"], frame["fromIndex"], {})
            case "tool-call-started":
                yield from self._tool(frame)
            case "tool-progress":
                call = self._calls[frame["callId"]]
                call.progress += 1
                yield ev.ToolProgress(frame["callId"], call.name, frame["text"])
            case "interrupt-requested":
                yield from self._ask(frame["interrupt"], frame["callId"])
            case "interrupt-resolved":
                self.interrupt = None
                yield ev.ApprovalResolved(frame["interruptId"], frame["decision"])
            case "revision-saved":
                self.revision = Revision(frame["revisionId"], frame["number"], frame["version"])
            case "execution-completed":
                yield self._end(frame["outcome"])
            case "execution-failed":
                yield self._fail(frame["errorCode"], frame["errorMessage"], frame["retryable"])
            case _:  # an event that has nothing to tell, or one of a newer server: its place in the order counts
                pass

    def _replace(self, state: dict[str, Any]) -> Iterator[ev.Event]:
        current = state["current"]
        kept = {message["id"] for message in state["messages"]} | ({current["messageId"]} if current else set())
        yield from self._keep_only(kept)
        yield from self._messages(state["messages"], 0, {tool["callId"]: tool for tool in state["tools"]})
        if current is not None:
            self._writing = current["messageId"]
            yield from self._catch_up(self._writing, current["blocks"])
        if state["interrupt"] is not None:
            yield from self._ask(state["interrupt"], state["interruptCallId"])
        elif self.interrupt is not None:
            yield from self._answered_elsewhere(self.interrupt)
        if revision := state["revision"]:
            self.revision = Revision(revision["id"], revision["number"], revision["version"])
        if state["status"] == "failed":
            error = state["error"]
            yield self._fail(error["code"], error["message"], error["retryable"])
        elif state["status"] in ENDED:
            yield self._end(state["outcome"])

    def _messages(
        self, wires: Sequence[dict[str, Any]], first: int, tools: dict[str, dict[str, Any]]
    ) -> Iterator[ev.Event]:
        """Take over the messages from number `first` on; `tools` are the runs of tools that are known."""
        known = {message.id for message in self.messages}
        del self.messages[first:]
        for wire in wires:
            message = Message(wire["id"], wire["role"], tuple(wire["blocks"]))
            self.messages.append(message)
            if message.id not in known:
                yield from self._message(message)
            for block in message.blocks:
                if block["type"] == "tool-call" and block["callId"] in tools:
                    yield from self._tool(tools[block["callId"]])

    def _message(self, message: Message) -> Iterator[ev.Event]:
        if message.role == "assistant":
            yield from self._catch_up(message.id, message.blocks)
        for block in message.blocks:
            if block["type"] == "tool-result":
                yield from self._result(block)
        yield ev.MessageAdded(message)

    def _say(self, message_id: str, kind: Kind, text: str) -> ev.TextDelta | ev.ReasoningDelta:
        self._told(message_id)[kind].append(text)
        return ev.TextDelta(text, message_id) if kind == "text" else ev.ReasoningDelta(text, message_id)

    def _told(self, message_id: str) -> dict[Kind, list[str]]:
        if message_id not in self._said:
            self._said[message_id] = {kind: [] for kind in KINDS}
        return self._said[message_id]

    def _catch_up(self, message_id: str, blocks: Sequence[dict[str, Any]]) -> Iterator[ev.Event]:
        """Tell what the blocks of a message say beyond what was told of it."""
        skip: dict[Kind, int] = {}
        for kind in KINDS:
            told = "".join(self._told(message_id)[kind])
            whole = "".join(block["text"] for block in blocks if block["type"] == kind)
            skip[kind] = _shared(told, whole)
            yield from self._lose(message_id, kind, skip[kind])
        for block in blocks:
            kind = block["type"]
            if kind not in KINDS:
                continue
            text = block["text"]
            if rest := text[skip[kind] :]:
                yield self._say(message_id, kind, rest)
            skip[kind] = max(0, skip[kind] - len(text))

    def _keep_only(self, message_ids: set[str]) -> Iterator[ev.Event]:
        for message_id in [told for told in self._said if told not in message_ids]:
            for kind in KINDS:
                yield from self._lose(message_id, kind, 0)
            del self._said[message_id]

    def _lose(self, message_id: str, kind: Kind, keep: int) -> Iterator[ev.Event]:
        """Tell that of what was told only the first `keep` characters remain."""
        told = "".join(self._told(message_id)[kind])
        self._said[message_id][kind] = [told[:keep]]
        if lost := told[keep:]:
            yield ev.TextLost(lost, kind, message_id)

    def _tool(self, tool: dict[str, Any]) -> Iterator[ev.Event]:
        call_id, name = tool["callId"], tool["toolName"]
        if call_id not in self._calls:
            self._calls[call_id] = _Call(name)
            yield ev.ToolStarted(call_id, name, tool["arguments"])
        call = self._calls[call_id]
        for text in tool.get("progress", ())[call.progress :]:
            call.progress += 1
            yield ev.ToolProgress(call_id, name, text)

    def _result(self, block: dict[str, Any]) -> Iterator[ev.Event]:
        call_id, name, execution = block["callId"], block["name"], block["execution"]
        call = self._calls.get(call_id)
        if call is None:
            call = self._calls[call_id] = _Call(name)
            if execution != "not-executed":
                yield ev.ToolStarted(call_id, name, self._arguments(call_id))
        if not call.ended:
            call.ended = True
            text = "".join(part["text"] for part in block["content"])
            yield ev.ToolEnded(call_id, name, text, block["status"] == "error", execution)

    def _arguments(self, call_id: str) -> dict[str, Any]:
        for message in self.messages:
            for block in message.blocks:
                if block["type"] == "tool-call" and block["callId"] == call_id:
                    return dict(block["input"])
        return {}

    def _ask(self, interrupt: dict[str, Any], call_id: str | None) -> Iterator[ev.Event]:
        if self.interrupt is not None:
            if self.interrupt.interrupt_id == interrupt["id"]:
                return
            yield from self._answered_elsewhere(self.interrupt)
        tool, arguments = interrupt["tool"], interrupt["arguments"]
        self.interrupt = ev.ApprovalRequested(
            interrupt["id"], call_id, tool["name"], arguments, interrupt.get("reason"), tool
        )
        yield self.interrupt

    def _answered_elsewhere(self, interrupt: ev.ApprovalRequested) -> Iterator[ev.Event]:
        self.interrupt = None
        yield ev.ApprovalResolved(interrupt.interrupt_id, None)

    def _end(self, outcome: dict[str, Any]) -> ev.Event:
        self.interrupt = None
        self.outcome = Outcome(outcome["type"], outcome.get("stopReason"), outcome.get("reason"))
        return ev.RunEnded(self.outcome, self.revision)

    def _fail(self, code: str, message: str, retryable: bool) -> ev.Event:
        self.interrupt = None
        self.failure = ev.RunFailed(code, message, retryable)
        return self.failure


def _shared(one: str, other: str) -> int:
    """Return how many characters both begin with."""
    if other.startswith(one):
        return len(one)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
