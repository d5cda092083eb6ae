from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agent.governance.audit import AuditEntry, write
from agent.models import AgentProfile, AuditRecord, ModelEndpoint, Plain, ToolRecord, reveal
from agent.models.endpoint import read_headers
from agent.runtime.ids import uuid7
from tests.factories import (
    AdministratorFactory,
    AgentProfileFactory,
    ConversationFactory,
    ModelEndpointFactory,
    ToolRecordFactory,
)

pytestmark = pytest.mark.django_db

SECRET = "sk-very-secret"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(AdministratorFactory())
    return client


def page(client: Client, address: str, **query: str) -> str:
    response = client.get(f"/admin/agent/{address}", query)
    assert response.status_code == 200, response
    return response.content.decode()


def endpoint_form(**changed: str) -> dict[str, str]:
    chosen = {"protocol": "openai-chat", "base_url": "https://x.example/v1", "reasoning_replay": "auto"}
    return {"name": "E", "slug": "e"} | chosen | changed


def test_a_key_is_set_kept_replaced_and_never_shown(admin: Client) -> None:
    """R164."""
    admin.post("/admin/agent/modelendpoint/add/", endpoint_form(api_key=SECRET))
    row = ModelEndpoint.objects.get()
    assert reveal(row, "api_key") == SECRET
    address = f"modelendpoint/{row.pk}/change/"
    shown = page(admin, address) + page(admin, "modelendpoint/") + page(admin, f"modelendpoint/{row.pk}/history/")
    assert SECRET not in shown
    assert row.api_key not in shown

    admin.post(f"/admin/agent/{address}", endpoint_form(name="F", api_key=""))
    row.refresh_from_db()
    assert (row.name, reveal(row, "api_key")) == ("F", SECRET)
    admin.post(f"/admin/agent/{address}", endpoint_form(api_key="sk-other"))
    row.refresh_from_db()
    assert reveal(row, "api_key") == "sk-other"


@pytest.mark.parametrize(
    "address",
    [
        "http://x.example/v1",
        "https://x.example:8443/v1",
        "https://x.example.org/v1",
    ],
)
def test_a_stored_key_does_not_go_to_another_server(admin: Client, address: str) -> None:
    row = ModelEndpointFactory(protocol="openai-chat", base_url="https://x.example/v1", api_key=Plain(SECRET))
    page_of = f"/admin/agent/modelendpoint/{row.pk}/change/"
    response = admin.post(page_of, endpoint_form(base_url=address))
    assert "enter what is for it" in response.content.decode()
    row.refresh_from_db()
    assert row.base_url == "https://x.example/v1"

    assert admin.post(page_of, endpoint_form(base_url=address, api_key="sk-other")).status_code == 302
    row.refresh_from_db()
    assert (row.base_url, reveal(row, "api_key")) == (address, "sk-other")


@pytest.mark.parametrize(
    "address",
    [
        "https://x.example@y.example/v1",
        "https://y.example/v1?https://x.example/v1",
        "https://x.example/v1?key=sk-other",
        "https://x.example/v1#",
    ],
)
def test_an_address_carries_no_key(admin: Client, address: str) -> None:
    response = admin.post("/admin/agent/modelendpoint/add/", endpoint_form(base_url=address, api_key="sk-other"))
    assert "put the key into API key" in response.content.decode()
    assert not ModelEndpoint.objects.exists()


def test_the_form_says_whether_a_key_is_stored_and_begins_with_a_real_protocol(admin: Client) -> None:
    with_key = ModelEndpointFactory(api_key=Plain(SECRET))
    without = ModelEndpointFactory()
    assert 'placeholder="A key is stored"' in page(admin, f"modelendpoint/{with_key.pk}/change/")
    shown = page(admin, f"modelendpoint/{without.pk}/change/")
    assert 'placeholder="Nothing is stored"' in shown
    assert '<option value="demo" selected' in shown
    fresh = page(admin, "modelendpoint/add/")
    assert 'placeholder="Nothing is stored"' in fresh
    assert '<option value="openai-chat" selected' in fresh


@pytest.mark.parametrize(
    "detour",
    [
        {"protocol": "demo", "base_url": ""},
        {"protocol": "demo", "base_url": "https://y.example/v1"},
        {"protocol": "openai-chat", "base_url": ""},
        {"protocol": "anthropic-messages", "base_url": ""},
        {"protocol": "ollama-chat", "base_url": ""},
    ],
    ids=lambda form: f"{form['protocol']} {form['base_url']}",
)
def test_no_detour_carries_the_key_to_another_server(admin: Client, detour: dict[str, str]) -> None:
    row = ModelEndpointFactory(protocol="openai-chat", base_url="https://x.example/v1", api_key=Plain(SECRET))
    page_of = f"/admin/agent/modelendpoint/{row.pk}/change/"
    assert admin.post(page_of, endpoint_form(**detour)).status_code == 200
    row.refresh_from_db()
    assert (row.protocol, row.base_url) == ("openai-chat", "https://x.example/v1")


def test_another_protocol_at_its_own_server_wants_the_key_again(admin: Client) -> None:
    row = ModelEndpointFactory(protocol="openai-chat", base_url="", api_key=Plain(SECRET))
    page_of = f"/admin/agent/modelendpoint/{row.pk}/change/"
    assert admin.post(page_of, endpoint_form(protocol="anthropic-messages", base_url="")).status_code == 200
    assert admin.post(page_of, endpoint_form(protocol="openai-responses", base_url="")).status_code == 302
    assert admin.post(page_of, endpoint_form(base_url="https://api.openai.com/v1")).status_code == 302


@pytest.mark.parametrize("address", ["https://x.example/v2", "https://X.example:443/v1"])
def test_another_path_of_the_same_server_keeps_the_key(admin: Client, address: str) -> None:
    row = ModelEndpointFactory(protocol="openai-chat", base_url="https://x.example/v1", api_key=Plain(SECRET))
    response = admin.post(f"/admin/agent/modelendpoint/{row.pk}/change/", endpoint_form(base_url=address))
    assert response.status_code == 302, response.content.decode()
    row.refresh_from_db()
    assert (row.base_url, reveal(row, "api_key")) == (address, SECRET)


def test_headers_are_secrets_like_the_key(admin: Client) -> None:
    page_of = "/admin/agent/modelendpoint/add/"
    assert admin.post(page_of, endpoint_form(headers="no colon")).status_code == 200
    assert admin.post(page_of, endpoint_form(headers="X-Team: r\r\nX-Key: k\x00y")).status_code == 200
    assert admin.post(page_of, endpoint_form(headers="X-Team: research\r\n\r\nX-Key: top")).status_code == 302
    row = ModelEndpoint.objects.get()
    assert read_headers(reveal(row, "headers")) == (("X-Team", "research"), ("X-Key", "top"))
    shown = page(admin, f"modelendpoint/{row.pk}/change/")
    assert "research" not in shown and 'placeholder="Headers are stored"' in shown
    moved = admin.post(f"/admin/agent/modelendpoint/{row.pk}/change/", endpoint_form(base_url="https://y.example/v1"))
    assert moved.status_code == 200


def test_an_endpoint_without_a_key_moves_freely(admin: Client) -> None:
    row = ModelEndpointFactory(protocol="openai-chat", base_url="https://x.example/v1")
    form = endpoint_form(base_url="https://y.example/v1")
    assert admin.post(f"/admin/agent/modelendpoint/{row.pk}/change/", form).status_code == 302


def test_a_key_can_be_forgotten(admin: Client) -> None:
    """R164."""
    row = ModelEndpointFactory(api_key=Plain(SECRET))
    admin.post("/admin/agent/modelendpoint/", {"action": "clear_keys", "_selected_action": [str(row.pk)]})
    row.refresh_from_db()
    assert row.api_key == ""


def agent_form(endpoint: ModelEndpoint, **changed: Any) -> dict[str, Any]:
    return {
        "name": "A",
        "slug": "a",
        "endpoint": str(endpoint.pk),
        "model": "m",
        "order": "0",
        "limits": "{}",
        "fallbacks-TOTAL_FORMS": "0",
        "fallbacks-INITIAL_FORMS": "0",
        "tool_call_errors": "report",
        "tool_exceptions": "fail",
        "prompt_zone": "stable",
        "enabled": "on",
    } | changed


def test_an_agent_is_made_with_prompts_one_a_line(admin: Client) -> None:
    form = agent_form(ModelEndpointFactory(), suggested_prompts="one\r\n\r\n 二 \r\n", limits='{"maxModelCalls": 3}')
    response = admin.post("/admin/agent/agentprofile/add/", form)
    assert response.status_code == 302, response.content.decode()
    row = AgentProfile.objects.get()
    assert row.suggested_prompts == ["one", "二"]
    assert row.effective_limits().max_model_calls == 3
    assert "one\n二" in page(admin, f"agentprofile/{row.pk}/change/")


def test_a_new_default_agent_takes_over_from_the_one_before(admin: Client) -> None:
    before = AgentProfileFactory(slug="before", is_default=True)
    response = admin.post("/admin/agent/agentprofile/add/", agent_form(ModelEndpointFactory(), is_default="on"))
    assert response.status_code == 302, response.content.decode()
    before.refresh_from_db()
    assert not before.is_default and AgentProfile.objects.get(slug="a").is_default


def test_an_address_with_nul_is_refused(admin: Client) -> None:
    assert admin.get("/admin/agent/modelendpoint/?protocol=%00").status_code == 400


def test_a_retry_policy_is_checked_on_the_form(admin: Client) -> None:
    """P19, P29."""
    wrong = agent_form(ModelEndpointFactory(), retry_policy='{"maxAttempts": 0}')
    assert "maxAttempts" in admin.post("/admin/agent/agentprofile/add/", wrong).content.decode()
    wrong = agent_form(ModelEndpointFactory(), retry_policy="3")
    assert "An object is needed" in admin.post("/admin/agent/agentprofile/add/", wrong).content.decode()
    right = agent_form(ModelEndpointFactory(), retry_policy='{"maxAttempts": 3}')
    assert admin.post("/admin/agent/agentprofile/add/", right).status_code == 302
    policy = AgentProfile.objects.get().retries()
    assert policy is not None and policy.max_attempts == 3


def test_limits_that_are_none_are_refused_on_the_form(admin: Client) -> None:
    form = agent_form(ModelEndpointFactory(), limits='{"maxModelCalls": 0}')
    response = admin.post("/admin/agent/agentprofile/add/", form)
    assert response.status_code == 200
    assert "maxModelCalls" in response.content.decode()
    assert "Value error" not in response.content.decode()
    assert not AgentProfile.objects.exists()


def test_an_agent_in_use_is_not_deleted_and_the_page_says_what_to_do(admin: Client) -> None:
    row, unused = ConversationFactory().agent, AgentProfileFactory()
    address = f"agentprofile/{row.pk}/"
    shown = page(admin, f"{address}change/")
    assert f"{address}delete/" not in shown
    assert "take away “Enabled” instead" in shown
    assert admin.post(f"/admin/agent/{address}delete/", {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [str(row.pk), str(unused.pk)], "post": "yes"}
    said = admin.post("/admin/agent/agentprofile/", chosen).content.decode()
    assert f"{row}: Conversations use this agent" in said
    assert "permission to delete" not in said
    assert AgentProfile.objects.count() == 2

    shown = page(admin, f"agentprofile/{unused.pk}/change/")
    assert f"agentprofile/{unused.pk}/delete/" in shown
    assert "instead" not in shown
    admin.post(f"/admin/agent/agentprofile/{unused.pk}/delete/", {"post": "yes"})
    assert AgentProfile.objects.get() == row


def test_of_a_tool_only_the_rules_can_be_changed(admin: Client) -> None:
    row = ToolRecordFactory(definition={"name": "工具"})
    address = f"/admin/agent/toolrecord/{row.pk}/change/"
    assert "工具" in admin.get(address).content.decode()
    form = {"permission": "deny", "name": "other", "description": "other", "app": "other"}
    assert admin.post(address, form).status_code == 302
    changed = ToolRecord.objects.get()
    assert (changed.permission, changed.enabled) == ("deny", False)
    assert (changed.name, changed.description, changed.app) == (row.name, row.description, row.app)
    assert admin.get("/admin/agent/toolrecord/add/").status_code == 403
    assert admin.get(f"/admin/agent/toolrecord/{row.pk}/delete/").status_code == 403
    ToolRecord.objects.update(present=False)
    assert admin.get(f"/admin/agent/toolrecord/{row.pk}/delete/").status_code == 200


def test_audit_records_are_read_only_and_found_by_id(admin: Client) -> None:
    run, other = uuid7(), uuid7()
    write([AuditEntry(event="first", execution_id=str(run)), AuditEntry(event="second", conversation_id=str(other))])
    write([AuditEntry(event="third", trace_id="trace-3")])
    for term, event in ((str(run), "first"), (str(other), "second"), ("trace-3", "third")):
        shown = page(admin, "auditrecord/", q=term)
        assert [name for name in ("first", "second", "third") if f">{name}<" in shown or name in shown.split()] == [
            event
        ]
    row = AuditRecord.objects.first()
    assert row is not None
    page(admin, f"auditrecord/{row.pk}/change/")
    assert admin.post(f"/admin/agent/auditrecord/{row.pk}/change/", {"event": "x"}).status_code == 403
    assert admin.get(f"/admin/agent/auditrecord/{row.pk}/delete/").status_code == 403
    assert admin.get("/admin/agent/auditrecord/add/").status_code == 403


def test_every_list_opens(admin: Client) -> None:
    AgentProfileFactory()
    for name in ("agentprofile", "modelendpoint", "toolrecord", "auditrecord"):
        page(admin, f"{name}/")
