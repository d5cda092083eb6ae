"""The Python code in the documentation runs."""

from __future__ import annotations

import base64
import inspect
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.core.management import call_command

from agent.conf import ParSettings
from agent.models import AgentProfile

ROOT = Path(__file__).parent.parent
PAGES = ("docs/tools.md", "docs/testing.md")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def load(page: str) -> ModuleType:
    """Run the Python blocks of a page from top to bottom as one module."""
    text = (ROOT / page).read_text()
    module = ModuleType(Path(page).stem)
    for block in FENCE.finditer(text):
        # Blank lines before the code let a traceback show the page's own line numbers.
        lines = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(lines + block[1], page, "exec", dont_inherit=True), module.__dict__)
    return module


def examples(page: str) -> list[Callable[[], Any]]:
    return [value for name, value in vars(load(page)).items() if name.startswith("test_")]


def test_the_variables_for_production_are_settings_in_the_form_that_docker_reads() -> None:
    """Docker takes everything after the first = as the value, a comment too."""
    block = re.search(
        r"^```sh\n(#.*?PAR_SECRET_KEYS.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert block is not None
    found = dict(line.split("=", 1) for line in block[1].splitlines() if not line.startswith("#"))
    assert set(found) <= set(ParSettings.variables())
    key = base64.b64encode(bytes(32)).decode()
    read = ParSettings.from_environment({name: value or key for name, value in found.items()})
    assert (read.problems, read.unknown) == ((), ())


def linked_pages() -> list[str]:
    named = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "examples/README.md"]
    return named + sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))


def anchors(page: Path) -> set[str]:
    """Return the names of the headings of a page, as links to them are written."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", linked_pages())
def test_every_link_and_picture_of_a_page_leads_somewhere(page: str) -> None:
    for target in LINK.findall((ROOT / page).read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        place = (ROOT / page).parent / name if name else ROOT / page
        assert place.resolve().is_relative_to(ROOT.resolve()), target
        assert place.exists(), target
        if anchor:
            assert anchor in anchors(place), target


def test_the_agents_that_the_readme_names_have_all_tools(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its command is run as it stands there, and its code declares a tool."""
    text = (ROOT / "README.md").read_text()
    found = re.search(r"manage\.py add_agent (.+)$", text, re.MULTILINE)
    assert found is not None
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    call_command("bootstrap", "--demo", stdout=StringIO())
    call_command("add_agent", *found[1].split(), stdout=StringIO())
    assert set(AgentProfile.objects.filter(all_tools=True).values_list("slug", flat=True)) == {
        "demo",
        "openai",
        "helper",
    }
    assert load("README.md").restart_service.definition.name.endswith("restart_service")


@pytest.mark.parametrize("page", PAGES)
async def test_the_examples_of_a_page_run_and_its_tests_pass(page: str) -> None:
    found = examples(page)
    assert len(found) >= 4
    for test in found:
        outcome = test()
        if inspect.isawaitable(outcome):
            await outcome
