"""The client without a network: commands, their ids, what is followed, and how all of it survives a lost connection.

A shell calls `command`, `welcomed`, `disconnected` and `receive`, and carries out the effects that they return. What is
pending and what is followed is kept here, so that any number of connections, one after another, serve it:

* a command without an answer is sent again under its id; the server gives a repeated id its first answer,
* every run that has not ended is subscribed again; the snapshot is turned into what was missed (`Transcript`),
* the call of a tool is handed out once; when it comes again, the remembered result is sent.

The server reads one conversation with one subscription. Where more than one thing of a conversation is of interest, the
subscription to a run is therefore followed by one to the whole conversation. A run that ended between the two is not in
the answer to the second, and is then asked for once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson

from conversations.client.effects import Abandoned, Called, Effect, Found, Later, Send, Settled, Told, Unfollowed
from conversations.client.events import Event
from conversations.client.exceptions import ParError, ProtocolViolation
from conversations.client.transcript import Transcript

PAUSE = 1.0  # seconds before a command is sent again that was not carried out, more each time
LONGEST_PAUSE = 20.0


@dataclass(slots=True)
class Command:
    """A command that has no answer yet; `wanted` if the caller waits for it, otherwise it is the session's own."""

    id: str
    frame: dict[str, Any]
    text: str
    wanted: bool
    failures: int = 0

    def later(self) -> Later:
        """Return when to send it again."""
        self.failures += 1
        return Later(self.id, min(PAUSE * 2.0 ** (self.failures - 1), LONGEST_PAUSE))


@dataclass(slots=True)
class Session:
    """One client of `par.v1` over any number of connections; `client_id` is the name by which its tools are called."""

    client_id: str
    connected: bool = False
    _pending: dict[str, Command] = field(default_factory=dict)
    _runs: dict[str, Transcript] = field(default_factory=dict)
    _with_tools: set[str] = field(default_factory=set)
    _calls: dict[tuple[str, str], dict[str, Any] | None] = field(default_factory=dict)
    # Followed conversations, with the runs of each that the follower knows.
    _followed: dict[str, set[str]] = field(default_factory=dict)

    def command(self, type: str, *, id: str | None = None, **members: Any) -> tuple[str, list[Effect]]:
        """Return the id of a new command and what is to be done now; raises `ParError` for what is no JSON."""
        return self._command(type, id or str(uuid4()), members, wanted=True)

    def forget(self, id: str) -> None:
        """Nobody waits for the answer of a command any more."""
        self._pending.pop(id, None)

    def again(self, id: str) -> list[Effect]:
        """Send a command again that the server had no time for."""
        command = self._pending.get(id)
        return [Send(command.text)] if command is not None and self.connected else []

    def welcomed(self) -> list[Effect]:
        """A connection is open: follow again what was followed, and ask again what has no answer."""
        self.connected = True
        effects: list[Effect] = []
        waiting = tuple(self._pending.values())
        for conversation_id in {run.conversation_id for run in self._runs.values()} | self._followed.keys():
            runs = [run for run in self._runs.values() if run.conversation_id == conversation_id]
            for run in runs:
                effects += self._subscribe(executionId=run.execution_id)
            if len(runs) != 1 or conversation_id in self._followed:
                effects += self._subscribe(conversationId=conversation_id)
        effects += [Send(command.text) for command in waiting]
        return effects

    def disconnected(self, *, too_large: bool = False) -> list[Effect]:
        """The connection is gone; `too_large` if the server found a frame too large, which is not sent again."""
        self.connected = False
        self._pending = {id: command for id, command in self._pending.items() if command.wanted}
        if not too_large or not self._pending:
            return []
        largest = self._pending.pop(max(self._pending, key=lambda id: len(self._pending[id].text)))
        error = ParError("FRAME_TOO_LARGE", "the server does not take frames of this size")
        if largest.frame["type"] == "tool-result":  # or it would come again with the call, for ever
            call = Called(largest.frame["executionId"], largest.frame["callId"], "", {})
            return self.tool_result(call, error.message, True)
        return [Settled(largest.id, error)]

    def reset(self) -> None:
        """Follow nothing and wait for nothing any more."""
        for kept in (self._pending, self._runs, self._with_tools, self._calls, self._followed):
            kept.clear()

    def receive(self, data: str | bytes) -> list[Effect]:
        """Take in a frame; raises `ProtocolViolation` for one that cannot be understood."""
        try:
            frame = orjson.loads(data)
            return list(self._receive(frame))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ProtocolViolation(f"a frame cannot be understood: {type(error).__name__}: {error}") from error

    def tool_result(self, call: Called, result: Any, is_error: bool) -> list[Effect]:
        """Send what a tool came to, and remember it as long as the run lasts; raises `ParError` if it is no JSON."""
        members = {"executionId": call.execution_id, "callId": call.call_id, "result": result, "isError": is_error}
        _, effects = self._command("tool-result", str(uuid4()), members, wanted=True)
        if call.execution_id in self._runs:
            self._calls[call.execution_id, call.call_id] = members
        return effects

    def unfollow(self, conversation_id: str) -> list[Effect]:
        """Follow a conversation no more; runs of it that are known go on."""
        self._followed.pop(conversation_id, None)
        return self._release(conversation_id)

    def _command(self, type: str, id: str, members: dict[str, Any], *, wanted: bool) -> tuple[str, list[Effect]]:
        frame = {"type": type, "id": id} | {name: value for name, value in members.items() if value is not None}
        if type == "tool-result":
            frame["result"] = members["result"]
        try:
            text = orjson.dumps(frame).decode()
        except (TypeError, ValueError) as error:
            raise ParError("INVALID_ARGUMENT", f"this cannot be sent as JSON: {error}") from error
        self._pending[id] = Command(id, frame, text, wanted)
        return id, [Send(text)] if self.connected else []

    def _subscribe(self, **members: Any) -> list[Effect]:
        if members.get("executionId") in self._with_tools:
            members["clientId"] = self.client_id
        same = members.items()
        if any(not command.wanted and same <= command.frame.items() for command in self._pending.values()):
            return []
        return self._command("subscribe", str(uuid4()), members, wanted=False)[1]

    def _receive(self, frame: dict[str, Any]) -> Iterator[Effect]:
        match frame["type"]:
            case "ack":
                if command := self._pending.pop(frame["id"], None):
                    yield from self._acknowledged(command, frame)
            case "error":
                if command := self._pending.get(frame["id"]):
                    yield from self._refused(command, frame)
            case "snapshot":
                yield from self._snapshot(frame["state"])
            case "client-tool-call":
                yield from self._called(frame)
            case _ if "seq" in frame and "executionId" in frame:
                yield from self._event(frame)
            case _:  # `welcome` is the shell's, `draining` tells nothing that the close does not; others are unknown
                pass

    def _acknowledged(self, command: Command, ack: dict[str, Any]) -> Iterator[Effect]:
        run: Transcript | None = None
        asked = command.frame
        if asked["type"] == "start":
            run = self._follow_run(ack, with_tools="clientTools" in asked)
            if not ack["created"]:  # what it said meanwhile is in a snapshot
                yield from self._subscribe(executionId=run.execution_id)
        elif asked["type"] == "subscribe" and command.wanted:
            if "executionId" in asked:
                run = self._follow_run(ack, with_tools="clientId" in asked)
                yield from self._widen(run)
            else:
                self._followed.setdefault(ack["conversationId"], set()).update(
                    run.execution_id for run in self._runs.values() if run.conversation_id == ack["conversationId"]
                )
        if asked["type"] == "subscribe" and "conversationId" in asked:
            yield from self._complete(ack)
        if command.wanted:
            yield Settled(command.id, ack, run)

    def _complete(self, ack: dict[str, Any]) -> Iterator[Effect]:
        """Ask for the end of each run of a conversation that is not the one that the server goes on with."""
        for run in tuple(self._runs.values()):
            if run.conversation_id == ack["conversationId"] and run.execution_id != ack["executionId"]:
                yield from self._subscribe(executionId=run.execution_id)
                yield from self._widen(run)

    def _refused(self, command: Command, frame: dict[str, Any]) -> Iterator[Effect]:
        code = frame["code"]
        if code == "DRAINING":  # the server is about to close this connection; the next one gets it
            return
        follows = not command.wanted and command.frame["type"] == "subscribe"
        if code == "RATE_LIMITED" or (follows and not _final(code)):  # it was not carried out
            yield command.later()
            return
        del self._pending[command.id]
        error = ParError(code, frame["message"], current_revision=frame.get("currentRevision"))
        if command.wanted:
            yield Settled(command.id, error)
        elif follows:
            yield from self._abandon(command.frame, error)

    def _abandon(self, target: dict[str, Any], error: ParError) -> Iterator[Effect]:
        """Give up what a subscription was for."""
        for run in tuple(self._runs.values()):
            if target.get("executionId") == run.execution_id or target.get("conversationId") == run.conversation_id:
                self._drop(run)
                yield Abandoned(run, error)
        if self._followed.pop(target.get("conversationId", ""), None) is not None:
            yield Unfollowed(target["conversationId"], error)

    def _snapshot(self, state: dict[str, Any]) -> Iterator[Effect]:
        run = self._runs.get(state["executionId"])
        if run is None:
            if state["executionId"] in self._followed.get(state["conversationId"], {state["executionId"]}):
                return
            run = self._follow_run(state)
            yield Found(run)
        yield from self._told(run, run.snapshot(state))

    def _event(self, frame: dict[str, Any]) -> Iterator[Effect]:
        run = self._runs.get(frame["executionId"])
        if run is None:
            known = self._followed.get(frame.get("conversationId", ""))
            if frame["type"] != "execution-started" or known is None or frame["executionId"] in known:
                return
            run = self._follow_run(frame)
            yield Found(run)
        events = run.event(frame)
        if events is not None:
            yield from self._told(run, events)
        elif asked := self._subscribe(executionId=run.execution_id):
            yield from asked
            yield from self._widen(run)

    def _told(self, run: Transcript, events: list[Event]) -> Iterator[Effect]:
        if run.ended:
            self._drop(run)
        if events:
            yield Told(run, events)
        if run.ended:
            yield from self._release(run.conversation_id)

    def _called(self, frame: dict[str, Any]) -> Iterator[Effect]:
        key = frame["executionId"], frame["callId"]
        if frame["executionId"] not in self._with_tools:
            return
        if key not in self._calls:
            self._calls[key] = None
            yield Called(*key, frame["name"], frame["arguments"])
        elif (members := self._calls[key]) is not None and not self._answering(members):
            yield from self._command("tool-result", str(uuid4()), members, wanted=True)[1]

    def _answering(self, members: dict[str, Any]) -> bool:
        return any(members.items() <= command.frame.items() for command in self._pending.values())

    def _follow_run(self, named: dict[str, Any], *, with_tools: bool = False) -> Transcript:
        execution_id, conversation_id = named["executionId"], named["conversationId"]
        if with_tools:
            self._with_tools.add(execution_id)
        if conversation_id in self._followed:
            self._followed[conversation_id].add(execution_id)
        return self._runs.setdefault(execution_id, Transcript(execution_id, conversation_id))

    def _widen(self, run: Transcript) -> list[Effect]:
        """Subscribe to the whole conversation of a run, if there is more of interest in it."""
        others = sum(other.conversation_id == run.conversation_id for other in self._runs.values()) > 1
        if others or run.conversation_id in self._followed:
            return self._subscribe(conversationId=run.conversation_id)
        return []

    def _drop(self, run: Transcript) -> None:
        self._runs.pop(run.execution_id, None)
        self._with_tools.discard(run.execution_id)
        for key in [key for key in self._calls if key[0] == run.execution_id]:
            del self._calls[key]

    def _release(self, conversation_id: str) -> list[Effect]:
        """Unsubscribe from a conversation of which nothing is of interest."""
        wanted = conversation_id in self._followed or any(
            run.conversation_id == conversation_id for run in self._runs.values()
        )
        # A start or subscription on its way may be about this conversation.
        coming = any(command.frame["type"] in ("start", "subscribe") for command in self._pending.values())
        if wanted or coming or not self.connected:
            return []
        return self._command("unsubscribe", str(uuid4()), {"conversationId": conversation_id}, wanted=False)[1]


def _final(code: str) -> bool:
    """Tell whether a refusal will be the same next time."""
    return code.endswith("_NOT_FOUND") or code in ("FORBIDDEN", "AUTH_REQUIRED")
