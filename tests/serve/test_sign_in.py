"""Who may open a socket of the real server, and how soon it ends with what it was opened with."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from agent.testing import ScriptedAnswer, ScriptedProvider, chat_stream
from tests.factories import PASSWORD
from tests.serve.program import Client, program, stored
from tests.site import Site

NAMES = ["ada", "ben", "cleo", "dan", "eve"]
SOON = 15.0  # seconds: a round of 5 and a busy machine; that news of this process comes without one: test_revocation
ENDLESS = [f"{n:04d} " for n in range(4_000)]

MAKE_PEOPLE = f"""
import json
from allauth.account.models import EmailAddress
from conversations.models import ApiToken, OneTimeLink, User
made = dict()
for name in {NAMES!r}:
    user = User.objects.create_user(name, name + "@example.org", {PASSWORD!r})
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    made[name] = ApiToken.issue(user, "test")[1], OneTimeLink.issue(user)
print(json.dumps(made))
"""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a token and a link that signs in once."""

    name: str
    token: str
    link: str

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@pytest.fixture(scope="module")
def people(site: Site) -> dict[str, Person]:
    made = json.loads(site.shell(MAKE_PEOPLE))
    return {name: Person(name, token, link) for name, (token, link) in made.items()}


@asynccontextmanager
async def tab(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without scripts."""
    async with httpx.AsyncClient(base_url=site.address, follow_redirects=True, timeout=30) as http:
        yield http


async def submit(http: httpx.AsyncClient, path: str, to: str | None = None, **fields: str) -> httpx.Response:
    """Fill in the form of a page."""
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', (await http.get(path)).text)
    assert found is not None, path
    answer = await http.post(to or path, data={"csrfmiddlewaretoken": found[1], **fields})
    assert answer.status_code == 200, answer.text
    return answer


@asynccontextmanager
async def signed_in(site: Site, person: Person) -> AsyncIterator[httpx.AsyncClient]:
    async with tab(site) as http:
        await submit(http, "/accounts/login/", login=f"{person.name}@example.org", password=PASSWORD)
        assert "sessionid" in http.cookies
        yield http


def cookie(http: httpx.AsyncClient) -> dict[str, str]:
    return {"Cookie": f"sessionid={http.cookies['sessionid']}"}


@asynccontextmanager
async def opened(site: Site, *subprotocols: str, **headers: str) -> AsyncIterator[ClientConnection]:
    offered: Any = list(subprotocols) or None
    async with connect(
        site.socket_address, subprotocols=offered, additional_headers=headers, compression=None
    ) as connection:
        yield connection


async def outcome(site: Site, *subprotocols: str, **headers: str) -> str | int | None:
    """Return the name of the person whose socket was opened, or the close code."""
    async with opened(site, *(subprotocols or ("par.v1",)), **headers) as connection:
        with contextlib.suppress(ConnectionClosed):
            return str(json.loads(await asyncio.wait_for(connection.recv(), 30))["user"]["name"])
        return connection.close_code


async def closed_with(client: Client, code: int) -> None:
    """Read until the socket is closed, which is to be soon."""
    async with asyncio.timeout(SOON):
        with contextlib.suppress(ConnectionClosed):
            while True:
                await client.receive()
    assert client.connection.close_code == code


async def ticket(site: Site, person: Person) -> str:
    async with tab(site) as http:
        answer = await http.post("/ai/tickets", headers=person.bearer)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["ticket"])


async def test_only_a_known_subprotocol_and_a_token_open_a_socket(site: Site, people: dict[str, Person]) -> None:
    async with opened(site, "graphql-ws", "par.v2", **people["ada"].bearer) as connection:
        assert connection.subprotocol == "graphql-ws"
        await connection.wait_closed()
        assert connection.close_code == 4406
    assert await outcome(site, **people["ada"].bearer) == "ada"
    assert await outcome(site) == 4401
    assert await outcome(site, Authorization="Bearer par_nonsense") == 4401


async def test_a_cookie_opens_a_socket_from_a_page_of_the_site_only(site: Site, people: dict[str, Person]) -> None:
    """B63: its whole list, a missing Origin among it."""
    port = site.address.rpartition(":")[2]
    async with signed_in(site, people["ada"]) as http:
        for good in (site.address, f"http://localhost:{port}", f"http://LOCALHOST:{port}"):
            assert await outcome(site, **cookie(http), Origin=good) == "ada", good
        for bad in (
            "https://evil.example",
            "null",
            f"https://127.0.0.1:{port}",
            f"http://127.0.0.1:{int(port) + 1}",
            "http://127.0.0.1",
            f"http://localhost.evil.example:{port}",
        ):
            assert await outcome(site, **cookie(http), Origin=bad) == 4403, bad
        assert await outcome(site, **cookie(http)) == 4403
        assert await outcome(site, **cookie(http), Origin=site.address, Authorization="Bearer par_nonsense") == 4401
        assert http.cookies["sessionid"] not in site.log()


async def test_a_link_in_a_browser_opens_a_socket_too(site: Site, people: dict[str, Person]) -> None:
    async with tab(site) as http:
        await submit(http, f"/link/{people['ada'].link}/", "/link/")
        assert await outcome(site, **cookie(http), Origin=site.address) == "ada"


async def test_a_ticket_opens_one_socket_from_anywhere(site: Site, people: dict[str, Person]) -> None:
    """DESIGN 8: it is never sent back, and used once even by two at the same moment."""
    value = await ticket(site, people["ada"])
    async with opened(site, f"par.ticket.{value}", "par.v1", Origin="https://elsewhere.example") as connection:
        assert connection.subprotocol == "par.v1"
        assert json.loads(await connection.recv())["user"]["name"] == "ada"
    assert await outcome(site, "par.v1", f"par.ticket.{value}") == 4401
    value = await ticket(site, people["ada"])
    racing = await asyncio.gather(*(outcome(site, "par.v1", f"par.ticket.{value}") for _ in range(2)))
    assert sorted(racing, key=str) == [4401, "ada"]
    async with signed_in(site, people["ada"]) as http:
        unknown = await outcome(site, "par.v1", "par.ticket.unknown", **cookie(http), Origin=site.address)
        assert unknown == 4401
    assert value not in site.log()


async def test_an_expired_ticket_opens_nothing(site: Site, people: dict[str, Person]) -> None:
    value = await ticket(site, people["ada"])
    site.shell(
        "from django.utils import timezone; from conversations.models import SocketTicket;"
        "SocketTicket.objects.update(expires=timezone.now())"
    )
    assert await outcome(site, "par.v1", f"par.ticket.{value}") == 4401


async def test_signing_out_in_another_tab_ends_the_socket_and_not_the_run(
    site: Site, people: dict[str, Person], provider: ScriptedProvider
) -> None:
    """B64: the run is stored, as another socket of the same person sees."""
    person, hold = people["ben"], asyncio.Event()
    provider.queue(ScriptedAnswer(chat_stream("Good ", "day."), hold=hold))
    async with (
        signed_in(site, person) as http,
        opened(site, "par.v1", **cookie(http), Origin=site.address) as connection,
    ):
        client = Client(connection)
        ack = await client.say("Hi", "scripted")
        await client.until("model-call-started")
        await submit(http, "/accounts/logout/")
        await closed_with(client, 4401)
        assert not client.runs[ack["executionId"]].ended
    async with program(site, person.token) as other:
        hold.set()
        run = await other.follow(ack["executionId"])
        assert (run.status, run.text) == ("completed", "Good day.")
    assert (await stored(site, person.token, ack["conversationId"]))["conversation"]["revision"] == 1


async def test_a_new_password_ends_the_sockets_of_every_session(site: Site, people: dict[str, Person]) -> None:
    """B64."""
    person = people["cleo"]
    async with signed_in(site, person) as http, signed_in(site, person) as elsewhere:
        async with (
            opened(site, "par.v1", **cookie(http), Origin=site.address) as own,
            opened(site, "par.v1", **cookie(elsewhere), Origin=site.address) as other,
            program(site, person.token) as script,
        ):
            new = "another quiet river 7"
            await submit(http, "/accounts/password/change/", oldpassword=PASSWORD, password1=new, password2=new)
            for connection in (own, other):
                await closed_with(Client(connection), 4401)
            assert (await script.command(type="ping"))["type"] == "ack"
        assert await outcome(site, **cookie(elsewhere), Origin=site.address) == 4401


async def test_a_token_revoked_by_another_process_ends_its_socket_in_mid_stream(
    site: Site, people: dict[str, Person], provider: ScriptedProvider
) -> None:
    """B64."""
    provider.queue(ScriptedAnswer(chat_stream(*ENDLESS), pace=0.05))
    async with opened(site, "par.v1", **people["dan"].bearer) as connection:
        client = Client(connection)
        ack = await client.say("Hi", "scripted")
        await client.until("block-delta")
        revoke = "from conversations.models import ApiToken; ApiToken.objects.get(user__username='dan').revoke()"
        await asyncio.to_thread(site.shell, revoke)
        await closed_with(client, 4401)
        assert not client.runs[ack["executionId"]].ended
    assert await outcome(site, **people["dan"].bearer) == 4401


async def test_an_account_closed_by_another_process_ends_all_its_sockets(site: Site, people: dict[str, Person]) -> None:
    """B64."""
    person = people["eve"]
    async with (
        signed_in(site, person) as http,
        opened(site, "par.v1", **cookie(http), Origin=site.address) as page,
        opened(site, "par.v1", "par.ticket." + await ticket(site, person)) as guest,
        opened(site, "par.v1", **person.bearer) as script,
    ):
        close = "from conversations.models import User; User.objects.filter(username='eve').update(is_active=False)"
        await asyncio.to_thread(site.shell, close)
        for connection in (page, guest, script):
            await closed_with(Client(connection), 4401)
    assert await outcome(site, **person.bearer) == 4401
