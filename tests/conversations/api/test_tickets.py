from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from conversations.models import ApiToken, SocketTicket, User
from conversations.models.credentials import TICKETS_AT_A_TIME, digest
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()
PAGE_EXAMPLE = json.loads(PAGE.partition("```json ticket\n")[2].partition("```")[0])


def bearer(user: User, *scopes: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {ApiToken.issue(user, 't', scopes=scopes or ('read', 'write'))[1]}"}


def test_a_token_gets_a_ticket_that_is_stored_as_a_digest(client: Client) -> None:
    """DESIGN 8."""
    user = UserFactory()
    answer = client.post("/ai/tickets", headers=bearer(user, "read"))
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    made = answer.json()
    assert made.keys() == PAGE_EXAMPLE.keys()
    row = SocketTicket.objects.get()
    assert (row.user, row.token, row.session_key) == (user, ApiToken.objects.get(), "")
    assert row.digest == digest(made["ticket"])
    expires = parse_datetime(made["expiresAt"])
    assert expires is not None
    assert timedelta(seconds=25) < expires - timezone.now() <= timedelta(seconds=30)
    assert set(made["ticket"]) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def test_a_session_gets_one_with_a_csrf_token_only() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(UserFactory())
    refused = client.post("/ai/tickets")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "FORBIDDEN")
    client.get("/")
    token = client.cookies["csrftoken"].value
    assert client.post("/ai/tickets", headers={"X-CSRFToken": token}).status_code == 201
    assert SocketTicket.objects.get().session_key == client.session.session_key


def test_nobody_and_a_token_that_may_not_read_get_none(client: Client) -> None:
    assert client.post("/ai/tickets").status_code == 401
    assert client.post("/ai/tickets", headers=bearer(UserFactory(), "write")).status_code == 403
    assert not SocketTicket.objects.exists()


def test_only_so_many_wait_at_a_time_and_each_person_has_their_own(client: Client) -> None:
    headers = bearer(UserFactory())
    for _ in range(TICKETS_AT_A_TIME):
        last = client.post("/ai/tickets", headers=headers)
        assert last.status_code == 201
    refused = client.post("/ai/tickets", headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RATE_LIMITED")
    assert f"At most {TICKETS_AT_A_TIME}\ntickets" in PAGE
    assert client.post("/ai/tickets", headers=bearer(UserFactory())).status_code == 201
    assert SocketTicket.redeem(last.json()["ticket"]) is not None
    assert client.post("/ai/tickets", headers=headers).status_code == 201


def test_a_new_ticket_sweeps_out_the_expired_ones(client: Client) -> None:
    client.post("/ai/tickets", headers=bearer(UserFactory()))
    SocketTicket.objects.update(expires=timezone.now())
    client.post("/ai/tickets", headers=bearer(UserFactory()))
    assert SocketTicket.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_many_who_use_a_ticket_at_once_exactly_one_gets_in() -> None:
    _, plain = SocketTicket.issue(UserFactory())
    together = Barrier(8)
    found: list[Any] = []

    def use() -> None:
        together.wait(10)
        found.append(SocketTicket.redeem(plain))
        connection.close()

    threads = [Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 8
    assert sum(each is not None for each in found) == 1
