"""Splitting byte streams into events."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.providers.framing import EventTooLarge, NDJSONSplitter, SSESplitter


def whatwg(stream: bytes) -> list[bytes]:
    """The algorithm of the HTML standard, byte by byte; the last event counts without its blank line too."""
    stream = stream.removeprefix(b"\xef\xbb\xbf")
    lines, line, at = [], bytearray(), 0
    while at < len(stream):
        byte = stream[at]
        if byte in (13, 10):
            lines.append(bytes(line))
            line.clear()
            if byte == 13 and stream[at + 1 : at + 2] == b"\n":
                at += 1
        else:
            line.append(byte)
        at += 1
    lines += [bytes(line), b""]
    events, data, has_data = [], bytearray(), False
    for each in lines:
        if each == b"":
            if has_data:
                events.append(bytes(data[:-1]))
            data.clear()
            has_data = False
            continue
        name, colon, value = each.partition(b":")
        if name == b"data":
            data += (value[1:] if value.startswith(b" ") else value) if colon else b""
            data += b"\n"
            has_data = True
    return events


def split(stream: bytes, cuts: list[int]) -> list[bytes]:
    splitter = SSESplitter()
    ends = sorted({0, len(stream), *(cut for cut in cuts if cut <= len(stream))})
    events = [event for start, end in pairwise(ends) for event in splitter.feed(stream[start:end])]
    return events + splitter.close()


line_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
fields = st.sampled_from(
    [b"data: ", b"data:", b"data", b"datas: x", b": note", b"event: name", b"id: 1", b"retry: 5", b"", b" data: x"]
)
values = st.text(st.sampled_from('ab :{}[]"\u2028\x85\x0b\u4f60\U0001f642'), max_size=6).map(str.encode)
lines = st.builds(lambda field, value, end: field + value + end, fields, values, line_ends)
streams = st.builds(
    lambda mark, body, tail: mark + b"".join(body) + tail,
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(st.one_of(lines, line_ends), max_size=30),
    st.sampled_from([b"", b"data: cut", b"data", b"da"]),
)


@given(streams, st.lists(st.integers(0, 400), max_size=12))
def test_any_split_gives_what_the_standard_says(stream: bytes, cuts: list[int]) -> None:
    """B16, B17: line ends, comments, marks and reads that end anywhere."""
    assert split(stream, cuts) == whatwg(stream)
    assert split(stream, list(range(len(stream)))) == whatwg(stream)


def test_an_event_is_not_held_back_for_a_line_feed_that_may_never_come() -> None:
    splitter = SSESplitter()
    assert splitter.feed(b"data: one\r\r") == [b"one"]
    assert splitter.feed(b"\ndata: two\r\n\r") == [b"two"]
    assert splitter.feed(b"\n") == []
    assert splitter.close() == []


def test_an_event_larger_than_the_limit_is_a_clear_error() -> None:
    splitter = SSESplitter(limit=1_000)
    splitter.feed(b"data: " + b"x" * 900)
    with pytest.raises(EventTooLarge, match="larger than 1,000 bytes"):
        splitter.feed(b"x" * 200)


def test_many_events_may_together_be_larger_than_the_limit() -> None:
    assert len(SSESplitter(limit=100).feed(b"data: 0123456789\n\n" * 100)) == 100


@given(st.lists(st.sampled_from([b'{"a":1}', b"", b" ", b'{"b":"\xe4\xbd\xa0"}']), max_size=10), st.integers(1, 7))
def test_lines_of_json_come_out_whole(parts: list[bytes], step: int) -> None:
    stream = b"\r\n".join(parts)
    splitter = NDJSONSplitter()
    found = [line for at in range(0, len(stream), step) for line in splitter.feed(stream[at : at + step])]
    assert found + splitter.close() == [part for part in parts if part.strip()]
