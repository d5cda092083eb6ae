"""How many tokens a model can take in (P99)."""

from __future__ import annotations

UNKNOWN = 8_000

# The longest beginning counts.
_WINDOWS = {
    "gpt-4o": 128_000,
    "gpt-4-turbo": 128_000,
    "gpt-3.5-turbo": 16_385,
    "gpt-4": 8_192,
    "claude-3-5": 200_000,
    "claude-3.5": 200_000,
    "claude-opus-4": 200_000,
    "claude-sonnet-4": 200_000,
    "claude-haiku-4": 200_000,
    "claude-4": 200_000,
    "claude-3-opus": 200_000,
    "claude-3-haiku": 100_000,
    "o1": 200_000,
    "o3": 200_000,
    "o4-mini": 200_000,
}


def context_window(model: str, override: int | None = None) -> int:
    """Return the tokens that a model takes in: `override` if there is one, what is known of its name, or 8,000.

    A vendor before a slash, as gateways write it, does not matter.
    """
    if override is not None:
        return override
    name = model.lower().rpartition("/")[2]
    known = [beginning for beginning in _WINDOWS if name == beginning or name.startswith(beginning + "-")]
    return _WINDOWS[max(known, key=len)] if known else UNKNOWN
