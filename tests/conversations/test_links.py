"""The one-time link, as a browser without scripts sees it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.db import connection, connections
from django.test import Client
from django.utils import timezone

from conversations.models import OneTimeLink, User
from tests.factories import UserFactory
from tests.pages import body

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> User:
    return UserFactory.create()


def test_a_link_leaves_the_address_asks_and_signs_in_once(client: Client, person: User) -> None:
    token = OneTimeLink.issue(person)

    landing = client.get(f"/link/{token}/")
    assert (landing.status_code, landing["Location"]) == (302, "/link/")
    assert person.email in body(client, "/link/")

    response = client.post("/link/")
    assert (response.status_code, response["Location"]) == (302, "/")
    assert client.get("/").status_code == 200


def test_looking_at_a_link_burns_nothing(client: Client, person: User) -> None:
    token = OneTimeLink.issue(person)
    for _ in range(3):
        Client().get(f"/link/{token}/", follow=True)

    client.get(f"/link/{token}/")
    assert client.post("/link/").status_code == 302


def test_a_token_that_never_was_leaves_no_session_behind(client: Client) -> None:
    assert client.get("/link/nonsense/", follow=True).status_code == 410
    assert not Session.objects.exists()


def test_a_used_link_is_gone(person: User) -> None:
    token = OneTimeLink.issue(person)
    first, second = Client(), Client()
    for each in (first, second):
        each.get(f"/link/{token}/")

    assert first.post("/link/").status_code == 302
    assert second.post("/link/").status_code == 410
    assert second.get("/").status_code == 302
    assert "This link has ended" in body(second, "/link/", 410)


def test_an_old_link_is_gone(client: Client, person: User) -> None:
    token = OneTimeLink.issue(person)
    OneTimeLink.objects.update(expires=timezone.now() - timedelta(seconds=1))
    client.get(f"/link/{token}/")

    assert client.post("/link/").status_code == 410


def test_a_link_of_a_deactivated_person_is_gone(client: Client, person: User) -> None:
    token = OneTimeLink.issue(person)
    User.objects.update(is_active=False)
    client.get(f"/link/{token}/")

    assert client.post("/link/").status_code == 410


@pytest.mark.parametrize("token", ["nonsense", "a:b:c"])
def test_a_tampered_link_is_gone(client: Client, person: User, token: str) -> None:
    OneTimeLink.issue(person)
    client.get(f"/link/{token}/")

    assert client.get("/link/").status_code == 410


def test_the_page_of_a_link_without_a_token_says_that_it_has_ended(client: Client) -> None:
    assert "This link has ended" in body(client, "/link/", 410)


def test_a_link_needs_the_form_of_its_page(person: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.get(f"/link/{OneTimeLink.issue(person)}/")

    assert strict.post("/link/").status_code == 403


def test_the_session_that_took_a_link_is_not_the_one_that_is_signed_in(client: Client, person: User) -> None:
    client.get(f"/link/{OneTimeLink.issue(person)}/")
    before = client.session.session_key
    client.post("/link/")

    assert client.session.session_key != before


@pytest.mark.django_db(transaction=True)
def test_a_link_pressed_six_times_at_once_signs_in_once(person: User) -> None:
    token = OneTimeLink.issue(person)
    clients = [Client() for _ in range(6)]
    for each in clients:
        each.get(f"/link/{token}/")

    def press(each: Client) -> int:
        try:
            return each.post("/link/").status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(clients)) as pool:
        statuses = list(pool.map(press, clients))

    assert sorted(statuses) == [302, 410, 410, 410, 410, 410]
    connection.ensure_connection()
