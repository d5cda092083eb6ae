"""From runs to readers: whatever happens between, a reader that keeps to the protocol has the whole run."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import orjson
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.runtime import BlockDelta, BlockStart, BlockStop
from agent.runtime import events as ev
from conversations.hosting import tick
from conversations.hosting.hub import Channel, EventHub, Reader
from conversations.hosting.outbox import Outbox
from conversations.hosting.snapshot import pieces_of
from conversations.hosting.subscriber import Subscriber

SMALL = 700  # bytes of an outbox: two events


class Run:
    """A run that says what it is told to."""

    def __init__(self, hub: EventHub) -> None:
        self.channel = hub.open("c", "e")
        self.index = -1
        self.say_events(ev.ModelCallStarted(1, "m"))
        self.next_block()

    def say_events(self, *events: ev.Event) -> None:
        for seq, event in enumerate(events, self.channel.state.seq + 1):
            event.execution_id, event.seq = "e", seq
        self.channel.publish(events)

    def say(self, *texts: str) -> None:
        self.say_events(*(BlockDelta(self.index, "text", text) for text in texts))

    def next_block(self) -> None:
        if self.index >= 0:
            self.say_events(BlockStop(self.index))
        self.index += 1
        self.say_events(BlockStart(self.index, "text"))


class Client:
    """One socket and the program behind it, which keeps to docs/protocol.md."""

    def __init__(self, hub: EventHub, limit: int = SMALL) -> None:
        host = SimpleNamespace(hub=hub, subscribers=set())
        self.subscriber = Subscriber(cast(Any, host), cast(Any, SimpleNamespace(user=None)))
        self.subscriber.outbox = Outbox(limit)
        self.subscriber.outbox.offer = self.offer
        self.writable = True
        self.frames: list[bytes] = []
        self.seq = 0
        self.blocks: dict[int, str] = {}
        self.subscriber.follow("c", "text")

    def offer(self, frame: bytes) -> bool:
        if self.writable:
            self.receive(frame)
        return self.writable

    def take(self) -> bool:
        """Let the sender task send one frame, if one waits."""
        taking = self.subscriber.next()
        try:
            taking.send(None)
        except StopIteration as done:
            self.receive(b"".join(pieces_of(done.value)))
            return True
        taking.close()
        return False

    def take_all(self) -> None:
        while self.take():
            pass

    def receive(self, raw: bytes) -> None:
        self.frames.append(raw)
        frame = orjson.loads(raw)
        if frame["type"] == "snapshot":
            self.seq = frame["seq"]
            current = frame["state"]["current"] or {"blocks": []}
            self.blocks = {block["index"]: block["text"] for block in current["blocks"]}
            return
        if frame["seq"] <= self.seq:
            return
        assert frame.get("fromSeq", frame["seq"]) == self.seq + 1, "a frame is missing, and no snapshot came first"
        self.seq = frame["seq"]
        if frame["type"] == "block-start":
            self.blocks[frame["index"]] = ""
        elif frame["type"] == "block-delta":
            self.blocks[frame["index"]] += frame["delta"]["text"]


def whole(channel: Channel) -> tuple[int, dict[int, str]]:
    return channel.state.seq, {index: block.text for index, block in channel.state.blocks.items()}


number = st.integers(0, 3)
step = st.one_of(
    st.tuples(st.just("say"), st.lists(st.text("aé\u2028", max_size=2), min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["block", "join", "tick"]), st.none()),
    st.tuples(st.just("lag"), st.booleans()),
    st.tuples(st.sampled_from(["take", "block writing", "unblock writing", "leave", "return"]), number),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(step, max_size=60))
@example(  # a snapshot in place of what was dropped, while deltas are held
    [("take", 0), ("block writing", 0), ("block", None), ("block", None), ("lag", True)]
    + [("say", ["a"]), ("take", 0), ("unblock writing", 0), ("say", ["b"]), ("tick", None)]
)
def test_whatever_happens_each_reader_ends_with_the_state_of_the_run(steps: list[tuple[str, Any]]) -> None:
    """DESIGN 5: slow, full, late and returning readers, while the loop lags and when it does not."""

    async def play() -> None:
        hub = EventHub()
        run = Run(hub)
        clients = [Client(hub)]
        for what, value in steps:
            client = clients[value % len(clients)] if type(value) is int else clients[0]
            match what:
                case "say":
                    run.say(*value)
                case "block":
                    run.next_block()
                case "join":
                    clients.append(Client(hub))
                case "tick":
                    hub.tick.flush()
                case "lag":
                    hub.tick.lagging = value
                case "take":
                    client.take()
                case "block writing" | "unblock writing":
                    client.writable = what == "unblock writing"
                case "leave":
                    client.subscriber.unfollow("c")
                case "return":
                    client.subscriber.follow("c", "text")
        hub.tick.flush()
        for client in clients:
            client.writable = True
            client.subscriber.follow("c", "text")
            client.take_all()
            assert (client.seq, client.blocks) == whole(run.channel)

    asyncio.run(play())


async def test_what_one_read_brought_is_one_frame_encoded_once_for_all_readers() -> None:
    hub = EventHub()
    run = Run(hub)
    clients = [Client(hub), Client(hub)]
    for client in clients:
        client.take_all()  # the snapshot
    run.say("a", "b", "c")
    run.say("d")
    one, other = ([frame for frame in client.frames if b"block-delta" in frame] for client in clients)
    assert [orjson.loads(frame)["delta"]["text"] for frame in one] == ["abc", "d"]
    assert all(mine is its for mine, its in zip(one, other, strict=True))


async def test_while_the_loop_lags_deltas_wait_for_the_tick_and_nothing_else_does() -> None:
    """DESIGN 5: a fast reader gets each delta at once; when the loop lags, a fixed flush tick takes over."""
    hub = EventHub()
    run = Run(hub)
    client = Client(hub)
    client.take_all()  # the snapshot
    run.say("at once")
    assert client.blocks == {0: "at once"}
    time.sleep(2 * tick.INTERVAL)  # something holds up the loop
    async with asyncio.timeout(5):
        while not hub.tick.lagging:
            await asyncio.sleep(0)
    before = len(client.frames)
    run.say(", later")
    run.say(", together")
    assert client.blocks == {0: "at once"}
    run.next_block()
    assert client.blocks == {0: "at once, later, together", 1: ""}
    assert len(client.frames) == before + 3
    run.say("by itself")
    async with asyncio.timeout(5):
        while client.blocks[1] != "by itself":
            await asyncio.sleep(0)


async def test_who_comes_while_deltas_are_held_begins_after_them() -> None:
    """Also without a snapshot, for whoever has seen all that was said so far."""
    hub = EventHub()
    run = Run(hub)
    hub.tick.lagging = True
    run.say("held")
    seen = run.channel.state.seq
    reader = Reader(Outbox(), "c", "text")
    hub.add(reader)
    run.say("new")
    run.next_block()
    frame = await asyncio.wait_for(reader.outbox.next(), 5)
    assert frame is not None
    first = orjson.loads(frame)
    assert first.get("fromSeq", first["seq"]) == seen + 1


async def test_when_nothing_is_said_the_tick_stops_and_the_next_delta_goes_at_once() -> None:
    hub = EventHub()
    run = Run(hub)
    hub.tick.lagging = True
    run.say("held")
    async with asyncio.timeout(5):
        while hub.tick.lagging:
            await asyncio.sleep(0)
    reader = Reader(Outbox(), "c", "text")
    hub.add(reader)
    run.say("at once")
    frame = await asyncio.wait_for(reader.outbox.next(), 5)
    assert frame is not None
    assert orjson.loads(frame)["delta"]["text"] == "at once"


async def test_the_hub_ends_what_it_began() -> None:
    """DESIGN 5: no task without an owner."""
    hub = EventHub()
    before = asyncio.all_tasks()
    hub.add(Reader(Outbox(), "c", "html"))
    Run(hub).say("one\n\ntwo")
    (rendering,) = asyncio.all_tasks() - before
    await hub.stop()
    assert rendering.done()
    assert not hub._rendering
    assert hub.tick._timer is None
