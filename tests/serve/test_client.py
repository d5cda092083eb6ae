"""The Python client with the real server, over connections that break."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from agent.testing import ScriptedAnswer, ScriptedProvider, chat_stream
from conversations.client import (
    ApprovalRequested,
    AsyncClient,
    AsyncRun,
    Client,
    Event,
    NotConnected,
    ParError,
    RunFailed,
    TextDelta,
    TextLost,
    ToolEnded,
    Unanswered,
    client_tool,
)
from tests.proxy import proxy_to
from tests.site import ROOT, Site

WITHIN = 120
FENCE = re.compile(r"^```python(?: client)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    (page, code)
    for page in ("README.md", "docs/client.md")
    for code in FENCE.findall((ROOT / page).read_text())
    if "conversations.client" in code
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site"), pace=0.004) as made:
        yield made


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    return site.token()


async def all_of(run: AsyncRun) -> list[Event]:
    async with asyncio.timeout(WITHIN):
        return [event async for event in run]


def said(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def first_text(run: AsyncRun) -> None:
    async with asyncio.timeout(WITHIN):
        async for event in run:
            if isinstance(event, TextDelta):
                return


async def test_an_answer_survives_twenty_cuts_at_random_bytes(site: Site, token: str) -> None:
    dice = random.Random(4)
    budgets = [dice.randrange(5000) for _ in range(20)]
    budgets[0] = 5000  # the first one must get as far as the welcome
    async with proxy_to(site.port, budgets) as (proxy, address), AsyncClient(address, token) as client:
        run = await client.start("demo", "Tell me a long story")
        events = await all_of(run)
        result = await run.result()
        assert proxy.connections == 21
    async with AsyncClient(site.address, token) as client:
        stored = await (await client.run(run.execution_id)).result()
    assert said(events) == result.text == stored.text
    assert len(stored.text) > 2000
    assert result.messages == stored.messages
    assert (result.revision, result.outcome) == (stored.revision, stored.outcome)
    assert not [event for event in events if isinstance(event, TextLost)]


async def test_a_start_whose_answer_is_lost_is_sent_again_and_starts_one_run(site: Site, token: str) -> None:
    async with proxy_to(site.port) as (proxy, address), AsyncClient(address, token) as client:
        first = await client.start("demo", "What is 17 * 23?")
        await first.result()
        proxy.silent = "down"
        asked = client.start("demo", "What is 2 + 2?", conversation=first.conversation_id, base_revision=1)
        asking = asyncio.create_task(asked)
        await proxy.until(lambda: proxy.swallowed > 0)  # the answer
        proxy.silent = ""
        proxy.cut()
        result = await (await asking).result()
        assert result.revision is not None and result.revision.version == 2
        assert "4" in result.text


async def test_the_same_id_again_gives_the_same_run(site: Site, token: str) -> None:
    id = uuid4()
    async with AsyncClient(site.address, token) as client:
        runs = [await client.start("demo", "What is 17 * 23?", id=id) for _ in range(2)]
        texts = {(await run.result()).text for run in runs}
    async with AsyncClient(site.address, token) as client:
        runs.append(await client.start("demo", "What is 17 * 23?", id=id))
        texts.add((await runs[2].result()).text)
    assert len(texts) == len({run.execution_id for run in runs}) == 1


async def test_a_dead_connection_is_noticed_and_replaced(site: Site, token: str) -> None:
    async with proxy_to(site.port) as (proxy, address), AsyncClient(address, token, heartbeat=0.5) as client:
        run = await client.start("demo", "Tell me a long story")
        await first_text(run)
        proxy.silent = "both"
        await proxy.until(lambda: proxy.connections == 2)
        proxy.silent = ""
        await run.cancel()
        assert (await run.result()).outcome.type == "cancelled"


async def test_a_person_approves_changes_or_rejects_and_a_run_can_be_cancelled(site: Site, token: str) -> None:
    async with AsyncClient(site.address, token) as client:
        run = await client.start("demo", "Send a postcard to Ada")
        ended = []
        async for event in run:
            if isinstance(event, ApprovalRequested):
                assert event.arguments["to"] == "Ada"
                await run.approve({"to": "Bob", "text": "Hello"})
            ended += [event] if isinstance(event, ToolEnded) else []
        assert "The postcard to Bob is on its way" in ended[0].text

        kept = await client.start("demo", "Send a postcard to Ada", on_approval=lambda asked: "Not today.")
        await kept.result()
        assert "no postcard was sent" in kept.text
        with pytest.raises(ParError, match="INVALID_STATE"):
            await kept.approve()

        story = await client.start("demo", "Tell me a long story", conversation=kept.conversation_id)
        await first_text(story)
        with pytest.raises(ParError, match="INVALID_STATE"):
            await client.start("demo", "And now?", conversation=kept.conversation_id)
        assert await story.cancel() == "cancelled"
        result = await story.result()
        assert (result.outcome.type, result.outcome.reason, result.revision) == ("cancelled", "user", None)
        with pytest.raises(ParError, match="CONVERSATION_CONFLICT") as caught:
            await client.start("demo", "And?", conversation=kept.conversation_id, base_revision=7)
        assert caught.value.current_revision == 1


async def test_many_runs_share_a_connection_and_a_conversation_is_followed(site: Site, token: str) -> None:
    async with AsyncClient(site.address, token) as client, AsyncClient(site.address, token) as other:
        runs = await asyncio.gather(*(client.start("demo", f"What is {n} * 2?") for n in range(4)))
        results = await asyncio.gather(*(run.result() for run in runs))
        assert [str(2 * n) in result.text for n, result in enumerate(results)] == [True] * 4

        conversation = runs[0].conversation_id
        story = await client.start("demo", "Tell me a long story", conversation=conversation)
        following = other.follow(conversation)
        seen = await anext(following)
        assert seen.execution_id == story.execution_id
        await seen.cancel()
        assert (await seen.result()).text == (await story.result()).text
        more = await client.start("demo", "What is 3 * 5?", conversation=conversation)
        coming = await anext(following)
        assert coming.execution_id == more.execution_id
        assert said(await all_of(coming)) == (await more.result()).text
        await following.aclose()


async def test_a_tool_of_this_program_is_run_once_whatever_the_connection_does(site: Site, token: str) -> None:
    called: list[str] = []
    async with (
        ScriptedProvider(
            ScriptedAnswer(chat_stream(tool_calls=[("clipboard", {"kind": "text"})])),
            ScriptedAnswer(chat_stream("It says so.")),
        ) as provider,
        proxy_to(site.port) as (proxy, address),
    ):
        site.manage("add_agent", "caller", "--protocol", "openai-chat", "--base-url", provider.url, "--model", "m1")

        @client_tool(read_only=True)
        async def clipboard(kind: str) -> str:
            """Read the clipboard."""
            called.append(kind)
            proxy.cut()
            await asyncio.sleep(0)
            return "a copied word"

        async with AsyncClient(address, token) as client:
            run = await client.start("caller", "What did I copy?", tools=[clipboard])
            assert (await run.result()).text == "It says so."
        assert called == ["text"]
        assert provider.requests[1].json["messages"][-1]["content"] == "a copied word"


async def test_who_is_not_let_in_is_told_why_at_once(site: Site, token: str) -> None:
    with pytest.raises(NotConnected) as caught:
        await AsyncClient(site.address, "par_wrong").connect()
    assert caught.value.code == "AUTH_REQUIRED"
    with pytest.raises(NotConnected, match="not as a websocket"):
        await AsyncClient(site.address, token, base_path="/elsewhere").connect()
    with pytest.raises(NotConnected, match="no connection to ws"):
        await AsyncClient("http://127.0.0.1:9", token).connect()
    with pytest.raises(NotConnected, match="connect first"):
        await AsyncClient(site.address, token).start("demo", "Hello")
    with pytest.raises(ParError, match="AGENT_NOT_FOUND"):
        async with AsyncClient(site.address, token) as client:
            await client.start("nobody", "Hello")


async def test_a_token_that_is_revoked_ends_everything_with_that_reason(site: Site) -> None:
    async with AsyncClient(site.address, site.token()) as client:
        run = await client.start("demo", "Send a postcard to Ada")
        await first_text(run)
        newest = "SELECT id FROM conversations_apitoken ORDER BY id DESC LIMIT 1"
        site.query(f"DELETE FROM conversations_apitoken WHERE id IN ({newest})")
        with pytest.raises(ParError, match="AUTH_REQUIRED"):
            await run.cancel()
        with pytest.raises(NotConnected, match="AUTH_REQUIRED"):
            await run.result()


async def test_a_frame_that_is_too_large_fails_alone(site: Site, token: str) -> None:
    async with AsyncClient(site.address, token) as client:
        run = await client.start("demo", "Tell me a long story")
        await first_text(run)
        with pytest.raises(ParError, match="FRAME_TOO_LARGE"):
            await client.start("demo", "x" * 64_000_000)
        await run.cancel()
        assert (await run.result()).outcome.type == "cancelled"


async def test_a_connection_that_does_not_come_back_is_given_up_with_an_error(site: Site, token: str) -> None:
    async with proxy_to(site.port) as (_, address):
        client = AsyncClient(address, token, reconnect_for=0.5)
        await client.connect()
        run = await client.start("demo", "Tell me a long story")
        await first_text(run)
    with pytest.raises(NotConnected, match="did not come back"):
        await all_of(run)
    with pytest.raises(NotConnected, match="did not come back"):
        await client.start("demo", "Hello")
    await client.close()


async def test_a_command_without_an_answer_ends_in_time(site: Site, token: str) -> None:
    async with proxy_to(site.port) as (proxy, address), AsyncClient(address, token, timeout=0.3) as client:
        proxy.silent = "down"
        with pytest.raises(Unanswered, match="TIMEOUT"):
            await client.start("demo", "Hello")


async def test_after_close_nothing_is_left_and_what_waits_gets_an_error(site: Site, token: str) -> None:
    before = asyncio.all_tasks()
    client = AsyncClient(site.address, token)
    await client.connect()
    run = await client.start("demo", "Tell me a long story")
    waiting = asyncio.create_task(run.result())
    await first_text(run)
    await client.close()
    await client.close()
    with pytest.raises(NotConnected, match="CLOSED"):
        await waiting
    assert asyncio.all_tasks() == before
    async with client:  # and it may be used again
        late = await client.run(run.execution_id)
        await late.cancel()
        assert late.execution_id == run.execution_id


def test_threads_share_a_client_and_none_is_left(site: Site, token: str) -> None:
    before = set(threading.enumerate())
    with Client(site.address, token) as client, ThreadPoolExecutor(4) as pool:

        def ask(number: int) -> str:
            run = client.start("demo", f"What is {number} * 3?")
            assert said(list(run)) == run.result().text
            return run.text

        answers = list(pool.map(ask, range(8)))
        assert all(str(3 * number) in answer for number, answer in enumerate(answers))
        asked = client.start("demo", "Send a postcard to Ada")
        for event in asked:
            if isinstance(event, ApprovalRequested):
                asked.reject("Not today.")
        assert "no postcard was sent" in asked.text
        with pytest.raises(ParError, match="EXECUTION_NOT_FOUND"):
            client.run(uuid4())
        late = client.run(asked.execution_id)
        assert said(list(late)) == asked.text
    assert late.result().text == asked.text
    with pytest.raises(NotConnected):
        client.start("demo", "Hello")
    assert set(threading.enumerate()) == before


INTERRUPTED = """
import signal
import sys
from conversations.client import Client, TextDelta
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job begins with it ignored
try:
    with Client(sys.argv[1], sys.argv[2]) as client:
        for event in client.start("demo", "Tell me a long story"):
            if isinstance(event, TextDelta):
                print("text", flush=True)
        client.start("demo", "Send a postcard to Ada").result()  # nobody approves
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_a_program_with_the_sync_client(site: Site, token: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", INTERRUPTED, site.address, token],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "text\n"
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=WITHIN)
    assert rest.splitlines()[-1] == "interrupted"
    assert process.returncode == 0


def run(site: Site, token: str, *arguments: str, given: str = "") -> str:
    """Run Python with nothing but the address and the token, and return what it printed."""
    environment = {"PATH": os.environ["PATH"], "PAR_URL": site.address, "PAR_TOKEN": token}
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=ROOT, env=environment, input=given, capture_output=True, encoding="utf-8", timeout=WITHIN, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_pages_have_examples() -> None:
    assert {page for page, _ in EXAMPLES} == {"README.md", "docs/client.md"}
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize(("page", "code"), EXAMPLES)
def test_each_example_of_the_pages_runs_and_prints_something(page: str, code: str, site: Site, token: str) -> None:
    assert run(site, token, "-c", code).strip()


@pytest.mark.parametrize(("answer", "sent"), [("y\n", True), ("", False)])
def test_the_example_asks_before_a_postcard_is_sent(answer: str, sent: bool, site: Site, token: str) -> None:
    said = run(site, token, "-m", "examples.ask_a_site", "Send a postcard to Ada", given=answer)
    assert ("The postcard to Ada is on its way" in said) is sent
    assert ("no postcard was sent" in said) is not sent
    assert said.splitlines()[-1] == "completed"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_server_that_restarts_in_mid_run_is_told_honestly(how: signal.Signals, site: Site, token: str) -> None:
    """DESIGN 5, drain and crash: the client comes back by itself and can go on."""
    async with AsyncClient(site.address, token) as client:
        run = await client.start("demo", "Tell me a long story")
        await first_text(run)
        seen = run.text
        site.process.send_signal(how)
        await asyncio.to_thread(site.process.wait, 20)
        await asyncio.to_thread(site.start)
        events = await all_of(run)
        if how == signal.SIGTERM:
            result = await run.result()
            assert (result.outcome.type, result.outcome.reason) == ("cancelled", "shutdown")
            assert result.text.startswith(seen)
        else:
            with pytest.raises(ParError, match="EXECUTION_LOST"):
                await run.result()
            lost = "".join(event.text for event in events if isinstance(event, TextLost) and event.kind == "text")
            assert lost.startswith(seen), "what was told and is gone is told as lost"
            assert run.text == ""
            assert isinstance(events[-1], RunFailed)
        again = await client.start("demo", "What is 2 + 2?", conversation=run.conversation_id)
        assert "4" in (await again.result()).text
