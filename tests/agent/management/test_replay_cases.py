"""`manage.py replay_cases`, and with it every recorded chat answer."""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from agent.management.replay import Case, load_cases, replay
from agent.management.wire_forms import FORMS
from agent.providers.transport import Transport

CASES = Path(__file__).parents[2] / "cases"
READABLE = [case for case in load_cases(CASES) if case.api in FORMS]


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case.id)
async def test_every_recorded_answer_is_read_right_in_every_delivery(case: Case) -> None:
    """B01-B39: whole, byte by byte, and split as given."""
    transport = Transport(idle_timeout=10)
    await transport.start()
    try:
        assert await replay(case, transport) == []
    finally:
        await transport.close()


def run(path: Path) -> tuple[list[str], str]:
    """Return the lines of the command and how it failed."""
    out = StringIO()
    try:
        call_command("replay_cases", str(path), stdout=out)
    except CommandError as error:
        return out.getvalue().splitlines(), str(error)
    return out.getvalue().splitlines(), ""


def write(folder: Path, *cases: dict[str, Any]) -> Path:
    for case in cases:
        shutil.copy(CASES / case["file"], folder)
    index = folder / "cases.jsonl"
    index.write_text("\n".join(map(json.dumps, cases)))
    return index


def recorded(case_id: str) -> Any:
    lines = (CASES / "cases.jsonl").read_text().splitlines()
    return next(case for case in map(json.loads, lines) if case["id"] == case_id)


def test_there_is_one_line_for_each_case(tmp_path: Path) -> None:
    write(tmp_path, recorded("B01"), recorded("B27") | {"api": "unheard-of"}, recorded("B22"))
    lines, failure = run(tmp_path)
    assert lines == ["ok B01", "skip B27: no adapter for unheard-of", "ok B22"]
    assert failure == ""


@pytest.mark.parametrize(
    ("case_id", "change", "told"),
    [
        ("B01", {"text": "Hello you"}, "text is 'Hello there' instead of 'Hello you'"),
        ("B01", {"usage": {"input_tokens": 8}}, "input_tokens is 9 instead of 8"),
        ("B01", {"outcome": "max-tokens"}, "outcome is 'completed' instead of 'max-tokens'"),
        ("B14", {"reasoning": ""}, "reasoning is 'Two plus two.' instead of ''"),
        ("B08", {"tool_calls": [{"name": "get_weather", "input": {"city": "Rome"}}]}, "'Quito'"),
        ("B19", {"error_kind": "overloaded"}, "error kind is 'provider-error' instead of 'overloaded'"),
        ("B22", {"retryable": False}, "retryable is True instead of False"),
        ("B22", {"retry_after_s": 3}, "retry after 20.0 instead of 3.0 seconds"),
        ("B23", {"refusal": "No."}, "refusal is 'I cannot help with that.' instead of 'No.'"),
        ("B38", {"usage": {"cache_read_tokens": 41}}, "cache_read_tokens is 40 instead of 41"),
        ("B35", {"replay": []}, "1 parts of the answer go back instead of 0"),
        (
            "B30",
            {"replay": [{"type": "thinking", "signature": "x"}, {}, {}]},
            "'signature': 'RXhhbXBsZVNpZ25hdHVyZQ=='",
        ),
        ("B38", {"continue": True}, "no request went on with the answer"),
    ],
)
def test_what_differs_is_told(case_id: str, change: dict[str, Any], told: str, tmp_path: Path) -> None:
    case = recorded(case_id)
    case["expect"] |= change
    lines, failure = run(write(tmp_path, case))
    assert lines[0].startswith(f"FAIL {case_id}: whole: ") and told in lines[0]
    assert failure == "1 of 1 cases failed"


def test_a_provider_id_that_is_not_used_is_told(tmp_path: Path) -> None:
    case = recorded("B08")
    case["expect"]["tool_calls"][0]["provider_id"] = "another"
    lines, _ = run(write(tmp_path, case))
    assert "provider id 'call_d9' instead of 'another'" in lines[0]


@pytest.mark.parametrize(
    ("part", "change", "told"),
    [
        ("expect", {"tool_calls": [{}]}, "FAIL B08: whole: KeyError: 'name'"),
        ("expect", {"retry_after_s": [1]}, "FAIL B08: whole: TypeError: "),
        ("transport", {"split_at": ["x"]}, "FAIL B08: delivery: TypeError: "),
    ],
)
def test_a_case_that_cannot_be_compared_fails_and_the_next_is_read(
    part: str, change: dict[str, Any], told: str, tmp_path: Path
) -> None:
    case = recorded("B08")
    case[part] = case.get(part, {}) | change
    lines, failure = run(write(tmp_path, case, recorded("B01")))
    assert lines[0].startswith(told)
    assert lines[1:] == ["ok B01"]
    assert failure == "1 of 2 cases failed"


def test_an_adapter_that_raises_fails_its_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("agent.management.replay.build_model", broken)
    lines, failure = run(write(tmp_path, recorded("B01"), recorded("B22")))
    assert lines == ["FAIL B01: whole: RuntimeError: two lines", "FAIL B22: whole: RuntimeError: two lines"]
    assert failure == "2 of 2 cases failed"


def test_a_path_without_cases_is_a_clear_error(tmp_path: Path) -> None:
    for content in (None, "{", "[1]", "{}"):
        if content is not None:
            (tmp_path / "cases.jsonl").write_text(content)
        _, failure = run(tmp_path)
        assert "cannot be read as cases" in failure
