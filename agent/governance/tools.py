"""Which tools are installed, what administrators say about them, and what that means for one person's call."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from django.apps import apps
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from agent.models import ToolRecord
from agent.models.tool import ToolPermission
from agent.runtime.exceptions import ToolAlreadyRegisteredError
from agent.runtime.ports import ToolDecision
from agent.runtime.tools import Tool, ToolDefinition

MODULE = "agent_tools"


def _modules() -> Iterator[tuple[str, ModuleType]]:
    for config in apps.get_app_configs():
        if find_spec(f"{config.name}.{MODULE}") is not None:
            yield config.label, import_module(f"{config.name}.{MODULE}")


def _found() -> dict[str, tuple[str, Tool]]:
    found: dict[str, tuple[str, Tool]] = {}
    for label, module in _modules():
        for tool in vars(module).values():
            if not isinstance(tool, Tool):
                continue
            name = tool.definition.name
            known = found.setdefault(name, (label, tool))
            if known[1] is not tool:
                raise ToolAlreadyRegisteredError(f"a tool named {name!r} is in the apps {known[0]!r} and {label!r}")
    return found


def installed_tools() -> dict[str, Tool]:
    """Return the tools in the `agent_tools` modules of the installed apps, by name.

    Raises `ToolAlreadyRegisteredError` when two tools have one name (R99).
    """
    return {name: tool for name, (_, tool) in _found().items()}


def sync_tool_records() -> int:
    """Bring the tool records in step with the code; returns how many tools are installed.

    New tools come enabled, tools that are gone stay listed as not present, and what an administrator set is kept.
    """
    found = _found()
    now = timezone.now()
    with transaction.atomic():
        ToolRecord.objects.bulk_create(
            [
                ToolRecord(
                    name=name,
                    app=label,
                    description=tool.definition.description,
                    definition=tool.definition.to_wire(),
                    present=True,
                    last_seen=now,
                )
                for name, (label, tool) in sorted(found.items())
            ],
            update_conflicts=True,
            unique_fields=["name"],
            update_fields=["app", "description", "definition", "present", "last_seen"],
        )
        ToolRecord.objects.filter(present=True).exclude(name__in=found).update(present=False)
    return len(found)


def decide(definition: ToolDefinition, user: AbstractBaseUser | AnonymousUser) -> ToolDecision:
    """Return what applies when this person's agent calls this tool now: deny before confirm before allow.

    A permission set by an administrator can be stricter than what the tool declares, never looser.
    """
    if not user.is_authenticated or not user.is_active:
        return ToolDecision("deny", "the account is not active")
    if isinstance(user, PermissionsMixin) and not user.has_perms(definition.permissions):
        return ToolDecision("deny", "this tool needs a permission that this person lacks")
    groups = ToolRecord.groups.through.objects.filter(toolrecord=OuterRef("pk"))
    records = ToolRecord.objects.filter(name=definition.name).annotate(
        closed=Exists(groups), member=Exists(groups.filter(group__user=user.pk))
    )
    record = records.first()
    if record is not None:
        if not record.enabled:
            return ToolDecision("deny", "this tool is switched off")
        if record.permission == ToolPermission.DENY:
            return ToolDecision("deny", "an administrator forbids this tool")
        if record.closed and not record.member:
            return ToolDecision("deny", "this tool is not open to this person")
        if record.permission == ToolPermission.CONFIRM:
            return ToolDecision("confirm", "an administrator wants this tool to be confirmed")
    return ToolDecision("confirm" if definition.needs_confirmation else "allow")
