"""A server of `par.v1` without a network: one recorded run, published step by step over connections that break."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import orjson

from agent.runtime import create_runtime
from agent.runtime import events as ev
from agent.runtime.state import ExecutionState
from agent.runtime.tools import ToolInvocation
from agent.testing import EventRecorder, ScriptedModel, calls, says, scripted_tool
from conversations.client.events import Event
from conversations.client.session import Found, Send, Session, Settled, Told
from conversations.client.transcript import Transcript
from conversations.hosting.hub import snapshot_frame
from conversations.hosting.outbox import EventFrame, Outbox

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


@dataclass
class Server:
    """Publishes `events` to whoever subscribed. `limit` is how many bytes wait for a slow reader; with `forgetful` the
    snapshot of an ended run has no tools, as it comes from the database."""

    events: list[ev.Event]
    limit: int = 4 * 1024 * 1024
    forgetful: bool = False
    started: str | None = None
    published: int = 0
    reading: bool = False
    outbox: Outbox = field(default_factory=Outbox)
    lost: ExecutionState | None = None

    def __post_init__(self) -> None:
        self.state = ExecutionState(self.events[0].execution_id, CONVERSATION)

    @property
    def live(self) -> bool:
        return self.started is not None and self.lost is None and not self.state.ended

    def accept(self) -> None:
        """Take a new connection, on which nothing is followed."""
        self.outbox, self.reading = Outbox(self.limit), False

    def publish(self) -> None:
        if not self.live:
            return
        event = self.events[self.published]
        self.published += 1
        self.state.apply(event)
        if self.reading:
            self.outbox.put_event(EventFrame(event))

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
        while self.outbox._waiting or self.outbox._owed:
            try:
                self.outbox.next().send(None)
            except StopIteration as taken:
                if taken.value is not None:
                    return bytes(taken.value)
                self.outbox.take_owed()
                self._show()
        return None

    def _answer(self, command: dict[str, Any], **members: Any) -> None:
        self.outbox.put(orjson.dumps({"type": "ack", "id": command["id"], **members}))

    def _show(self) -> None:
        state = self.lost or self.state
        frame = snapshot_frame(state)
        if self.forgetful and state.ended:
            loose = orjson.loads(frame)
            loose["state"]["tools"] = []
            frame = orjson.dumps(loose)
        self.outbox.put(frame, state.execution_id)


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
