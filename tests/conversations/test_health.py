"""Health and readiness, as a load balancer asks for them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from django.test import Client

from par_project import __version__


def test_health_needs_no_host_name_and_tells_the_version_and_nothing_else() -> None:
    answer = Client().get("/healthz", headers={"Host": "10.1.2.3"})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "version": __version__})
    assert "Set-Cookie" not in answer


def test_a_process_that_serves_no_runs_is_not_ready() -> None:
    answer = Client().get("/readyz", headers={"Host": "10.1.2.3"})
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_only_read(path: str) -> None:
    answer = Client().post(path)
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert __version__ == project["project"]["version"]
