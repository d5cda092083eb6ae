"""The Python code in the documentation runs."""

from __future__ import annotations

import base64
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agent.conf import ParSettings

ROOT = Path(__file__).parent.parent
PAGES = ("docs/tools.md", "docs/testing.md")
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


@pytest.mark.parametrize("page", PAGES)
async def test_the_examples_of_a_page_run_and_its_tests_pass(page: str) -> None:
    found = examples(page)
    assert len(found) >= 4
    for test in found:
        outcome = test()
        if inspect.isawaitable(outcome):
            await outcome
