"""The import map leads every module of the page to its hashed file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.management import call_command

import conversations
from conversations.templatetags.chat import import_map

MODULES = Path(conversations.__file__).parent / "static" / "par"


def test_sources_need_no_map() -> None:
    assert json.loads(import_map()) == {"imports": {}}


def test_each_module_has_its_hashed_file(settings: Any, tmp_path: Path) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": "par_project.static.HashedModules"}}
    call_command("collectstatic", verbosity=0, interactive=False)

    imports: dict[str, str] = json.loads(import_map())["imports"]

    assert set(imports) == {f"/static/par/{module.name}" for module in MODULES.glob("*.js")}
    for hashed in imports.values():
        assert re.fullmatch(r"/static/par/[a-z]+\.[0-9a-f]{12}\.js", hashed)
        assert (tmp_path / hashed.removeprefix("/static/")).is_file()
    assert "par/main.js" in staticfiles_storage.hashed_files


@pytest.mark.parametrize("module", sorted(MODULES.glob("*.js")), ids=lambda module: module.name)
def test_a_module_imports_modules_of_ours_only(module: Path) -> None:
    """No package, no foreign host, no build step; and each of them exists."""
    for name in re.findall(r'\bfrom "([^"]+)"', module.read_text()):
        assert name.startswith("./")
        assert (MODULES / name).is_file()
    assert len(module.read_text().splitlines()) <= 300
