"""One connection, when its sign-in ends."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.runtime.exceptions import InvalidState
from conversations.exceptions import Unauthorized
from conversations.hosting import subscriber as module
from conversations.hosting.hub import EventHub
from conversations.hosting.subscriber import MOST_CLIENTS, Subscriber


def connection(**more: Any) -> Subscriber:
    host = SimpleNamespace(hub=EventHub(), subscribers=set(), waiting_calls=lambda user, client_id: [])
    return Subscriber(cast(Any, host), cast(Any, SimpleNamespace(user=None)), **more)


async def test_what_waits_is_not_sent_after_the_end_of_the_sign_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """B64: the answer that says so is all that comes, and who does not read it is cut off."""
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    cut = asyncio.Event()
    one = connection(cut_off=cut.set)
    for _ in range(10):
        one.outbox.put(b'"secret"', "e")
        one.outbox.put(b'"answer"')
    one.expire(b'"sign in again"')
    one.expire()  # also found by those who look at all sign-ins
    one.outbox.put(b'"late"')
    assert await one.next() == b'"sign in again"'
    with pytest.raises(Unauthorized):
        await one.next()
    await asyncio.wait_for(cut.wait(), 5)


def test_a_connection_acts_for_so_many_clients_only() -> None:
    one = connection()
    for number in range(MOST_CLIENTS):
        one.check_client(str(number))
        one.act_for(str(number))
    one.check_client("0")
    with pytest.raises(InvalidState, match="at most 32 clients"):
        one.check_client("one more")
