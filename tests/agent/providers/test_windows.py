"""How much a model takes in (P99)."""

from __future__ import annotations

import pytest

from agent.providers.windows import context_window


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o", 128_000),
        ("gpt-4o-mini", 128_000),
        ("gpt-4-turbo-2024-04-09", 128_000),
        ("gpt-3.5-turbo", 16_385),
        ("gpt-4", 8_192),
        ("gpt-4-0613", 8_192),
        ("claude-3-5-sonnet-20241022", 200_000),
        ("claude-sonnet-4-20250514", 200_000),
        ("claude-3-opus-20240229", 200_000),
        ("claude-3-haiku-20240307", 100_000),
        ("o1", 200_000),
        ("o3-mini", 200_000),
        ("o4-mini", 200_000),
        ("anthropic/claude-3-haiku", 100_000),
        ("GPT-4o", 128_000),
        ("gpt-4omega", 8_000),
        ("o10", 8_000),
        ("something-else", 8_000),
        ("", 8_000),
    ],
)
def test_the_window_of_a_model_by_its_name(model: str, tokens: int) -> None:
    assert context_window(model) == tokens


def test_an_operator_knows_better() -> None:
    assert context_window("gpt-4", 1_000) == 1_000
