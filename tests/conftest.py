"""Fixtures and hooks of the whole suite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import SyncToAsync
from django.db import connection, connections
from hypothesis import settings

from conversations.hosting.executor import DatabaseExecutor
from tests.services import cache_generation

# No deadline and the same hundred examples in every run; `--hypothesis-profile=default` searches on.
settings.load_profile("ci")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Asynchronous tests write from threads of their own: they need real commits. What uses no database runs once."""
    for item in items:
        fixtures = {"db", "transactional_db", "site"} & set(getattr(item, "fixturenames", ()))
        if not (fixtures or item.get_closest_marker("django_db") or "serve" in item.path.parts):
            item.add_marker("once")
        if item.get_closest_marker("django_db") and item.get_closest_marker("asyncio"):
            item.add_marker(pytest.mark.django_db(transaction=True), append=False)


@pytest.fixture
def executor(transactional_db: None) -> Iterator[DatabaseExecutor]:
    """The executor that the host and the sockets use."""
    made = DatabaseExecutor()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _fresh_cache() -> None:
    """Rate limits and second factors live in the cache; no test inherits another's."""
    cache_generation.fresh()


@pytest.fixture(autouse=True, scope="session")
def _quick_flush(django_db_setup: None) -> None:
    """Empty tables by DELETE: TRUNCATE takes PostgreSQL a second, however little is in them."""
    if connection.vendor == "postgresql":
        quote = connection.ops.quote_name
        connection.ops.sql_flush = lambda style, tables, **options: [f"DELETE FROM {quote(table)}" for table in tables]  # type: ignore[method-assign]


@pytest.fixture(autouse=True, scope="session")
def _closed_connections(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Give every connection back, or the test database cannot be dropped."""
    yield
    with django_db_blocker.unblock():
        SyncToAsync.single_thread_executor.submit(connections.close_all).result()
        connections.close_all()
        for each in connections.all(initialized_only=True):
            if getattr(each, "pool", None):
                each.close_pool()
