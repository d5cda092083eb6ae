"""System checks of the settings; ids are stable.

agent.E001  a value (PAR_*, PORT, DATABASE_URL, REDIS_URL) cannot be used
agent.E002  production without PAR_SECRET_KEYS
agent.E003  production without PAR_ORIGINS
agent.E004  two agent_tools modules offer one tool name, or one cannot be imported
agent.W001  a PAR_* name that nobody reads
agent.W002  production with an origin that is not https
agent.W003  production without collected static files
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.apps.config import AppConfig
from django.conf import settings
from django.core import checks


@checks.register(checks.Tags.security)
def check_settings(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Report what `ParSettings` could not read and what production cannot do without."""
    par = settings.PAR
    found: list[checks.CheckMessage] = [checks.Error(problem, id="agent.E001") for problem in par.problems]
    found += [
        checks.Warning(f"{name} is set, but there is no such setting", hint="docs/configuration.md", id="agent.W001")
        for name in par.unknown
    ]
    if par.development:
        return found
    if not par.secret_keys:
        found.append(
            checks.Error(
                "PAR_SECRET_KEYS is needed in production",
                hint="A key: python3 -c 'import base64, os; print(base64.b64encode(os.urandom(32)).decode())'",
                id="agent.E002",
            )
        )
    if not par.origins:
        found.append(
            checks.Error("PAR_ORIGINS is needed in production", hint="As in https://ai.example.org", id="agent.E003")
        )
    found += [
        checks.Warning(f"{origin} is not https: browsers will not send the session cookie", id="agent.W002")
        for origin in par.origins
        if not origin.startswith("https://")
    ]
    if not (Path(settings.STATIC_ROOT) / "staticfiles.json").is_file():
        found.append(
            checks.Warning("the static files are not collected", hint="manage.py collectstatic", id="agent.W003")
        )
    return found


@checks.register(checks.Tags.compatibility)
def check_tools(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    """Report tools that cannot be loaded (R99)."""
    from agent.governance.tools import installed_tools
    from agent.runtime.exceptions import ToolAlreadyRegisteredError
    from agent.tools import ToolDeclarationError

    try:
        installed_tools()
    except (ToolAlreadyRegisteredError, ToolDeclarationError, ImportError) as error:
        return [checks.Error(str(error), hint="See the agent_tools modules of the installed apps.", id="agent.E004")]
    return []
