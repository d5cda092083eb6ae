"""The rows of what reaches a websocket: the real `manage.py serve` against a bare consumer under stock daphne.

Each stream has a socket of its own. The streams of a paced row stand open before the clock starts, so the figure is of
deltas alone; the burst row has everything in it, from `start` to the stored turn. CPU time is of the whole server
process. A client checks that each delta came, once and in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tests.benchmarks.figures import Figure, Limit, figure
from tests.benchmarks.harness import process
from tests.benchmarks.held import RATE, Held, held
from tests.benchmarks.script import DELTA
from tests.benchmarks.servers import Ours, Server, bare_server, our_server
from tests.benchmarks.sockets import Crowd
from tests.benchmarks.stage import stamp

CAPACITY_RATE = 20
CAPACITY_LATE = 250.0
CAPACITY_MOST = 1_024


@dataclass(frozen=True, slots=True)
class Scene:
    """What a group of rows plays on."""

    provider: str
    ours: Ours
    bare: Server
    wanted: Sequence[str]
    runs: int
    size: float

    def much(self, full: int, least: int = 1) -> int:
        return max(least, round(full * self.size))


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are measured together."""

    names: tuple[str, ...]
    measure: Callable[[Scene], Awaitable[list[Figure]]]


def measure_live(wanted: Sequence[str], *, runs: int, size: float) -> list[Figure]:
    """Measure the wanted rows, all of them on the same two servers."""
    groups = [group for group in GROUPS if set(group.names) & set(wanted)]
    if not groups:
        return []

    async def measure(scene: Scene) -> list[Figure]:
        return [figure for group in groups for figure in await group.measure(scene)]

    with ExitStack() as stack:
        provider = f"http://127.0.0.1:{stack.enter_context(process('tests.benchmarks.provider'))('')}"
        ours, bare = stack.enter_context(our_server(provider)), stack.enter_context(bare_server(provider))
        figures = asyncio.run(measure(Scene(provider, ours, bare, wanted, runs, size)))
    return [each for each in figures if each.name in wanted]


def percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def burst(scene: Scene) -> list[Figure]:
    """One answer of 5,000 deltas after the other, from `start` to the stored turn."""
    count, answers = scene.much(5_000, 10), scene.much(10)

    async def run(server: Server, crowd: Crowd) -> float:
        before = server.cpu()
        (socket,) = crowd.sockets
        for _ in range(answers):
            crowd.forget()
            await server.say(socket, f"/burst/{count}/v1")
            await crowd.until(ends=1)
            assert "".join(text for _, text in socket.deltas) == DELTA * count, "text was lost"
        return (server.cpu() - before) * 1e6 / (count * answers)

    crowds = [(server, server.crowd()) for server in (scene.ours, scene.bare)]
    for _, crowd in crowds:
        await crowd.open(1)
    values, floors = await interleaved([lambda pair=pair: run(*pair) for pair in crowds], scene.runs)
    for _, crowd in crowds:
        await crowd.close()
    return [figure("ws.delta.burst", "µs CPU per delta", values, floors, limit=Limit("ratio", 0.9))]


async def paced(scene: Scene) -> list[Figure]:
    """A hundred streams at 50 deltas a second."""
    streams, count = scene.much(100, 2), scene.much(100, 5)
    with_html = "ws.html.paced" in scene.wanted
    late: dict[str, list[float]] = {"ours": [], "bare": []}

    async def run(streams_held: Held, name: str | None) -> float:
        spent, latenesses = await streams_held.play(streams, count, RATE)
        if name:
            late[name].append(percentile(latenesses, 0.99))
        return spent

    async with (
        held(scene.provider, scene.ours, streams) as ours,
        held(scene.provider, scene.bare, streams) as bare,
        held(scene.provider, scene.ours, streams if with_html else 1, "html") as html,
    ):
        works = [lambda: run(ours, "ours"), lambda: run(bare, "bare")]
        if with_html:
            works.append(lambda: run(html, None))
        values, floors, *rest = await interleaved(works, scene.runs)
    unit = "µs CPU per delta"
    p99 = [runs[-scene.runs :] for runs in late.values()]
    figures = [
        figure("ws.delta.paced", unit, values, floors, limit=Limit("ratio", 0.75)),
        figure("ws.lateness.p99", "ms", *p99, limit=Limit("ratio", 1.0)),
    ]
    return [*figures, *(figure("ws.html.paced", unit, each, floors) for each in rest)]


async def fan_out(scene: Scene) -> list[Figure]:
    """One stream to 50 sockets, against a timer that sends to 50 sockets."""
    sockets, count = scene.much(50, 2), scene.much(100, 5)
    ours, bare = scene.ours.crowd(), scene.bare.crowd()
    first, *others = await ours.open(sockets)
    await bare.open(sockets)
    conversation = await scene.ours.say(first, "/burst/1/v1")
    await ours.until(ends=1)
    for socket in others:
        await socket.command({"type": "subscribe", "id": "s", "conversationId": conversation})

    async def run(server: Server, crowd: Crowd, begin: Callable[[], Awaitable[object]]) -> float:
        crowd.forget()
        before = server.cpu()
        await begin()
        await crowd.until(pieces=sockets * count)
        spent = server.cpu() - before
        for socket in crowd.sockets:
            assert sum(len(text.split()) for _, text in socket.deltas) == count, "a delta was lost"
        return spent * 1e6 / count

    stream = Held(scene.provider, scene.ours)
    await scene.ours.say(first, stream.path, "text", conversation)

    async def play() -> None:
        await stream.speak(1, count, RATE)

    async def tell() -> None:
        bare.sockets[0].send({"tell": count, "rate": RATE})

    values, floors = await interleaved(
        [lambda: run(scene.ours, ours, play), lambda: run(scene.bare, bare, tell)], scene.runs
    )
    await stream.end()
    await ours.until(ends=sockets)
    await ours.close()
    await bare.close()
    return [figure("hub.fanout.50", "µs CPU per delta to 50", values, floors, limit=Limit("ratio", 1.5))]


async def idle(scene: Scene) -> list[Figure]:
    """What the resident set grows by when sockets open that then say nothing."""
    count = scene.much(1_000, 20)

    async def run(server: Server) -> float:
        crowd = server.crowd()
        await crowd.open(20)
        before = server.memory()
        await crowd.open(count)
        await asyncio.sleep(1)
        grown = server.memory() - before
        await crowd.close()
        return grown / count

    value, floor = await run(scene.ours), await run(scene.bare)
    return [figure("ws.idle", "KiB per idle socket", [value], [floor], limit=Limit("value", 30))]


async def capacity(scene: Scene) -> list[Figure]:
    """The most runs at 20 deltas a second of which 99 % of the deltas come within 250 ms."""
    most, count = scene.much(CAPACITY_MOST, 4), scene.much(60, 5)

    async def run(server: Server) -> float:
        async with held(scene.provider, server, most) as streams_held:

            async def holds(streams: int) -> bool:
                _, late = await streams_held.play(streams, count, CAPACITY_RATE)
                return percentile(late, 0.99) < CAPACITY_LATE

            return await highest(holds, most)

    floor, value = await run(scene.bare), await run(scene.ours)
    return [figure("ws.capacity", "runs", [value], [floor], limit=Limit("ratio", 1.2, least=True))]


async def highest(holds: Callable[[int], Awaitable[bool]], most: int) -> int:
    """Return the highest number that holds, within 3 %, by doubling and bisection; at most `most`."""
    good, bad = 0, most + 1
    wanted = max(1, most // 16)
    while bad - good > max(1, good // 32):
        if await holds(wanted):
            good = wanted
        else:
            bad = wanted
        wanted = min(good * 2, most) if bad > most else (good + bad) // 2
        if good == most:
            break
    return max(good, 1)


async def start_latency(scene: Scene) -> list[Figure]:
    """From `start` to the moment when the provider has the request, on an idle server and on a busy one."""
    streams, starts = scene.much(100, 2), scene.much(100, 3)
    crowd = scene.ours.crowd()
    (socket,) = await crowd.open(1)

    async def latencies() -> list[float]:
        found = []
        for _ in range(starts):
            crowd.forget()
            sent = stamp()
            await scene.ours.say(socket, "/receipt/v1")
            await crowd.until(ends=1)
            found.append((int(socket.deltas[0][1]) - sent) / 1e3)
        return sorted(found)

    await latencies()
    quiet = await latencies()
    async with held(scene.provider, scene.ours, streams) as streams_held:
        playing = asyncio.ensure_future(streams_held.play(streams, scene.much(250, 5), RATE))
        busy = await latencies()
        await playing
    await crowd.close()
    return [
        figure(f"start.latency.{name}.p{round(share * 100)}", "ms", [percentile(found, share)])
        for name, found in (("idle", quiet), ("busy", busy))
        for share in (0.5, 0.99)
    ]


async def interleaved(works: Sequence[Callable[[], Awaitable[float]]], runs: int) -> list[list[float]]:
    """Do one work after the other, once to warm up and `runs` times; returns the figures of each."""
    rounds = [[await work() for work in works] for _ in range(runs + 1)]
    return [list(values) for values in zip(*rounds[1:], strict=True)]


GROUPS = (
    Group(("ws.idle",), idle),  # first: later there is memory to be used again
    Group(("ws.delta.burst",), burst),
    Group(("ws.delta.paced", "ws.lateness.p99", "ws.html.paced"), paced),
    Group(("hub.fanout.50",), fan_out),
    Group(("ws.capacity",), capacity),
    Group(tuple(f"start.latency.{name}" for name in ("idle.p50", "idle.p99", "busy.p50", "busy.p99")), start_latency),
)
