"""Frames, before anybody has looked at them."""

from __future__ import annotations

import json

import pytest

from conversations.websocket.protocol import SHORT, BadFrame, id_of, parse
from conversations.websocket.rate import LARGE, TokenBucket

LONG = "x" * SHORT


@pytest.mark.parametrize(
    ("frame", "id"),
    [
        ({"text": "x", "id": "1"}, "1"),
        ({"id": "1", "text": LONG}, "1"),
        ({"type": "start", "id": "1", "text": LONG}, "1"),
        ({"type": "start", "text": {"id": "2"}, "more": LONG, "id": "1"}, None),
        ({"id": "x" * 65}, None),
        ({"id": "x" * 65, "text": LONG}, None),
        ({"id": 1, "text": LONG}, None),
        ({"id": 'a "quoted" one', "text": LONG}, None),
        (["id", LONG], None),
        ([1], None),
    ],
)
def test_a_frame_that_is_not_read_has_its_id_nevertheless(frame: object, id: str | None) -> None:
    assert id_of(json.dumps(frame)) == id_of(json.dumps(frame, indent=1)) == id


def test_what_is_no_json_has_no_id() -> None:
    assert [id_of(text) for text in (None, "", "{", "{" + LONG)] == [None] * 4


def test_a_frame_of_too_many_parts_is_refused_under_its_id() -> None:
    frame = '{"type": "tool-result", "id": "1", "result": [%s1]}' % ("[]," * 330_000)
    with pytest.raises(BadFrame, match="JSON of more than 20000 parts") as caught:
        parse(frame)
    assert caught.value.id == "1"


def test_a_large_frame_counts_as_several_commands_and_may_overdraw() -> None:
    bucket = TokenBucket(10)
    assert bucket.take(2 * LARGE)
    assert [bucket.take() for _ in range(6)] == [True] * 6
    assert bucket.take(100 * LARGE)
    assert not bucket.take()
