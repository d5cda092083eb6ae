"""The five limits."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from agent.runtime import (
    DEFAULT_LIMITS,
    AgentRuntime,
    InvalidArgument,
    Limits,
    PartialLimits,
    ToolRegistry,
    create_runtime,
)
from agent.testing import ScriptedModel

FIELDS = ("maxModelCalls", "maxToolCalls", "maxDurationMs", "maxModelOutputCharacters", "maxToolResultCharacters")


def test_the_defaults_of_the_factory() -> None:
    """R66 table, R73."""
    assert DEFAULT_LIMITS.to_wire() == dict(zip(FIELDS, (16, 32, 300_000, 100_000, 100_000), strict=True))
    runtime = create_runtime(ScriptedModel(), limits=PartialLimits(max_model_calls=30))
    assert runtime.limits.to_wire() == {**DEFAULT_LIMITS.to_wire(), "maxModelCalls": 30}


def test_a_runtime_built_directly_needs_all_five() -> None:
    """R67."""
    for name in FIELDS:
        partial = {key: value for key, value in DEFAULT_LIMITS.to_wire().items() if key != name}
        with pytest.raises(ValidationError):
            Limits.from_wire(partial)
    with pytest.raises(InvalidArgument):
        AgentRuntime(model=ScriptedModel(), tools=ToolRegistry(), limits=PartialLimits(max_model_calls=1))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None, 2**53])
def test_each_is_a_positive_integer(name: str, value: Any) -> None:
    """R68."""
    with pytest.raises(ValidationError):
        Limits.from_wire({**DEFAULT_LIMITS.to_wire(), name: value})


def test_the_duration_has_a_bound_of_its_own() -> None:
    """R68."""
    assert Limits.from_wire({**DEFAULT_LIMITS.to_wire(), "maxDurationMs": 2_147_483_647})
    with pytest.raises(ValidationError):
        Limits.from_wire({**DEFAULT_LIMITS.to_wire(), "maxDurationMs": 2_147_483_648})


def test_a_client_may_tighten_and_never_widen() -> None:
    tightened = DEFAULT_LIMITS.tightened(PartialLimits(max_model_calls=3, max_tool_calls=1_000))
    assert (tightened.max_model_calls, tightened.max_tool_calls) == (3, 32)
