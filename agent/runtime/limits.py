"""The five limits of an execution (R66-R70)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agent.runtime.messages import MAX_SAFE_INTEGER, Value

Positive = Annotated[int, Field(strict=True, ge=1, le=MAX_SAFE_INTEGER)]


class Limits(Value):
    """All five must be given (R67); `DEFAULT_LIMITS` holds the factory defaults (R66).

    `max_duration_ms` is milliseconds of the whole run, live waits for a person included; character limits count
    Unicode code points of one model call and of one tool result.
    """

    max_model_calls: Positive
    max_tool_calls: Positive
    max_duration_ms: Annotated[int, Field(strict=True, ge=1, le=2_147_483_647)]
    max_model_output_characters: Positive
    max_tool_result_characters: Positive

    def tightened(self, wanted: PartialLimits) -> Limits:
        """Return the stricter of both for each field; a client may tighten limits, never widen them."""
        asked = wanted.model_dump(exclude_none=True)
        return self.model_copy(update={name: min(value, getattr(self, name)) for name, value in asked.items()})


class PartialLimits(Value):
    """Limits of which any may be left out."""

    max_model_calls: Positive | None = None
    max_tool_calls: Positive | None = None
    max_duration_ms: Annotated[int, Field(strict=True, ge=1, le=2_147_483_647)] | None = None
    max_model_output_characters: Positive | None = None
    max_tool_result_characters: Positive | None = None


DEFAULT_LIMITS = Limits(
    max_model_calls=16,
    max_tool_calls=32,
    max_duration_ms=300_000,
    max_model_output_characters=100_000,
    max_tool_result_characters=100_000,
)
