"""What `agent.testing` offers."""

from __future__ import annotations

import agent.testing


def test_all_is_sorted_and_complete() -> None:
    public = {
        name for name, value in vars(agent.testing).items() if getattr(value, "__module__", "").startswith("agent.")
    }
    assert agent.testing.__all__ == sorted(public)
