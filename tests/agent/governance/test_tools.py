from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, Group, Permission
from django.core import checks
from django.test import override_settings
from pytest_django import Settings

from agent.checks import check_tools
from agent.governance.tools import decide, installed_tools, sync_tool_records
from agent.models import ToolRecord
from agent.runtime.exceptions import ToolAlreadyRegisteredError
from agent.runtime.tools import ToolAnnotations, ToolDefinition
from tests.factories import ToolRecordFactory, UserFactory

pytestmark = pytest.mark.django_db

EXTRA = "tests.apps.extra"
TWICE = "tests.apps.twice"


def definition(name: str = "look", *, read_only: bool = True) -> ToolDefinition:
    return ToolDefinition(
        name=name,
        description="A tool.",
        input_schema={"type": "object"},
        annotations=ToolAnnotations(read_only_hint=read_only),
    )


def test_tools_come_from_the_agent_tools_of_each_app(settings: Settings) -> None:
    shipped = installed_tools()
    assert any(name.endswith("calculate") for name in shipped)
    with override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, EXTRA]):
        more = set(installed_tools()) - set(shipped)
    assert [name.rpartition(".")[2] for name in more] == ["extra_tool"]


def test_two_tools_with_one_name_are_an_error_and_a_failed_check(settings: Settings) -> None:
    """R99."""
    assert check_tools(None) == []
    with override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, TWICE]):
        with pytest.raises(ToolAlreadyRegisteredError, match="calculate"):
            installed_tools()
        assert [(error.id, error.level) for error in check_tools(None)] == [("agent.E004", checks.ERROR)]


def test_records_follow_the_code_and_keep_what_was_set(settings: Settings) -> None:
    with override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, EXTRA]):
        count = sync_tool_records()
        assert ToolRecord.objects.count() == count
        record = ToolRecord.objects.get(name__endswith="extra_tool")
        assert (record.app, record.present, record.enabled, record.permission) == ("extra", True, True, "")
        assert record.definition["description"].startswith("Say something.")
        ToolRecord.objects.update(enabled=False, permission="confirm", description="old")
        assert sync_tool_records() == count
        record.refresh_from_db()
        assert (record.enabled, record.permission) == (False, "confirm")
        assert record.description != "old"
    sync_tool_records()
    record.refresh_from_db()
    assert not record.present
    assert ToolRecord.objects.filter(present=False).count() == 1


@pytest.mark.parametrize(
    ("permission", "read_only", "verdict"),
    [
        ("", True, "allow"),
        ("", False, "confirm"),
        ("allow", True, "allow"),
        ("allow", False, "confirm"),
        ("confirm", True, "confirm"),
        ("confirm", False, "confirm"),
        ("deny", True, "deny"),
        ("deny", False, "deny"),
    ],
)
def test_the_strictest_rule_holds(permission: str, read_only: bool, verdict: str) -> None:
    ToolRecordFactory(name="look", permission=permission)
    assert decide(definition(read_only=read_only), UserFactory()).verdict == verdict


def test_a_tool_that_is_off_is_denied() -> None:
    ToolRecordFactory(name="look", enabled=False, permission="allow")
    decision = decide(definition(), UserFactory())
    assert decision.verdict == "deny"
    assert decision.reason


def test_groups_decide_who_may_use_a_tool() -> None:
    group = Group.objects.create(name="cooks")
    ToolRecordFactory(name="look").groups.add(group)
    cook, guest = UserFactory(), UserFactory()
    cook.groups.add(group)
    assert decide(definition(), cook).verdict == "allow"
    assert decide(definition(), guest).verdict == "deny"


def test_a_tool_without_a_record_is_as_it_declares() -> None:
    assert decide(definition(), UserFactory()).verdict == "allow"
    assert decide(definition(read_only=False), UserFactory()).verdict == "confirm"


def test_nobody_and_inactive_people_are_denied() -> None:
    assert decide(definition(), AnonymousUser()).verdict == "deny"
    assert decide(definition(), UserFactory(is_active=False)).verdict == "deny"


def test_the_permissions_that_a_tool_declares_are_needed() -> None:
    """R109."""
    needs = definition().model_copy(update={"permissions": ("agent.view_toolrecord",)})
    cook, guest = UserFactory(), UserFactory()
    cook.user_permissions.add(Permission.objects.get(codename="view_toolrecord"))
    assert decide(needs, cook).verdict == "allow"
    assert decide(needs, guest).verdict == "deny"
    assert decide(needs, UserFactory(is_superuser=True)).verdict == "allow"
