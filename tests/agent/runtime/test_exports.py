"""What `agent.runtime` offers, and what it takes to load it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import agent.runtime


def test_every_name_can_be_had() -> None:
    assert len(set(agent.runtime.__all__)) == len(agent.runtime.__all__)
    assert set(agent.runtime.__all__) == set(agent.runtime._MODULE_OF) == set(dir(agent.runtime))
    for name in agent.runtime.__all__:
        assert getattr(agent.runtime, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        agent.runtime.nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import agent.runtime", ("asyncio", "pydantic", "django")),
        ("from agent.runtime import create_runtime", ("django", "httpx", "aiohttp", "openai")),
        ("from agent.runtime.messages import AgentMessage", ("agent.runtime.execution", "django")),
    ],
)
def test_importing_a_part_loads_no_more_than_it_needs(statement: str, absent: tuple[str, ...]) -> None:
    code = f"import sys; {statement}; print(sorted(set({absent!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
