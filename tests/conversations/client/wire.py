"""A server of `par.v1` without a network: one recorded run, published step by step over connections that break."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any

import orjson

from agent.runtime import create_runtime
from agent.runtime import events as ev
from agent.runtime.model import BlockDelta
from agent.runtime.state import ExecutionState
from agent.runtime.tools import ToolInvocation
from agent.testing import EventRecorder, ScriptedModel, calls, says, scripted_tool
from conversations.client.effects import Found, Send, Settled, Told
from conversations.client.events import Event
from conversations.client.session import Session
from conversations.client.transcript import Transcript

CONVERSATION = "01890a5d-ac96-774b-bcce-b302099a8000"


def record() -> EventRecorder:
    """Run an agent that thinks, uses tools, asks a person and answers, and keep what it published."""

    async def run() -> EventRecorder:
        recorder = EventRecorder()

        def seen(invocation: ToolInvocation) -> str:
            for line in ("opening the window", "looking"):
                invocation.context.progress(line)
            return "snow" if invocation.arguments["at"] == "Tromsø" else "fog"

        look = scripted_tool("look", seen, read_only=True)
        send = scripted_tool("send", "sent", require_confirmation=True)
        words = ["Zoë ", "says ", "👩‍🚀", "\u2028", "\n\n", "it ", "is ", "done", "."]
        with ScriptedModel(
            calls(("look", {"at": "Tromsø"}), ("look", {"at": "Bodø"}), text="Let me see."),
            calls(("send", {"to": "Ada"}), text="I write."),
            says(*words, *words, reasoning="That was all."),
        ) as model:
            execution = create_runtime(model, [look, send]).start("And?", observer=recorder)
            asked = await recorder.wait_for("interrupt-requested")
            assert isinstance(asked, ev.InterruptRequested)
            execution.respond(asked.interrupt.id, True)
            await execution.result
        last = recorder.events.pop()
        saved = ev.RevisionSaved("revision-1", 1, CONVERSATION, 1, last.execution_id, last.seq)
        last.seq += 1
        recorder.events += [saved, last]
        return recorder

    return asyncio.run(run())


class Queue:
    """What waits for a slow reader: deltas of a block merge, and beyond `limit` frames a snapshot takes their place."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.owed = False
        self._waiting: deque[bytes | list[BlockDelta]] = deque()

    def put(self, frame: bytes) -> None:
        self._waiting.append(frame)

    def put_event(self, event: ev.Event) -> None:
        if self.owed:
            return
        last = self._waiting[-1] if self._waiting else None
        if isinstance(event, BlockDelta):
            if isinstance(last, list) and last[-1].index == event.index:
                last.append(event)
            else:
                self._waiting.append([event])
        else:
            self._waiting.append(ev.encode(event))
        if len(self._waiting) > self.limit:
            self.owed = True
            self._waiting = deque(frame for frame in self._waiting if isinstance(frame, bytes) and b'"ack"' in frame)

    def next(self) -> bytes | None:
        if not self._waiting:
            return None
        frame = self._waiting.popleft()
        if isinstance(frame, bytes):
            return frame
        return ev.encode_delta(frame[-1], frame[0].seq, "".join(delta.text for delta in frame))


@dataclass
class Server:
    """Publishes `events` to whoever subscribed. `limit` is how many frames wait for a slow reader; with `forgetful` the
    snapshot of an ended run has no tools, as it comes from the database."""

    events: list[ev.Event]
    limit: int = 1000
    forgetful: bool = False
    started: str | None = None
    published: int = 0
    reading: bool = False
    lost: ExecutionState | None = None

    def __post_init__(self) -> None:
        self.state = ExecutionState(self.events[0].execution_id, CONVERSATION)
        self.outbox = Queue(self.limit)

    @property
    def live(self) -> bool:
        return self.started is not None and self.lost is None and not self.state.ended

    def accept(self) -> None:
        """Take a new connection, on which nothing is followed."""
        self.outbox, self.reading = Queue(self.limit), False

    def publish(self) -> None:
        if not self.live:
            return
        event = self.events[self.published]
        self.published += 1
        self.state.apply(event)
        if self.reading:
            self.outbox.put_event(event)

    def crash(self, kept: int) -> None:
        """Lose the run: what is known is what its first `kept` events said in complete messages."""
        if not self.live:
            return
        known = ExecutionState(self.state.execution_id, CONVERSATION)
        for event in self.events[:kept]:
            known.apply(event)
        known.set_current(None)
        known.status, known.interrupt, known.tools = "failed", None, {}
        known.error = {"code": "EXECUTION_LOST", "message": "the server stopped", "retryable": True}
        self.lost = known

    def receive(self, text: str) -> None:
        command = orjson.loads(text)
        ids = {"executionId": self.state.execution_id, "conversationId": CONVERSATION}
        match command["type"]:
            case "start":
                created = self.started is None
                self.started = self.started or command["id"]
                assert command["id"] == self.started
                self._answer(command, **ids, created=created)
                fresh, self.reading = not self.reading, True
                if fresh and self.live and not created:
                    self._show()
            case "subscribe":
                self._answer(command, **ids, version=0)
                self.reading = True
                self._show()
            case _:
                self._answer(command)

    def next(self) -> bytes | None:
        """Return the next frame for the client, None if there is none."""
        if (frame := self.outbox.next()) is None and self.outbox.owed:
            self.outbox.owed = False
            self._show()
            frame = self.outbox.next()
        return frame

    def _answer(self, command: dict[str, Any], **members: Any) -> None:
        self.outbox.put(orjson.dumps({"type": "ack", "id": command["id"], **members}))

    def _show(self) -> None:
        state = (self.lost or self.state).to_wire()
        if self.forgetful and state["status"] == "completed":
            state["tools"] = []
        ids = {"executionId": state["executionId"], "conversationId": CONVERSATION}
        self.outbox.put(orjson.dumps({"type": "snapshot", **ids, "seq": state["seq"], "state": state}))


class Client:
    """A session and what its caller was told."""

    def __init__(self) -> None:
        self.session = Session("client-1")
        self.to_server: deque[str] = deque()
        self.told: list[Event] = []
        self.run: Transcript | None = None
        self.settled: dict[str, Any] = {}
        self.start_id, effects = self.session.command("start", agent="demo", input=[{"type": "text", "text": "And?"}])
        self.perform(effects)

    def perform(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Send():
                    self.to_server.append(effect.text)
                case Settled():
                    self.settled[effect.id] = effect.answer
                    self.run = effect.run or self.run
                case Told():
                    self.run = effect.run
                    self.told += effect.events
                case Found():
                    raise AssertionError("no conversation is followed")
