"""The Python code in the documentation runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

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


@pytest.mark.parametrize("page", PAGES)
async def test_the_examples_of_a_page_run_and_its_tests_pass(page: str) -> None:
    found = examples(page)
    assert len(found) >= 4
    for test in found:
        outcome = test()
        if inspect.isawaitable(outcome):
            await outcome
