"""Large JSON read in pieces is the same JSON."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime import pieces
from agent.runtime.pieces import read_in_pieces
from agent.runtime.values import read_json

LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.sampled_from(['"[', "\\", '\\"]'])
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=60)


@pytest.fixture(autouse=True, scope="module")
def small() -> Any:
    """Everything is large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "SMALL", 8)
        yield


@given(value=JSON, spread=st.booleans())
def test_it_reads_what_the_parser_reads(value: Any, spread: bool) -> None:
    raw = orjson.dumps(value, option=orjson.OPT_INDENT_2 if spread else None)
    assert read_in_pieces(raw, most=10_000) == value


@given(value=JSON, few=st.integers(0, 40))
def test_it_counts_what_the_parser_counts(value: Any, few: int) -> None:
    raw = orjson.dumps(value)

    def refused(read: Any) -> bool:
        try:
            read(raw, most=few)
        except ValueError:
            return True
        return False

    assert refused(read_in_pieces) == refused(read_json)


@given(value=JSON, at=st.integers(0, 200), other=st.sampled_from([b"", b"]", b"}", b"[", b"{", b'"', b",", b"1"]))
def test_what_is_no_json_for_the_parser_is_none_in_pieces(value: Any, at: int, other: bytes) -> None:
    whole = orjson.dumps([[[value, [1]], [[2]]]])
    raw = whole[: at % len(whole)] + other + whole[at % len(whole) + 1 :]

    def said(read: Any) -> Any:
        try:
            return read(raw, most=10_000)
        except ValueError:
            return "nothing"

    assert said(read_in_pieces) == said(read_json)


def test_what_is_too_deep_is_refused_before_it_is_read() -> None:
    for depth in (200, 100_000):
        with pytest.raises(ValueError, match="nested deeper than 100 levels"):
            read_in_pieces(b"[" * depth + b"]" * depth, most=1_000_000)
