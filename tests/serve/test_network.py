"""Clients that are slow, stalled, loud or broken: each harms nobody but itself."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from websockets.exceptions import ConnectionClosed

from agent.testing import ScriptedAnswer, ScriptedProvider, chat_stream
from tests.serve.program import WITHIN, Client, browser, program, said, stored
from tests.serve.raw import TEXT, RawSocket, frame, raw, raw_websocket, upgrade
from tests.site import Site

pytestmark = pytest.mark.once

LIMIT = 1024 * 1024
DEEP = 100_000
PING_FRAME, PONG_FRAME = 0x9, 0xA
STALLED = 16
STREAM = 20 * 1024 * 1024
# MiB above what the run takes without them; streams that nobody holds back would be 640 MiB.
MOST_OF_STALLED = 250.0
MOST_UNSENT = 512 * 1024  # bytes in the buffer of one socket: two pieces


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    patient = ("--ping", "60", "120")  # who stalls while a busy machine streams is not taken for gone
    with Site(tmp_path_factory.mktemp("site"), pace=0.01, probed=True, options=patient) as made:
        yield made


@asynccontextmanager
async def bystander(site: Site, token: str) -> AsyncIterator[Client]:
    """Somebody whose answer is being written meanwhile; it must be whole, and the server well afterwards."""
    async with program(site, token) as client:
        ack = await client.say("Tell me a long story")
        await client.until("block-delta")
        yield client
        await client.command(type="cancel", executionId=ack["executionId"])
        run = await client.finished(ack["executionId"])
        read = run.text
        assert (await client.follow(ack["executionId"])).text == read != ""
    async with browser(site, token) as http:
        assert (await http.get("/readyz")).status_code == 200
    assert "Traceback" not in site.log()


async def test_a_slow_reader_gets_fewer_and_larger_frames_and_every_character(
    site: Site, token: str, provider: ScriptedProvider
) -> None:
    """B58: numbered pieces, all of them in order, however late they are taken."""
    pieces, hold = [f"{n:06d} " * 20 for n in range(4_000)], asyncio.Event()
    provider.queue(ScriptedAnswer(chat_stream(*pieces), pace=None, hold=hold))
    async with program(site, token, max_queue=1) as slow, program(site, token) as quick:
        ack = await slow.say("Hi", "scripted")
        await quick.command(type="subscribe", conversationId=ack["conversationId"])
        hold.set()
        assert (await quick.finished(ack["executionId"])).text == "".join(pieces)
        assert (await slow.finished(ack["executionId"])).text == "".join(pieces)
        assert slow.runs[ack["executionId"]].frames < len(pieces)


async def test_250_events_reach_a_client_that_sleeps(site: Site, token: str, provider: ScriptedProvider) -> None:
    """B58: nothing is dropped where a channel layer would drop it after 100 messages."""
    pieces = [f"{n} " for n in range(250)]
    provider.queue(ScriptedAnswer(chat_stream(*pieces)))
    async with program(site, token) as sleeper, program(site, token) as quick:
        hold = await sleeper.say("Hi", "scripted")
        sleeper.forget()
        await quick.follow(hold["executionId"])
        sleeper.connection.transport.resume_reading()
        assert (await sleeper.finished(hold["executionId"])).text.split() == [str(n) for n in range(250)]


async def test_stalled_readers_cost_little_and_get_everything_when_they_wake(
    site: Site, token: str, provider: ScriptedProvider
) -> None:
    """DESIGN 5: a send waits, deltas merge, an overflow becomes a snapshot."""
    pieces = [f"{n:09d} " * 2_000 for n in range(STREAM // 20_000)]
    await most_memory(site, token, provider, pieces, 0)  # the first run leaves memory that is in pieces
    alone = await most_memory(site, token, provider, pieces, 0)
    assert await most_memory(site, token, provider, pieces, STALLED) < alone + MOST_OF_STALLED


async def most_memory(site: Site, token: str, provider: ScriptedProvider, pieces: list[str], stalled: int) -> float:
    """Stream `pieces` to one reader and to `stalled` ones; return the most memory that the server then used."""
    hold = asyncio.Event()
    provider.queue(ScriptedAnswer(chat_stream(*pieces), hold=hold))
    async with AsyncExitStack() as stack, program(site, token, max_size=None) as quick:
        ack = await quick.say("Hi", "scripted")
        sleepers = []
        for _ in range(stalled):
            sleeper = await stack.enter_async_context(program(site, token, max_size=None, ping_interval=None))
            await sleeper.command(type="subscribe", conversationId=ack["conversationId"])
            sleeper.forget()
            sleepers.append(sleeper)
        hold.set()
        reading = asyncio.create_task(quick.finished(ack["executionId"]))
        most = site.memory()
        while not reading.done():
            await asyncio.wait({reading}, timeout=0.02)
            most = max(most, site.memory())
        text = said((await stored(site, token, ack["conversationId"]))["messages"])
        assert text == "".join(pieces) == (await reading).text
        assert (await asyncio.to_thread(site.probe))["bytes"] <= (stalled + 1) * MOST_UNSENT
        for sleeper in sleepers:
            sleeper.connection.transport.resume_reading()
            run = await sleeper.finished(ack["executionId"])
            assert run.text == text
            assert run.snapshots > 0
        return max(most, site.memory())


async def test_a_large_message_comes_in_pieces_and_a_ping_is_answered_between_them(
    site: Site, token: str, provider: ScriptedProvider
) -> None:
    pieces = [f"{n:09d} " * 2_000 for n in range(STREAM // 20_000)]
    provider.queue(ScriptedAnswer(chat_stream(*pieces)))
    async with program(site, token, max_size=None) as quick, raw_websocket(site, token) as slow:
        ack = await quick.say("Hi", "scripted")
        await quick.finished(ack["executionId"])
        subscribe = {"type": "subscribe", "id": "1", "executionId": ack["executionId"]}
        await slow.send(frame(json.dumps(subscribe).encode()))
        await slow.texts(2)  # the welcome and the answer
        opcode, payload = await slow.frame()
        assert (opcode, slow.final) == (TEXT, False)
        await slow.send(frame(b"there?", opcode=PING_FRAME))
        received, answers = [payload], []
        async with asyncio.timeout(WITHIN):
            while not slow.final or opcode == PONG_FRAME:
                opcode, payload = await slow.frame()
                (answers if opcode == PONG_FRAME else received).append(payload)
        assert answers == [b"there?"]
        assert said(json.loads(b"".join(received))["state"]["messages"]) == "".join(pieces)


JUNK: dict[str, str | bytes] = {
    "half an object": "{",
    "nothing": "",
    "a list": "[]",
    "null": "null",
    "a deep list": "[" * DEEP,
    "a deep list that ends": "[" * DEEP + "]" * DEEP,
    "a deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
    "200 kB of nested JSON in a command": '{"type": "start", "id": %s}' % ('{"a":' * 33_000 + "1" + "}" * 33_000),
    "an unknown type": '{"type": "explode", "id": "1"}',
    "a type that is a list": '{"type": ["ping"], "id": "1"}',
    "NaN": '{"type": "ping", "id": NaN}',
    "a number without end": '{"type": "ping", "id": 1e999}',
    "a lone surrogate": '{"type": "ping", "id": "\\ud800"}',
    "an id of a megabyte": json.dumps({"type": "ping", "id": "x" * 1_000_000}),
    "an unknown member": '{"type": "ping", "id": "1", "extra": 1}',
    "a digest that is binary": b"\x00\xff\x00\xff",
    "binary JSON": b'{"type": "ping", "id": "1"}',
}


async def test_nonsense_is_answered_with_one_clear_error_each(site: Site, token: str) -> None:
    """B65: no frame kills its socket, whatever is in it."""
    async with bystander(site, token):
        for name, sent in JUNK.items():
            async with program(site, token) as client:  # of its own: large ones count as several commands
                await client.connection.send(sent)
                refused = await client.receive()
                assert (refused["type"], refused["code"]) == ("error", "INVALID_ARGUMENT"), name
                assert len(refused["message"]) < 1_000, name
                assert (await client.command(type="ping"))["type"] == "ack", name


async def test_the_last_of_two_equal_members_counts_and_nul_is_replaced(site: Site, token: str) -> None:
    async with program(site, token) as client:
        await client.connection.send('{"type": "cancel", "id": "first", "type": "ping", "id": "second"}')
        assert (await client.until("ack"))["id"] == "second"
        ack = await client.say("What is\0 2 + 2?")
        await client.finished(ack["executionId"])
    (asked, *_) = (await stored(site, token, ack["conversationId"]))["messages"]
    assert asked["blocks"][0]["text"] == "What is\ufffd 2 + 2?"


async def test_commands_over_the_rate_are_refused_one_by_one_and_the_socket_lives(site: Site, token: str) -> None:
    async with bystander(site, token) as quiet, program(site, token, max_queue=None) as loud:
        for n in range(2_000):
            await loud.connection.send("{" if n % 2 else json.dumps({"type": "ping", "id": str(n)}))
        answers = [await loud.receive() for _ in range(2_000)]
        assert {answer.get("code") for answer in answers} == {None, "INVALID_ARGUMENT", "RATE_LIMITED"}
        acked = [int(answer["id"]) for answer in answers if answer["type"] == "ack"]
        assert acked == sorted(acked)
        assert (await quiet.command(type="ping"))["type"] == "ack"


async def test_a_command_may_come_in_any_number_of_pieces(site: Site, token: str) -> None:
    """Fragments of one byte, and pings between them."""
    whole = json.dumps({"type": "ping", "id": "x" * 60})

    async def pieces() -> AsyncIterator[str]:
        for at, letter in enumerate(whole):
            if at % 20 == 0:
                await client.connection.ping()
            yield letter

    async with bystander(site, token), program(site, token) as client:
        await client.connection.send(pieces())
        assert (await client.until("ack"))["id"] == "x" * 60
        long = json.dumps({"type": "ping", "id": "y"}) + " " * 5_000
        await client.connection.send(iter(long))
        assert (await client.until("ack"))["id"] == "y"


@pytest.mark.parametrize("fragmented", [False, True])
async def test_a_frame_over_the_limit_closes_its_socket_only(site: Site, token: str, fragmented: bool) -> None:
    """B65: the run of that client goes on, and the next socket follows it."""
    async with bystander(site, token), program(site, token) as loud:
        ack = await loud.say("Hello")
        with pytest.raises(ConnectionClosed) as caught:
            await send_and_read_on(loud, ["x" * 65_536] * 17 if fragmented else "x" * (LIMIT + 1))
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1009
        async with program(site, token) as again:
            assert (await again.follow(ack["executionId"])).status == "completed"


async def send_and_read_on(client: Client, message: str | list[str]) -> None:
    await client.connection.send(message)
    await client.until("nothing")


PING = frame(b'{"type": "ping", "id": "1"}')
BROKEN: dict[str, tuple[bytes, int | None]] = {
    "an unknown opcode": (frame(b"", opcode=0x3), 1002),
    "an unknown control opcode": (frame(b"", opcode=0xB), 1002),
    "a frame without a mask": (frame(b"{}", masked=False), 1002),
    "a reserved bit": (frame(b"{}", reserved=4), 1002),
    "text that is no UTF-8": (frame(b'{"type": "\xff\xfe"}'), 1007),
    "a surrogate in UTF-8": (frame(b'"\xed\xa0\x80"'), 1007),
    "a continuation of nothing": (frame(b"x", opcode=0x0), 1002),
    "a text inside a text": (frame(b"{", final=False) + frame(b"{}"), 1002),
    "a ping in pieces": (frame(b"x", opcode=0x9, final=False), 1002),
    "a ping of 126 bytes": (frame(b"x" * 126, opcode=0x9), 1002),
    "a close of one byte": (frame(b"x", opcode=0x8), 1002),
    "a close with a code that is none": (frame(b"\x03\xe7", opcode=0x8), 1002),
    "a close whose reason is no UTF-8": (frame(b"\x03\xe8\xff", opcode=0x8), 1007),
    "a length of 2**63": (b"\x81\xff" + b"\xff" * 8 + b"mask", 1002),
    "a length of 2**62": (b"\x81\xff\x40" + b"\x00" * 7 + b"mask", 1009),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 100, 1002),
    "noise": (bytes(range(256)) * 64, 1002),
}


async def test_malformed_frames_close_their_socket_with_a_code(site: Site, token: str) -> None:
    async with bystander(site, token):
        for name, (sent, code) in BROKEN.items():
            async with raw_websocket(site, token) as client:
                await client.send(PING + sent)
                assert await client.close_code() == code, name


def handshakes(token: str) -> dict[str, bytes]:
    def same(**changes: Any) -> bytes:
        return upgrade(token, **changes)

    return {
        "no key": same(without="Sec-WebSocket-Key"),
        "a short key": same(Sec_WebSocket_Key="abc"),
        "no version": same(without="Sec-WebSocket-Version"),
        "version 0": same(Sec_WebSocket_Version="0"),
        "a version that is no number": same(Sec_WebSocket_Version="x"),
        "no host": same(without="Host"),
        "a host with a port that is none": same(Host="127.0.0.1:x"),
        "no connection header": same(without="Connection"),
        "POST": same(line="POST /ai/ws HTTP/1.1", Content_Length="0"),
        "HTTP/9": same(line="GET /ai/ws HTTP/9.9"),
        "no path": same(line="GET HTTP/1.1"),
        "a path with a NUL": same(line="GET /ai/ws\0 HTTP/1.1"),
        "a path that is no ASCII": same(line="GET /ai/ws\xff HTTP/1.1"),
        "another path": same(line="GET /nowhere HTTP/1.1"),
        "a fragment in the path": same(line="GET /ai/ws#x HTTP/1.1"),
        "a header with a control character": same(X_Odd="\x0b"),
        "subprotocols that are no ASCII": same(Sec_WebSocket_Protocol="par.v1\xff"),
        "subprotocols twice": same(Sec_WebSocket_Protocol="par.v1, par.v1"),
        "empty subprotocols": same(Sec_WebSocket_Protocol=","),
        "an endless header": same(X_Long="x" * 100_000),
        "a thousand headers": upgrade(token, **{f"X_{n}": "x" for n in range(1_000)}),
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500 + b"\r\n\r\n",
        "an HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "plain GET": same(without="Upgrade").replace(b"Upgrade", b"close"),
    }


async def test_malformed_handshakes_are_refused(site: Site, token: str) -> None:
    async with bystander(site, token):
        for name, sent in handshakes(token).items():
            async with raw(site) as client:
                await client.send(sent)
                answer = await client.answer()
                assert not answer or answer.startswith(b"HTTP/1.1 4"), name


async def test_bytes_behind_a_request_are_a_request_of_their_own(site: Site, token: str) -> None:
    async with bystander(site, token), raw(site) as client:
        await client.send(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 3 + b"\x00\x01garbage\r\n\r\n")
        received = await client.rest()
        assert received.count(b"200 OK") == 3
        assert b"400 Bad Request" in received


async def test_handshakes_that_never_end_hold_up_nobody(site: Site, token: str) -> None:
    """Slowloris: 200 requests, of which another byte comes now and then."""
    head = upgrade(token)
    async with AsyncExitStack() as stack:
        slow = [await stack.enter_async_context(raw(site)) for _ in range(200)]
        for at in range(len(head) // 2, len(head) // 2 + 5):
            for each in slow:
                await each.send(head[:at] if at == len(head) // 2 else head[at - 1 : at])
            async with bystander(site, token):
                pass


BRACKETS = "[" + "[]," * 330_000 + "1]"
HELD_UP = 2.0  # seconds, of a second client's ping
PINGS, COMMANDS = 60_000, 20_000
MOST_FRAMES, MOST_BYTES = 1_000, 1024 * 1024  # that wait for one who does not read


async def test_a_megabyte_of_brackets_is_refused_at_once(site: Site, token: str) -> None:
    """B73: reading one would take the process a second and more, over the websocket as over HTTP."""
    name = str(uuid4())
    result = '"callId": "c", "result": %s}' % BRACKETS
    body, path = "{" + result, f"/ai/executions/{name}/tool-results"
    command = '{"type": "tool-result", "id": "1", "executionId": "%s", %s' % (name, result)
    async with program(site, token) as loud, program(site, token) as quiet, browser(site, token) as http:
        headers = {"content-type": "application/json"}
        posts = [asyncio.create_task(http.post(path, content=body, headers=headers)) for _ in range(4)]
        for _ in range(8):
            await loud.connection.send(command)
        before = time.monotonic()
        while not all(post.done() for post in posts):
            assert (await quiet.command(type="ping"))["type"] == "ack"
            assert time.monotonic() - before < HELD_UP
            before = time.monotonic()
        answers = [await loud.receive() for _ in range(8)]
        assert {(answer["id"], answer["code"]) for answer in answers} == {
            ("1", "INVALID_ARGUMENT"),
            ("1", "RATE_LIMITED"),
        }
        assert {(await post).status_code for post in posts} == {400}


async def quiet(site: Site) -> None:
    """Wait until the server has nothing to do any more."""
    async with asyncio.timeout(60):
        before, now = 0.0, site.cpu()
        while now - before > 0.1:
            await asyncio.sleep(0.5)
            before, now = now, site.cpu()


async def test_pings_of_a_client_that_does_not_read_cost_nothing(site: Site, token: str) -> None:
    """Of all of them the last one is answered; and commands are heard meanwhile."""
    async with bystander(site, token) as other, raw_websocket(site, token) as loud:
        loud.give(frame(b"x" * 125, opcode=0x9) * PINGS + frame(b"the last one", opcode=0x9))
        ack = await other.say("Tell me a long story")
        loud.give(frame(json.dumps({"type": "cancel", "id": "1", "executionId": ack["executionId"]}).encode()))
        assert (await other.finished(ack["executionId"])).status == "cancelled"
        await quiet(site)
        assert (await asyncio.to_thread(site.probe))["bytes"] < MOST_BYTES
        async with asyncio.timeout(60):
            while await loud.frame() != (0xA, b"the last one"):
                pass


async def test_commands_of_a_client_that_does_not_read_wait(site: Site, token: str) -> None:
    """They are taken when it reads on, and each is answered."""
    async with bystander(site, token), raw_websocket(site, token) as loud:
        await loud.texts(1)
        loud.give(PING * COMMANDS)
        await quiet(site)
        assert (await asyncio.to_thread(site.probe))["frames"] < MOST_FRAMES
        answers = await loud.texts(COMMANDS)
    assert {json.loads(answer).get("code") for answer in answers} == {None, "RATE_LIMITED"}


@asynccontextmanager
async def one_who_falls_behind(site: Site, kind: str, execution_id: str) -> AsyncIterator[RawSocket]:
    """A reader of one run, over the websocket or plain HTTP, with a token of its own, who does not read on."""
    own = await asyncio.to_thread(site.token)
    if kind == "websocket":
        async with raw_websocket(site, own) as reader:
            subscribe = {"type": "subscribe", "id": "1", "executionId": execution_id}
            await reader.send(frame(json.dumps(subscribe).encode()))
            await reader.texts(2)
            yield reader
    else:
        async with raw(site) as reader:
            line = f"GET /ai/executions/{execution_id}/events HTTP/1.1"
            await reader.send(upgrade(own, line=line, without="Upgrade"))
            assert (await reader.answer()).startswith(b"HTTP/1.1 200")
            yield reader


async def only_one_is_there(site: Site) -> None:
    async with asyncio.timeout(30):
        while (await asyncio.to_thread(site.probe))["connections"] > 1:
            await asyncio.sleep(0.2)


@pytest.mark.parametrize("kind", ["websocket", "events"])
async def test_who_is_behind_when_the_sign_in_ends_gets_nothing_more(
    site: Site, token: str, provider: ScriptedProvider, kind: str
) -> None:
    """B64: what waits is thrown away, and the connection is cut although nobody reads its end."""
    pieces, hold = ["x" * 20_000] * 300, asyncio.Event()
    provider.queue(ScriptedAnswer(chat_stream(*pieces), hold=hold))
    async with program(site, token, max_size=None) as quick:
        ack = await quick.say("Hi", "scripted")
        await only_one_is_there(site)
        async with one_who_falls_behind(site, kind, ack["executionId"]) as behind:
            hold.set()
            run = await quick.finished(ack["executionId"])
            revoked = "ApiToken.objects.filter(pk=ApiToken.objects.latest('pk').pk).update(revoked_at=timezone.now())"
            await asyncio.to_thread(
                site.shell,
                f"from django.utils import timezone\nfrom conversations.models import ApiToken\n{revoked}",
            )
            await only_one_is_there(site)
            assert len(await behind.rest()) < MOST_BYTES
        assert run.text == "".join(pieces)


async def test_a_tool_result_of_five_megabytes_reaches_everybody(
    site: Site, token: str, provider: ScriptedProvider
) -> None:
    """B65: one that a frame may not hold closes its socket only; five that it may come to all readers whole."""
    calls, result = 5, "r" * 1_000_000
    provider.queue(ScriptedAnswer(chat_stream(tool_calls=[("clipboard", {"n": n}) for n in range(calls)])))
    provider.queue(ScriptedAnswer(chat_stream("That is much.")))
    site.shell(
        "from agent.models import AgentProfile\n"
        "limits = {'maxModelOutputCharacters': 100_000_000, 'maxToolResultCharacters': 2_000_000}\n"
        "AgentProfile.objects.filter(slug='scripted').update(limits=limits)"
    )
    tool = {"name": "clipboard", "description": "Read it.", "inputSchema": {"type": "object"}}
    tool["annotations"] = {"readOnlyHint": True}
    async with program(site, token, max_size=None) as reader, program(site, token) as first:
        ack = await first.say("Hi", "scripted", clientId="me", clientTools=[tool])
        await reader.command(type="subscribe", conversationId=ack["conversationId"])
        call = await first.until("client-tool-call")
        answer = {"type": "tool-result", "id": "1", "executionId": ack["executionId"]}
        large = json.dumps({**answer, "callId": call["callId"], "result": result * calls})
        with pytest.raises(ConnectionClosed) as caught:
            await send_and_read_on(first, large)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 1009
        async with program(site, token, max_size=None) as second:
            await second.command(type="subscribe", executionId=ack["executionId"], clientId="me")
            seen = {frame["callId"]: frame for frame in second.frames if frame["type"] == "client-tool-call"}
            answered: set[str] = set()
            while len(answered) < calls:
                for id in set(seen) - answered:
                    answered.add(id)
                    taken = answer | {"id": id, "callId": id, "result": result}
                    while (await second.command(**taken)).get("code") == "RATE_LIMITED":
                        pass  # a large frame counts as several commands
                if len(answered) < calls:
                    call = await second.until("client-tool-call")
                    seen[call["callId"]] = call
            assert (await second.finished(ack["executionId"])).status == "completed"
        assert (await reader.finished(ack["executionId"])).text == "That is much."
        state = await stored(site, token, ack["conversationId"])
        async with program(site, token, max_size=None) as late:
            await late.command(type="subscribe", executionId=ack["executionId"])
            snapshot = (await late.until("snapshot"))["state"]
    told = [frame["messages"] for frame in reader.frames if frame["type"] == "messages"]
    assert [block["content"][0]["text"] for block in results(state["messages"])] == [result] * calls
    for messages in (snapshot["messages"], [each for some in told for each in some]):
        excerpts = results(messages)
        assert len(excerpts) == calls
        for block in excerpts:
            assert block["omitted"] > 0
            assert len(block["content"][0]["text"]) < 20_000
    async with browser(site, token) as http:
        whole = await http.get(f"/ai/executions/{ack['executionId']}/tool-results/{excerpts[0]['callId']}")
    assert whole.text == result
    assert provider.requests[-1].json["messages"][-1]["content"] == result


def results(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for message in messages for block in message["blocks"] if block["type"] == "tool-result"]


async def test_nothing_is_left_of_all_these_clients(site: Site, token: str) -> None:
    """Runs last."""
    async with asyncio.timeout(30):
        while (held := await asyncio.to_thread(site.probe))["connections"]:
            await asyncio.sleep(0.2)
    assert set(held.pop("tasks")) == {"audit", "heartbeat", "pruning", "sign-ins"}
    assert set(held.values()) == {0}, held
    assert "Traceback" not in site.log()
    assert "took too long to shut down" not in site.log()
