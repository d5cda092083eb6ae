from __future__ import annotations

import pytest
from django.test import AsyncClient, Client

from tests.factories import AdministratorFactory

pytestmark = pytest.mark.django_db


def policy(header: str) -> dict[str, set[str]]:
    parts = (part.split() for part in header.split(";"))
    return {name: set(values) for name, *values in parts}


def test_pages_run_nothing_inline_and_load_nothing_foreign(client: Client) -> None:
    response = client.get("/accounts/login/")
    found = policy(response["Content-Security-Policy"])
    assert found["default-src"] == {"'none'"}
    assert found["style-src"] == {"'self'"}
    assert {source for source in found["script-src"] if not source.startswith("'nonce-")} == {"'self'"}
    assert found["frame-ancestors"] == {"'none'"}
    assert not any(
        "unsafe" in source or "http" in source or "*" in source for part in found.values() for source in part
    )
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"


def test_only_the_admin_may_evaluate(client: Client) -> None:
    client.force_login(AdministratorFactory())
    found = policy(client.get("/admin/")["Content-Security-Policy"])
    assert "'unsafe-eval'" in found["script-src"]
    assert "'unsafe-inline'" not in found["script-src"]
    assert found["style-src"] == {"'self'", "'unsafe-inline'"}
    assert found["default-src"] == {"'none'"}


async def test_asynchronous_requests_have_the_policy_too(async_client: AsyncClient) -> None:
    response = await async_client.get("/nothing-here/")
    assert response.status_code == 404
    assert policy(response["Content-Security-Policy"])["default-src"] == {"'none'"}


def test_cookies_are_out_of_reach_of_scripts(client: Client) -> None:
    client.get("/accounts/login/")
    cookie = client.cookies["csrftoken"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
