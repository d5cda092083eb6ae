from __future__ import annotations

import pytest
from django.core import mail
from django.test import Client
from pytest_django import Settings

from conversations.accounts import MFAAdapter
from conversations.models import User
from tests.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db

SIGN_UP = {"email": "new@example.org", "password1": PASSWORD, "password2": PASSWORD}


def sign_in(client: Client, login: str, password: str = PASSWORD) -> bool:
    client.post("/accounts/login/", {"login": login, "password": password})
    return "_auth_user_id" in client.session


def test_people_sign_in_by_address_in_any_case(client: Client) -> None:
    UserFactory(username="joe", email="joe@example.org")
    assert not sign_in(client, "joe")
    assert sign_in(client, "JOE@Example.org")


def test_guessing_is_stopped(client: Client) -> None:
    user = UserFactory()
    for _ in range(12):
        assert not sign_in(client, user.email, "wrong")
    assert not sign_in(client, user.email)


def test_strangers_cannot_sign_up(client: Client) -> None:
    response = client.post("/accounts/signup/", SIGN_UP)
    assert response.status_code == 200
    assert not User.objects.exists()


def test_strangers_can_sign_up_where_that_is_allowed(client: Client, settings: Settings) -> None:
    settings.PAR = settings.PAR.model_copy(update={"signup_open": True})
    assert client.post("/accounts/signup/", SIGN_UP).status_code == 302
    assert User.objects.get().email == "new@example.org"
    assert len(mail.outbox) == 1


def test_a_forgotten_password_does_not_tell_who_is_here(client: Client) -> None:
    user = UserFactory()
    answers = [client.post("/accounts/password/reset/", {"email": e}) for e in (user.email, "no@example.org")]
    assert {(answer.status_code, answer["Location"]) for answer in answers} == {(302, answers[0]["Location"])}


def test_second_factors_are_stored_encrypted() -> None:
    stored = MFAAdapter().encrypt("SEED")
    assert "SEED" not in stored
    assert MFAAdapter().decrypt(stored) == "SEED"
