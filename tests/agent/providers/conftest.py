"""Fixtures of the provider tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agent.providers.transport import Transport


@pytest.fixture
async def transport() -> AsyncIterator[Transport]:
    """A transport that loses patience soon."""
    made = Transport(idle_timeout=5.0, connect_timeout=5.0)
    await made.start()
    yield made
    await made.close()
