"""What is in a file is found out from its bytes, and what is too much for anybody is refused (B84)."""

from __future__ import annotations

import io
import time
from base64 import b64decode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agent.providers.images import MAX_BYTES, MAX_SIDE, media_type_of
from conversations.attachments import read_file, reading
from conversations.attachments.pdf_text import read as read_pdf
from conversations.exceptions import UnfitAttachment
from tests.agent.providers import pictures
from tests.conversations.attachments.files import pdf, picture


@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_picture_is_what_its_bytes_say_whatever_it_is_called(format: str) -> None:
    data = picture(format=format)
    file = read_file(data, "report.pdf")
    assert (file.media_type, file.width, file.height) == (f"image/{format.lower()}", 40, 30)
    assert (file.data, file.name, file.text, file.pages) == (data, "report.pdf", "", None)


def test_a_text_is_read_whatever_it_is_called() -> None:
    file = read_file("\ufeffGrüße\n".encode(), "photo.png")
    assert (file.media_type, file.text) == ("text/plain", "Grüße\n")


@pytest.mark.parametrize("markup", [b"<svg xmlns='http://www.w3.org/2000/svg' onload='x()'/>", b"<html><script>x()"])
def test_pages_and_drawings_in_markup_are_text(markup: bytes) -> None:
    """B75: nothing that a browser would run has a type of its own."""
    assert read_file(markup, "a.svg").media_type == "text/plain"


def test_a_pdf_is_its_text_and_pages() -> None:
    file = read_file(pdf("First page", "Second page"), "")
    assert (file.media_type, file.pages, file.name) == ("application/pdf", 2, "document.pdf")
    assert file.text == "First page\n\nSecond page"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"MZ\x90\x00\x03", "no text in UTF-8"),
        (b"caf\xe9", "no text in UTF-8"),
        ("Zoë".encode("utf-16"), "no text in UTF-8"),
        (b"a\0b", "no text in UTF-8"),
        (b"PK\x03\x04" + bytes(100), "no text in UTF-8"),
        (b64decode(pictures.png(60_000, 60_000)), "more than 50,000,000 pixels"),
        (b64decode(pictures.png(0, 1)), "no pixels"),
        (b64decode(pictures.png(10, 10)), "damaged"),
        (picture()[:-40], "damaged"),
        (picture(400, 300, "JPEG")[:900], "damaged"),
        (b"%PDF-1.4\nnothing", "cannot be read"),
        (pdf(""), "no text"),
        (b"x" * (reading.MAX_CHARACTERS + 1), "more than 400,000 characters"),
        (pdf("x" * 3000, repeat=200), "more than 400,000 characters"),
        (pdf(*["x"] * (reading.MAX_PAGES + 1)), "more than 500 pages"),
    ],
)
def test_what_cannot_be_attached_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(UnfitAttachment, match=why) as refused:
        read_file(data, "file")
    assert refused.value.code == "ATTACHMENT_UNFIT"


def test_a_pdf_that_inflates_without_end_takes_bounded_time_and_memory() -> None:
    """B84: a quarter of a megabyte of zeros in one stream; pypdf alone would go on for minutes."""
    bomb = pdf("(" * 40, repeat=3_000_000)
    assert len(bomb) < 1_000_000
    began = time.monotonic()
    with pytest.raises(UnfitAttachment):
        read_file(bomb, "bomb.pdf")
    assert time.monotonic() - began < 9 * reading.PDF_SECONDS


def test_a_pdf_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PDF_SECONDS", 0)
    with pytest.raises(UnfitAttachment, match="too long"):
        read_file(pdf("x"), "slow.pdf")


def test_a_text_in_a_pdf_is_bounded_before_it_is_all_read() -> None:
    assert read_pdf(pdf("x" * 60, "y" * 60), 10, 100) == {"fault": "it holds more than 100 characters of text"}
    assert read_pdf(pdf("x", "y"), 1, 100) == {"fault": "it has more than 1 pages"}
    assert read_pdf(pdf("x", "y"), 2, 100) == {"pages": 2, "text": "x\n\ny"}


def test_a_picture_that_is_too_large_for_a_model_is_made_smaller() -> None:
    file = read_file(picture(MAX_SIDE + 100, 90), "wide.png")
    assert (file.media_type, file.width) == ("image/jpeg", reading.SMALLER)
    assert media_type_of(file.data) == "image/jpeg"
    assert Image.open(io.BytesIO(file.data)).size == (file.width, file.height)


def test_a_photo_of_a_phone_is_made_smaller_and_stands_upright() -> None:
    noise = Image.effect_noise((3000, 2000), 200).convert("RGB")
    written, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6  # the camera lay on its side
    noise.save(written, "JPEG", quality=100, exif=exif)
    assert len(written.getvalue()) > MAX_BYTES
    file = read_file(written.getvalue(), "IMG_1.JPG")
    assert len(file.data) <= MAX_BYTES
    assert (file.width or 0) < (file.height or 0)
    assert not Image.open(io.BytesIO(file.data)).getexif()


def test_a_large_transparent_picture_stays_transparent() -> None:
    written = io.BytesIO()
    Image.new("RGBA", (MAX_SIDE + 1, 50), (200, 0, 0, 90)).save(written, "PNG")
    file = read_file(written.getvalue(), "")
    assert file.media_type == "image/webp"
    assert Image.open(io.BytesIO(file.data)).mode == "RGBA"


def test_a_large_moving_picture_is_refused() -> None:
    frames = [Image.new("RGB", (MAX_SIDE + 1, 2), colour) for colour in ("red", "green", "blue")]
    written = io.BytesIO()
    frames[0].save(written, "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(UnfitAttachment, match="moving"):
        read_file(written.getvalue(), "a.gif")


@given(st.binary(max_size=300), st.text(max_size=30))
def test_any_bytes_are_taken_or_refused_in_words(data: bytes, name: str) -> None:
    with suppress(UnfitAttachment):
        assert read_file(data, name).text == data.decode("utf-8-sig")
