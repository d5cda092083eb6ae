"""The tools that ship."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent.agent_tools import calculate, current_time, current_time_tool, send_postcard
from agent.testing import call_tool

NOON = datetime(2024, 7, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "Monday, 01 July 2024, 12:00:00 in UTC (2024-07-01T12:00:00+00:00)"),
        ("Europe/Berlin", "Monday, 01 July 2024, 14:00:00 in Europe/Berlin (2024-07-01T14:00:00+02:00)"),
    ],
)
async def test_the_time_is_told_for_a_zone(zone: str, text: str) -> None:
    assert (await call_tool(current_time_tool(lambda: NOON), {"zone": zone})).content == text


async def test_the_time_is_told_without_arguments_and_by_the_real_clock() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    content = (await call_tool(current_time)).content
    assert before <= datetime.fromisoformat(content.rpartition("(")[2].rstrip(")")) <= datetime.now(UTC)


@pytest.mark.parametrize(
    "zone", ["Mars/Olympus", "", "Europe", "../../etc/passwd", "/etc/passwd", "a\x00b", "x" * 9000]
)
async def test_an_unknown_zone_is_an_error_result(zone: str) -> None:
    result = await call_tool(current_time, {"zone": zone})
    assert result.is_error and "no time zone" in result.content and len(result.content) < 250


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", "7"),
        ("(1+2)*3", "9"),
        (" 7 / 2 ", "3.5"),
        ("6 / 2", "3"),
        ("0.1 + 0.2", "0.3"),
        ("-2 ** 2", "-4"),
        ("7 // 2 + 7 % 2", "4"),
        ("2 ** 100", str(2**100)),
        ("2 ** -1", "0.5"),
        ("sqrt(2) * sqrt(2)", "2"),
        ("max(1, 2.5, -3) + round(2.345, 2)", "4.85"),
        ("cos(pi)", "-1"),
        ("floor(3.7) + ceil(3.2) + abs(-1)", "8"),
    ],
)
async def test_arithmetic_is_worked_out(expression: str, value: str) -> None:
    result = await call_tool(calculate, {"expression": expression})
    assert (result.content, result.is_error) == (value, False)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("1 / 0", "Division by zero"),
        ("0 ** -1", "Division by zero"),
        ("9 ** 9 ** 9", "too large"),
        ("10 ** 1000000000", "too large"),
        ("2.0 ** 100000", "too large"),
        ("exp(1000)", "too large"),
        ("1e999", "too large"),
        ("1e308 * 10", "too large"),
        ("(2 ** 4000) * (2 ** 4000)", "too large"),
        ("(-8) ** 0.5", "not a real number"),
        ("sqrt(-1)", "cannot be computed"),
        ("round(5, -1000000000)", "whole number of digits"),
        ("min(5)", "does not take 1 argument"),
        ("2 ^ 3", r"\*\*"),
        ("1 +", "not an arithmetic expression"),
        ("", "not an arithmetic expression"),
        ("(" * 299, "not an arithmetic expression"),
        ("1" * 301, "longer than 300"),
        ("__import__('os').system('true')", "Only numbers"),
        ("open('x')", "not known"),
        ("x", "not known"),
        ("True + 1", "Only numbers"),
        ("'a' * 9", "Only numbers"),
        ("[1, 2]", "Only numbers"),
        ("max(*[1, 2])", "Only numbers"),
        ("round(number=2.5)", "not known|Only numbers"),
        ("(1).real", "Only numbers"),
        ("1 if 2 else 3", "Only numbers"),
        ("2j", "Only numbers"),
    ],
)
async def test_what_is_no_bounded_arithmetic_is_an_error_result(expression: str, problem: str) -> None:
    result = await call_tool(calculate, {"expression": expression})
    assert result.is_error
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(result.content)


async def test_a_chain_of_signs_is_computed_or_refused_but_never_breaks() -> None:
    assert (await call_tool(calculate, {"expression": "-" * 299 + "1"})).content in (
        "-1",
        "This is not an arithmetic expression.",
    )


async def test_the_postcard_asks_first_shows_progress_and_says_that_it_is_a_demo() -> None:
    said: list[str] = []
    assert send_postcard.definition.needs_confirmation
    assert not send_postcard.definition.annotations.destructive_hint
    result = await call_tool(send_postcard, {"to": "Ada", "text": "Hello"}, progress=said.append)
    assert result.content == "The postcard to Ada is on its way (this is a demo: nothing was really sent)."
    assert len(said) == 1


def test_only_the_postcard_needs_a_person() -> None:
    assert not current_time.definition.needs_confirmation and current_time.definition.annotations.read_only_hint
    assert not calculate.definition.needs_confirmation and calculate.definition.annotations.read_only_hint
