"""A large JSON file is taken apart without being read as a whole."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.exceptions import ImportInvalid
from conversations.moving import elements as module
from conversations.moving.elements import elements, layout_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=4), max_size=5)


def read(data: bytes) -> list[tuple[str, Any]]:
    return [(each.place, each.value) for each in elements(data, layout_of(data))]


@settings(max_examples=50)
@given(OBJECTS, st.sampled_from([None, 1]), st.booleans())
def test_each_conversation_of_a_list_is_found(objects: list[Any], indent: int | None, ascii: bool) -> None:
    expected = objects
    data = json.dumps(objects, indent=indent, ensure_ascii=ascii).encode()
    assert read(data) == [(f"$[{at}]", each) for at, each in enumerate(expected)]
    wrapped = json.dumps({"a": [{}], "conversations": objects, "b": {"conversations": [1]}}, indent=indent).encode()
    layout = layout_of(wrapped)
    assert [each.value for each in elements(wrapped, layout)] == expected
    assert layout.envelope == {"a": [{}], "conversations": [], "b": {"conversations": [1]}}


def test_one_conversation_alone_is_a_file_too() -> None:
    assert read(b'\xef\xbb\xbf {"mapping": {}} ') == [("$", {"mapping": {}})]


def test_a_name_that_only_ends_like_the_list_is_none() -> None:
    data = b'{"x\\"conversations": [1], "conversations": [{"a": 1}]}'
    assert read(data) == [("$.conversations[0]", {"a": 1})]


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"hello", "$"),
        (b"", "$"),
        (b"[1]", "$[0]"),
        (b"[[]]", "$[0]"),
        (b"[{},]", "$[1]"),
        (b"[{} {}]", "$[1]"),
        (b"[,{}]", "$[0]"),
        (b"[{}", "$[1]"),
        (b'[{"a": "b]', "$[0]"),
        (b'[{}, {"a": }]', "$[1]"),
        (b"[{}] x", "$"),
        (b'[{"a": 1]}', "$[0]"),
        (b'{"conversations": [{}]', "$"),
        (b'{"conversations": [{}], "a": }', "$"),
        (b'[{}, {"a": "\xff"}]', "$[1]"),
        (b'[{"a":' + b"[" * 100_000, "$[0]"),
        (b'[{"a":' + b"[" * 150 + b"]" * 150 + b"}]", "$[0]"),
        (b'["a"]', "$[0]"),
        (b'{"a":' + b"[" * 100_000, "$"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "$"),
    ],
)
def test_what_is_no_list_of_conversations_is_refused_with_its_place(data: bytes, place: str) -> None:
    with pytest.raises(ImportInvalid) as refused:
        read(data)
    assert refused.value.place == place


def test_what_other_writers_write_can_be_read() -> None:
    """NaN and half a surrogate pair; those who use them clean them."""
    assert read(rb'[{"a": -Infinity, "b": "\ud83d!"}]') == [("$[0]", {"a": -float("inf"), "b": "\ud83d!"})]


def test_what_would_be_dear_to_build_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = time.monotonic()
    for data in (
        b"[" + b"{}," * module.MOST_BRACKETS + b"{}]",
        b'[{"a":[' + b"1," * (module.MOST_PARTS + 1) + b"1]}]",
    ):
        with pytest.raises(ImportInvalid):
            read(data)
    assert time.monotonic() - begun < 30
    monkeypatch.setattr(module, "MOST_CONVERSATIONS", 2)
    with pytest.raises(ImportInvalid, match="more than 2 conversations"):
        read(b"[{},{},{}]")


def test_an_open_text_is_no_trap() -> None:
    """A regular expression that tried again at each byte would take hours."""
    begun = time.monotonic()
    with pytest.raises(ImportInvalid):
        read(b'[{"a": "' + b"\\\\" * 5_000_000)
    assert time.monotonic() - begun < 10
