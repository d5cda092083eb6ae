from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.core.exceptions import ValidationError
from pytest_django import Settings

from agent.models import AgentProfile, ModelEndpoint, Plain
from agent.providers.config import ModelConfig
from tests.factories import AgentProfileFactory, ModelEndpointFactory, ToolRecordFactory, UserFactory

pytestmark = pytest.mark.django_db


def seen_by(user: Any) -> list[str]:
    return [agent.slug for agent in AgentProfile.objects.visible_to(user).order_by("slug")]


def test_agents_without_groups_are_for_everybody_who_is_signed_in() -> None:
    AgentProfileFactory(slug="open")
    AgentProfileFactory(slug="off", enabled=False)
    AgentProfileFactory(slug="unplugged", endpoint__enabled=False)
    assert seen_by(UserFactory()) == ["open"]
    assert seen_by(AnonymousUser()) == []
    assert seen_by(UserFactory(is_active=False)) == []


def test_agents_with_groups_are_for_their_members() -> None:
    cooks, bakers = Group.objects.create(name="cooks"), Group.objects.create(name="bakers")
    AgentProfileFactory(slug="kitchen").groups.add(cooks, bakers)
    both, none = UserFactory(), UserFactory()
    both.groups.add(cooks, bakers)
    assert seen_by(both) == ["kitchen"]
    assert seen_by(none) == []


def test_the_model_configuration_has_the_key_in_the_clear(settings: Settings) -> None:
    endpoint = ModelEndpointFactory(
        protocol="openai-chat", base_url="https://x.example/v1", api_key=Plain("sk"), organization="org"
    )
    row = AgentProfile.objects.get(pk=AgentProfileFactory(endpoint=endpoint, model="m", temperature=0.5).pk)
    expected = ModelConfig(
        protocol="openai-chat",
        model="m",
        base_url="https://x.example/v1",
        api_key="sk",
        organization="org",
        temperature=0.5,
        max_tokens=None,
        allow_private=settings.PAR.allow_private_models,
    )
    assert row.model_configs() == [(endpoint.slug, expected)]


def test_limits_of_an_agent_stand_in_for_the_defaults() -> None:
    row = AgentProfileFactory(limits={"maxModelCalls": 99})
    row.full_clean()
    assert row.effective_limits().max_model_calls == 99
    assert row.effective_limits().max_tool_calls == 32


@pytest.mark.parametrize(
    "limits", [{"maxModelCalls": 0}, {"maxModelCalls": "8"}, {"max_model_calls": 8}, {"turns": 1}, [], "x"]
)
def test_limits_that_are_none_are_refused(limits: Any) -> None:
    with pytest.raises(ValidationError, match="limits"):
        AgentProfileFactory(limits=limits).full_clean()


@pytest.mark.parametrize("prompts", ["one", [1], [""], {"a": 1}])
def test_suggested_prompts_are_texts(prompts: Any) -> None:
    with pytest.raises(ValidationError, match="suggested_prompts"):
        AgentProfileFactory(suggested_prompts=prompts).full_clean()


def test_an_agent_is_offered_enabled_and_installed_tools_only() -> None:
    chosen, off = ToolRecordFactory(name="b"), ToolRecordFactory(name="off", enabled=False)
    ToolRecordFactory(name="a")
    gone = ToolRecordFactory(name="gone", present=False)
    row = AgentProfileFactory()
    assert row.tool_names() == []
    row.tools.add(chosen, off, gone)
    assert row.tool_names() == ["b"]
    row.all_tools = True
    assert row.tool_names() == ["a", "b"]


def test_without_an_address_the_providers_own_is_meant() -> None:
    """P32."""
    ModelEndpoint(slug="x", name="x", protocol="openai-chat").full_clean()


@pytest.mark.parametrize("url", ["ftp://x.example", "x.example/v1", "https://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="base_url"):
        ModelEndpoint(slug="x", name="x", protocol="openai-chat", base_url=url).full_clean()


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/v1", "http://localhost/v1", "http://[::1]/", "http://10.0.0.1"])
def test_private_addresses_need_permission(url: str, settings: Settings) -> None:
    endpoint = ModelEndpoint(slug="x", name="x", protocol="openai-chat", base_url=url)
    settings.PAR = settings.PAR.model_copy(update={"allow_private_models": True})
    endpoint.full_clean()
    settings.PAR = settings.PAR.model_copy(update={"allow_private_models": False})
    with pytest.raises(ValidationError, match="PAR_ALLOW_PRIVATE_MODELS"):
        endpoint.full_clean()
    assert not endpoint.config("m").allow_private
    endpoint.allow_private = True
    endpoint.full_clean()
    assert endpoint.config("m").allow_private


def test_instructions_that_change_with_each_run_are_not_cached() -> None:
    """P24, P26."""
    AgentProfileFactory(prompt_zone="volatile").full_clean()
    with pytest.raises(ValidationError, match="cannot be cached"):
        AgentProfileFactory(slug="b", prompt_zone="volatile", cache_ttl="five_min").full_clean()


def test_the_model_configuration_has_the_effort_and_the_window() -> None:
    ((_, config),) = AgentProfileFactory(reasoning_effort="high", context_window=32_000).model_configs()
    assert (config.reasoning_effort, config.context_window) == ("high", 32_000)
