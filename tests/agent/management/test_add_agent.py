from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agent.models import AgentProfile, ModelEndpoint, reveal
from tests.factories import AgentProfileFactory, ModelEndpointFactory

pytestmark = pytest.mark.django_db


def add(slug: str = "local", **given: Any) -> str:
    out = io.StringIO()
    options = {"protocol": "openai-chat", "base_url": "http://127.0.0.1:8080/v1", "model": "m"} | given
    call_command("add_agent", slug, stdout=out, **options)
    return out.getvalue()


def test_an_agent_is_connected_in_one_step() -> None:
    assert "local" in add(api_key="sk-1")
    row = AgentProfile.objects.get()
    assert (row.slug, row.model, row.is_default, row.enabled) == ("local", "m", True, True)
    assert (row.endpoint.protocol, row.endpoint.base_url) == ("openai-chat", "http://127.0.0.1:8080/v1")
    assert reveal(row.endpoint, "api_key") == "sk-1"


def test_the_key_can_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("sk-2\n"))
    add(api_key="-")
    assert reveal(ModelEndpoint.objects.get(), "api_key") == "sk-2"


def test_the_default_agent_changes_only_when_asked() -> None:
    first = AgentProfileFactory(is_default=True)
    add("second")
    assert AgentProfile.objects.get(is_default=True) == first
    add("third", default=True)
    assert AgentProfile.objects.get(is_default=True).slug == "third"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"slug": "no spaces"}, "--slug"),
        ({"base_url": "127.0.0.1:8080"}, "--base-url"),
        ({"model": "x" * 300}, "--model"),
        ({"base_url": "https://joe:sk-1@x.example/v1"}, "--base-url.*put the key into.*--api-key"),
        ({"base_url": "https://x.example/v1?key=sk-1"}, "--base-url.*put the key into.*--api-key"),
        ({"base_url": "https://x.example/v1#sk-1"}, "--base-url.*put the key into.*--api-key"),
    ],
)
def test_what_is_wrong_is_said_in_terms_of_the_options(given: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message) as caught:
        add(**given)
    assert "sk-1" not in str(caught.value)
    assert not ModelEndpoint.objects.exists()


def test_a_name_that_is_taken_is_refused() -> None:
    AgentProfileFactory(slug="local")
    ModelEndpointFactory(slug="other")
    for slug in ("local", "other"):
        with pytest.raises(CommandError, match="already"):
            add(slug)
