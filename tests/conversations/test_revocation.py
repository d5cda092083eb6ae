"""What this process hears of a sign-in that ends: at once, after the commit, from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.backends.db import SessionStore
from django.db import transaction
from django.utils import timezone

from agent.testing import scripted_tool
from conversations.credentials import Credential, holding
from conversations.hosting.jobs import Jobs
from conversations.models import ApiToken, User
from conversations.revocation import RevocationNews
from tests.conversations.websocket.test_handshake import session_of
from tests.factories import UserFactory
from tests.live import hosted, socket_of

pytestmark = pytest.mark.django_db(transaction=True)

NEVER = 3600.0


@asynccontextmanager
async def listening() -> AsyncIterator[asyncio.Task[None]]:
    """A task that ends with the first news."""
    news = RevocationNews()
    news.connect()
    waiting = asyncio.create_task(news.wait(NEVER))
    try:
        await asyncio.sleep(0)
        yield waiting
    finally:
        news.disconnect()
        waiting.cancel()


def new_password(user: User) -> None:
    user.set_password("another quiet river")
    user.save(update_fields=["password"])


def closed(user: User) -> None:
    user.is_active = False
    user.save()


ENDS: dict[str, Callable[[User], Any]] = {
    "signing out": lambda user: SessionStore(session_of(user)).delete(),
    "a new password": new_password,
    "a closed account": closed,
    "a deleted account": lambda user: user.delete(),
    "a revoked token": lambda user: ApiToken.issue(user, "t")[0].revoke(),
    "a deleted token": lambda user: ApiToken.issue(user, "t")[0].delete(),
    "deleted tokens": lambda user: (ApiToken.issue(user, "t"), ApiToken.objects.all().delete()),
}


@pytest.mark.parametrize("how", ENDS)
async def test_each_end_of_a_sign_in_is_heard_at_once(how: str) -> None:
    """B64."""
    user = await sync_to_async(UserFactory)()
    async with listening() as heard:
        await sync_to_async(ENDS[how])(user)
        await asyncio.wait_for(heard, 10)


async def test_what_ends_no_sign_in_wakes_nobody() -> None:
    def harmless() -> None:
        user = UserFactory()
        user.last_login = timezone.now()
        user.save(update_fields=["last_login"])
        token, _ = ApiToken.issue(user, "t")
        token.touch()

    async with listening() as heard:
        await sync_to_async(harmless)()
        await asyncio.sleep(0)
        assert not heard.done()


async def test_nothing_is_heard_before_the_commit_nor_after_a_rollback() -> None:
    user = await sync_to_async(UserFactory)()
    async with listening() as heard:
        loop = asyncio.get_running_loop()

        def rolled_back() -> None:
            with transaction.atomic():
                closed(user)
                transaction.set_rollback(True)

        def committed() -> bool:
            with transaction.atomic():
                closed(user)
                early = asyncio.run_coroutine_threadsafe(asyncio.sleep(0, heard.done()), loop)
                return early.result(10)

        await sync_to_async(rolled_back)()
        assert not await sync_to_async(committed, thread_sensitive=False)()
        await asyncio.wait_for(heard, 10)


async def test_an_open_socket_is_closed_without_a_round() -> None:
    """B64: far sooner than the check of every few seconds, and with nothing after."""
    user = await sync_to_async(UserFactory)()
    async with hosted() as host, socket_of(host, user) as socket:
        await sync_to_async(lambda: ApiToken.objects.get().revoke())()
        assert await socket.communicator.receive_output(3) == {"type": "websocket.close", "code": 4401}
        assert not host.subscribers


async def test_a_host_that_has_stopped_hears_nothing_more() -> None:
    user = await sync_to_async(UserFactory)()
    async with hosted() as host:
        pass
    await sync_to_async(closed)(user)
    assert not host.revocations._news.is_set()


def test_a_round_is_three_queries_whatever_the_number_of_sockets(django_assert_num_queries: Any) -> None:
    people = UserFactory.create_batch(6)
    both = frozenset({"read", "write"})
    tokens = [Credential(user, both, token_id=ApiToken.issue(user, "t")[0].pk) for user in people]
    sessions = [Credential(user, both, session_key=session_of(user)) for user in people]
    with django_assert_num_queries(3):
        assert holding(tokens + sessions) == {*tokens, *sessions}
    closed(people[0])
    new_password(people[1])
    with django_assert_num_queries(3):
        assert holding(tokens + sessions) == {*tokens[1:], *sessions[2:]}
    with django_assert_num_queries(0):
        assert holding([]) == set()


def test_the_session_of_somebody_else_does_not_count() -> None:
    one, other = UserFactory.create_batch(2)
    assert not Credential(one, frozenset(), session_key=session_of(other)).holds()


def test_a_closed_account_is_denied_the_next_tool_of_its_run() -> None:
    """B64: the stated rule, that the run goes on without tools."""
    user = UserFactory()
    tool = scripted_tool("clock", "noon", read_only=True).definition
    assert Jobs("tests").judge(tool, user.pk).reason != "the account is closed"
    closed(user)
    decision = Jobs("tests").judge(tool, user.pk)
    assert (decision.verdict, decision.reason) == ("deny", "the account is closed")
