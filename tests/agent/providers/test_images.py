"""What a picture is, by its bytes (B84)."""

from __future__ import annotations

import struct
from base64 import b64decode
from contextlib import suppress
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.providers.images import MAX_BYTES, MAX_SIDE, UnfitPicture, checked, media_type_of, shown
from agent.runtime.messages import Base64Source, ImageBlock, UrlSource
from tests.agent.providers.pictures import EXTENDED, GIF, JPEG, LOSSLESS, PNG, SVG, TYPES, WEBP, png


@pytest.mark.parametrize("data", TYPES)
@pytest.mark.parametrize("said", ["image/png", "IMAGE/JPEG", "text/html"])
def test_the_bytes_say_what_a_picture_is_and_nobody_else(data: str, said: str) -> None:
    assert checked(Base64Source(media_type=said, data=data)) == Base64Source(media_type=TYPES[data], data=data)


def wide(data: str, at: int, form: str, width: int) -> bytes:
    """A picture of another width, which its header has at a place and in a form."""
    picture = bytearray(b64decode(data))
    struct.pack_into(form, picture, at, width)
    return bytes(picture)


JPEG_WIDTH = b64decode(JPEG).index(b"\xff\xc0") + 7
WIDTHS = [
    (PNG, 16, ">I", 0),
    (GIF, 6, "<H", 0),
    (JPEG, JPEG_WIDTH, ">H", 0),
    (WEBP, 26, "<H", 0),
    (LOSSLESS, 21, "<H", 1),
    (EXTENDED, 24, "<H", 1),
]


@pytest.mark.parametrize(("data", "at", "form", "less"), WIDTHS)
def test_a_picture_that_would_unpack_into_gigabytes_is_refused_by_its_header(
    data: str, at: int, form: str, less: int
) -> None:
    """B84: nobody unpacks it to find out; the width is read where each format has it."""
    assert media_type_of(wide(data, at, form, MAX_SIDE - less)) == TYPES[data]
    with pytest.raises(UnfitPicture, match="wider or higher than 8,000 pixels"):
        media_type_of(wide(data, at, form, MAX_SIDE + 1 - less))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("aGVsbG8=", "no PNG, JPEG, GIF or WebP"),
        ("A" * 4, "no PNG, JPEG, GIF or WebP"),
        (SVG, "no PNG, JPEG, GIF or WebP"),
        (PNG[1:], "no base64"),
        ("A", "no base64"),
        (png(60_000, 60_000), "wider or higher"),
        (png(1, 60_000), "wider or higher"),
        (png(0, 1), "no pixels"),
        (png(1, 1, size=MAX_BYTES + 1), "larger than 3,750,000 bytes"),
        ("A" * 40_000_000, "larger than 3,750,000 bytes"),
    ],
)
def test_what_is_no_picture_is_refused_with_a_reason(data: str, why: str) -> None:
    block = ImageBlock(source=Base64Source(media_type="image/png", data=data))
    with pytest.raises(UnfitPicture, match=why):
        checked(Base64Source(media_type="image/png", data=data))
    words = shown(block)
    assert isinstance(words, str) and words.startswith("(a picture that this model cannot be shown: it ")


def test_the_largest_picture_passes() -> None:
    assert checked(Base64Source(media_type="image/png", data=png(MAX_SIDE, MAX_SIDE, size=MAX_BYTES)))


def test_a_picture_by_address_is_told_of() -> None:
    words = shown(ImageBlock(source=UrlSource(url="https://example.com/a.png")))
    assert words == "(a picture that this model cannot be shown: nobody has looked at what lies there)"


STARTS = st.sampled_from([b64decode(data)[:cut] for data in TYPES for cut in (4, 12, 20, 30, 200)])


@given(STARTS, st.binary(max_size=64))
@example(b"\xff\xd8", b"\xff" * 64)
def test_a_header_of_any_bytes_is_judged(start: bytes, rest: bytes) -> None:
    with suppress(UnfitPicture):
        assert media_type_of(start + rest) in TYPES.values()


@pytest.mark.parametrize("filling", [b"\xff", b"\xff\xe0\x00\x02"])
def test_a_picture_of_nothing_but_segments_takes_no_time(filling: bytes) -> None:
    started = process_time()
    with pytest.raises(UnfitPicture):
        media_type_of((b"\xff\xd8" + filling * MAX_BYTES)[:MAX_BYTES])
    assert process_time() - started < 0.2
