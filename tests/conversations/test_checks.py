from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from conversations.checks import check_base_path


@pytest.mark.parametrize("path", ["/admin", "/accounts", "/static", "/static/x", "/c", "/link/ai"])
def test_the_base_path_may_be_none_that_the_site_uses(settings: Settings, path: str) -> None:
    settings.PAR = settings.PAR.model_copy(update={"base_path": path})
    (error,) = check_base_path(None)
    assert (error.id, path in error.msg) == ("conversations.E001", True)


@pytest.mark.parametrize("path", ["/ai", "/administrator", "/api/v1", "/conversations"])
def test_any_other_will_do(settings: Settings, path: str) -> None:
    settings.PAR = settings.PAR.model_copy(update={"base_path": path})
    assert check_base_path(None) == []


def test_the_check_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "configuration.md"
    assert "| `conversations.E001` |" in page.read_text()
