"""JSON in pieces: the same JSON, and no piece larger than it has to be."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.runtime.state import TextParts
from conversations.hosting import pieces
from conversations.hosting.pieces import PIECE, cut, encode_in_pieces, weight, with_last

TEXTS = st.text('aé🙂"\\\n\u2028', max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(TEXTS, inner, max_size=8),
    max_leaves=40,
)


@given(VALUES, st.sampled_from([1, 7, 100]))
def test_the_pieces_are_the_json_of_the_whole(value: Any, letters: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LETTERS", letters)
        patch.setattr(pieces, "PIECE", 4 * letters)
        assert b"".join(encode_in_pieces(value)) == orjson.dumps(value)


@pytest.mark.parametrize("parts", [(), ("",), ("a", "é"), ("x" * 300_000, "🙂" * 200_000, '"')])
def test_a_text_in_parts_is_a_text(parts: tuple[str, ...]) -> None:
    value = {"text": TextParts(parts), "after": [1]}
    assert b"".join(encode_in_pieces(value)) == orjson.dumps({"text": "".join(parts), "after": [1]})


@pytest.mark.parametrize(
    "value",
    [
        "x" * 3_000_000,
        ["🙂" * 1_000_000],
        {"a": [{"b": "\u2028" * 1_000_000}]},
        [["y" * 50]] * 60_000,
        list(range(500_000)),
    ],
)
def test_no_piece_is_much_larger_than_the_others(value: Any) -> None:
    made = list(encode_in_pieces(value))
    assert b"".join(made) == orjson.dumps(value)
    assert len(made) > 2
    assert max(map(len, made)) <= 3 * PIECE


def test_a_frame_is_cut_only_if_it_is_large() -> None:
    small, large = b"x" * PIECE, b"y" * (2 * PIECE + 1)
    assert list(cut(small)) == [small]
    assert [len(piece) for piece in cut(large)] == [PIECE, PIECE, 1]


def test_the_last_piece_is_known_as_such() -> None:
    assert list(with_last([])) == []
    assert list(with_last([b"a"])) == [(b"a", True)]
    assert list(with_last([b"a", b"b", b"c"])) == [(b"a", False), (b"b", False), (b"c", True)]


@given(VALUES)
def test_the_weight_is_about_the_size(value: Any) -> None:
    size = len(orjson.dumps(value))
    assert size / 12 - 8 <= weight(value, 10**9) <= 8 * size


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        list(encode_in_pieces([object(), "x" * PIECE]))
