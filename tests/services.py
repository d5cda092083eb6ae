"""What tests need beside Python: PostgreSQL, Redis, Chromium, Node.js.

A missing service skips its tests. Under PAR_TEST_REQUIRE (`all`, or names separated by commas) it fails them instead.
What was skipped and why is printed last.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from uuid import uuid4

import pytest

SERVICES = ("postgres", "redis", "chromium", "node")


class CacheGeneration:
    """Gives each test cache keys of its own: clearing a Redis would empty what others keep in it."""

    def __init__(self) -> None:
        self._name = ""

    def fresh(self) -> None:
        self._name = uuid4().hex

    def key(self, key: str, prefix: str, version: int) -> str:
        """Return the name of a key in the cache (Django's KEY_FUNCTION)."""
        return f"par-test:{self._name}:{prefix}:{version}:{key}"


cache_generation = CacheGeneration()
cache_key = cache_generation.key


def required(service: str) -> bool:
    """Return whether the tests of `service` must run."""
    wanted = {name.strip() for name in os.environ.get("PAR_TEST_REQUIRE", "").split(",")}
    return "all" in wanted or service in wanted


def chromium_path() -> str | None:
    """Return the browser to drive, None if there is none; one without a window of its own takes half the time."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return os.environ.get("PAR_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def missing(service: str, reason: str) -> None:
    """Skip the running test because `service` is missing, or fail it where the service is required."""
    assert service in SERVICES, service
    if required(service):
        pytest.fail(f"{service} is required (PAR_TEST_REQUIRE) but missing: {reason}", pytrace=False)
    pytest.skip(f"needs {service}: {reason}")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium."""
    path = chromium_path()
    if path is None:
        missing("chromium", "no chromium in PATH and PAR_CHROMIUM is not set")
    assert path is not None
    return path


@pytest.fixture(scope="session")
def node() -> str:
    """The path of a Node.js."""
    path = shutil.which("node")
    if path is None:
        missing("node", "no node in PATH")
    assert path is not None
    return path


@pytest.fixture(scope="session")
def redis_url() -> str:
    """The address of a Redis server."""
    url = os.environ.get("REDIS_URL") or os.environ.get("PAR_TEST_REDIS_URL", "")
    if not url:
        missing("redis", "neither REDIS_URL nor PAR_TEST_REDIS_URL is set")
    return url


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """The address of a PostgreSQL server, whatever database the suite itself uses."""
    url = os.environ.get("DATABASE_URL", "")
    if not url.startswith(("postgres://", "postgresql://")):
        url = os.environ.get("PAR_TEST_DATABASE_URL", "")
    if not url:
        missing("postgres", "neither DATABASE_URL nor PAR_TEST_DATABASE_URL names one")
    return url


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each reason for which tests were skipped."""
    reasons = Counter(str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", []))
    if not os.environ.get("DATABASE_URL"):
        terminalreporter.write_line("not run: the suite on PostgreSQL (DATABASE_URL is not set)")
    if not os.environ.get("REDIS_URL"):
        terminalreporter.write_line("not run: the suite on Redis (REDIS_URL is not set)")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"skipped {count}: {reason.removeprefix('Skipped: ')}")
