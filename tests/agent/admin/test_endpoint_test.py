"""One click tells whether an endpoint works, against real servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.messages import get_messages
from django.db import connections
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from agent.models import ModelEndpoint, Plain
from agent.providers.config import ModelConfig
from agent.providers.probe import probe
from agent.testing import ScriptedAnswer, ScriptedProvider, chat_stream
from tests.factories import AdministratorFactory, AgentProfileFactory, ModelEndpointFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "sk-TEST-123"


@pytest.fixture(autouse=True)
def local_models(settings: Settings) -> None:
    settings.PAR = settings.PAR.model_copy(update={"allow_private_models": True})


def listed(*names: str) -> ScriptedAnswer:
    body = json.dumps({"data": [{"id": name} for name in names]}).encode()
    return ScriptedAnswer(body, headers={"content-type": "application/json"})


async def told(make: Callable[[], ModelEndpoint], model: str = "") -> list[str]:
    """Press the button as an administrator and return what the page says then."""

    def press() -> list[str]:
        try:
            client = Client()
            client.force_login(AdministratorFactory())
            response = client.post(reverse("admin:agent_modelendpoint_test", args=[make().pk]), {"model": model})
            assert response.status_code == 302
            return [str(message) for message in get_messages(response.wsgi_request)]
        finally:
            connections.close_all()  # of this thread

    return await sync_to_async(press, thread_sensitive=False)()


def endpoint(url: str, **more: Any) -> Callable[[], ModelEndpoint]:
    return lambda: ModelEndpointFactory(protocol="openai-chat", base_url=url, api_key=Plain(KEY), **more)


async def test_an_endpoint_that_works_says_how_it_began() -> None:
    answers = listed("small", "large"), ScriptedAnswer(chat_stream("Hel", "lo", "!", " More"))
    async with ScriptedProvider(*answers) as provider:
        models, works = await told(endpoint(provider.url))
        assert provider.requests[1].json["model"] == "large"
    assert models == "2 models: large, small"
    assert works.startswith("It works: large began with “Hello!” after ")


async def test_a_server_without_a_list_is_asked_for_the_model_that_was_entered() -> None:
    answers = ScriptedAnswer(b'{"error":"no such path"}', 404), ScriptedAnswer(chat_stream("Hi"))
    async with ScriptedProvider(*answers) as provider:
        no_list, works = await told(endpoint(provider.url), "mine")
    assert no_list.startswith("No list of models: ") and "no such path" in no_list
    assert "mine began with “Hi”" in works


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (ScriptedAnswer(json.dumps({"error": {"message": f"bad key {KEY}"}}).encode(), 401), "bad key [secret]"),
        (ScriptedAnswer(headers=None), "closed the connection"),
        (ScriptedAnswer(b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'), "without a word"),
    ],
)
async def test_what_does_not_work_is_said_in_words_without_the_key(answer: ScriptedAnswer, words: str) -> None:
    """B83."""
    async with ScriptedProvider(listed("m"), answer) as provider:
        _, failed = await told(endpoint(provider.url))
    assert failed.startswith("m did not answer: ") and words in failed
    assert KEY not in failed


async def test_an_address_where_nobody_is_says_so_twice() -> None:
    no_list, failed = await told(endpoint("http://127.0.0.1:9/v1"), "m")
    assert "is not reachable" in no_list and "is not reachable" in failed


async def test_a_model_that_only_embeds_is_not_asked() -> None:
    answers = listed("all-minilm", "babbage-002", "text-embedding-3-small", "zeta"), ScriptedAnswer(chat_stream("Hi"))
    async with ScriptedProvider(*answers) as provider:
        await told(endpoint(provider.url))
        assert provider.requests[1].json["model"] == "zeta"


async def test_a_server_that_only_keeps_the_connection_open_is_given_up() -> None:
    pings = ScriptedAnswer([b": ping\n\n"] * 10_000, pace=0.02)
    async with ScriptedProvider(listed("m"), pings) as provider:
        config = ModelConfig("openai-chat", "", provider.url, allow_private=True)
        result = await probe(config, within=2.0)  # a busy machine takes a second to load the client
        assert not result.works
        assert result.error in ("it began no answer within 2 seconds", "the provider did not answer in time")
        await provider.wait_for_closed()


async def test_the_demo_needs_no_network() -> None:
    _, works = await told(lambda: ModelEndpointFactory(protocol="demo"))
    assert works.startswith("It works: demo")


def test_the_page_has_the_button_and_nobody_else_may_press_it(client: Client) -> None:
    row = AgentProfileFactory(model="chosen").endpoint
    address = reverse("admin:agent_modelendpoint_test", args=[row.pk])
    assert client.post(address).status_code == 302  # to the sign-in
    client.force_login(UserFactory())
    assert client.post(address).status_code == 302
    client.force_login(UserFactory(is_staff=True))
    unknown = reverse("admin:agent_modelendpoint_test", args=[uuid4()])
    assert (
        client.post(address).status_code == client.post(unknown).status_code == client.get(address).status_code == 403
    )
    client.force_login(AdministratorFactory())
    assert client.post(unknown).status_code == 404
    assert client.get(address).status_code == 405
    page = client.get(reverse("admin:agent_modelendpoint_change", args=[row.pk])).content.decode()
    assert address in page and 'value="chosen"' in page
    assert address not in client.get(reverse("admin:agent_modelendpoint_add")).content.decode()
