"""What is in a file: judged by its bytes, never by its name, and within bounds (B84).

A picture is decoded once, so that no model and no browser is the first to find it broken. One that is larger than
providers take is made smaller. What is neither picture nor PDF is a text if it is UTF-8; a page or a drawing in markup
is no more than that.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image, ImageOps

from agent.providers.images import MAX_BYTES, MAX_SIDE, look
from agent.runtime.values import clean_text
from conversations.attachments.names import clean_name
from conversations.exceptions import UnfitAttachment

MAX_PIXELS = 50_000_000
MAX_PAGES = 500
MAX_CHARACTERS = 400_000
PDF_SECONDS = 10
SMALLER = 2576  # pixels of a side; no model looks closer

_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP"}
ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
_NAMES = {  # of what has none
    **{media_type: f"picture.{ending}" for media_type, ending in ENDINGS.items()},
    "application/pdf": "document.pdf",
    "text/plain": "text.txt",
}
_TEXT_CONTROLS = frozenset("\t\n\r\f\x0b\x1b")


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that may be attached: what it is, and the bytes that are kept of it.

    `sent` is the digest of those that came: a large picture is kept smaller.
    """

    name: str
    media_type: str
    data: bytes
    digest: str
    sent: str
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    text: str = ""

    @property
    def size(self) -> int:
        return len(self.data)


def read_file(data: bytes, name: str) -> ReadFile:
    """Return what is in a file; takes seconds at worst. Raises `UnfitAttachment`."""
    if not data:
        raise UnfitAttachment("it is empty")
    sent = digest_of(data)
    if (seen := look(data)) is not None:
        return _picture(data, sent, name, *seen)
    if data.lstrip()[:5] == b"%PDF-":
        pages, text = _pdf(data)
        return named(ReadFile("", "application/pdf", data, sent, sent, pages=pages, text=text), name)
    return named(ReadFile("", "text/plain", data, sent, sent, text=_text(data)), name)


def named(file: ReadFile, name: str) -> ReadFile:
    """Return a file that was read under a name of its own."""
    return replace(file, name=clean_name(name, _NAMES[file.media_type]))


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of a content, under which it is stored, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _picture(data: bytes, sent: str, name: str, media_type: str, size: tuple[int, int]) -> ReadFile:
    _check_pixels(*size)
    try:
        with Image.open(io.BytesIO(data), formats=[_FORMATS[media_type]]) as checked:
            _check_pixels(*checked.size)
            checked.verify()
        with Image.open(io.BytesIO(data), formats=[_FORMATS[media_type]]) as picture:
            if len(data) > MAX_BYTES or max(picture.size) > MAX_SIDE:
                data, media_type, size = _made_smaller(picture)
            else:
                picture.load()
                size = picture.size
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise UnfitAttachment("the picture is damaged") from error
    return named(ReadFile("", media_type, data, digest_of(data), sent, *size), name)


def _check_pixels(width: int, height: int) -> None:
    if not width or not height:
        raise UnfitAttachment("the picture has no pixels")
    if width * height > MAX_PIXELS:
        raise UnfitAttachment(f"the picture has more than {MAX_PIXELS:,} pixels")


def _made_smaller(picture: Image.Image) -> tuple[bytes, str, tuple[int, int]]:
    """Return a picture as a JPEG, or a WebP where it is transparent, that every provider takes."""
    if getattr(picture, "is_animated", False):
        raise UnfitAttachment(f"moving pictures may have {MAX_BYTES:,} bytes and {MAX_SIDE:,} pixels a side")
    picture.draft("RGB", (SMALLER, SMALLER))
    smaller = ImageOps.exif_transpose(picture)
    transparent = smaller.has_transparency_data
    smaller = smaller.convert("RGBA" if transparent else "RGB")
    smaller.thumbnail((SMALLER, SMALLER))
    written = io.BytesIO()
    smaller.save(written, "WEBP" if transparent else "JPEG", quality=85)
    return written.getvalue(), "image/webp" if transparent else "image/jpeg", smaller.size


def _pdf(data: bytes) -> tuple[int, str]:
    """Return pages and text of a PDF, which a process without rights, secrets and much memory reads."""
    program = [sys.executable, "-I", str(Path(__file__).with_name("pdf_text.py"))]
    limits = [str(limit) for limit in (PDF_SECONDS, MAX_PAGES, MAX_CHARACTERS)]
    try:
        done = subprocess.run(  # noqa: S603  nothing in it comes from outside
            [*program, *limits], input=data, capture_output=True, env={}, timeout=6 * PDF_SECONDS, check=False
        )
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise UnfitAttachment("it takes too long to read") from None
    except ValueError:  # it was killed, by the limit of time as a rule
        raise UnfitAttachment("it takes too long or too much memory to read") from None
    if "fault" in found:
        raise UnfitAttachment(found["fault"])
    text = clean_text(found["text"])
    if not text.strip():
        raise UnfitAttachment("there is no text in it that can be read; are its pages pictures?")
    return found["pages"], text


def _text(data: bytes) -> str:
    """Return a text; raises `UnfitAttachment` for what is none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if any(unicodedata.category(each) == "Cc" and each not in _TEXT_CONTROLS for each in set(text)):
        raise UnfitAttachment("it is no PNG, JPEG, GIF or WebP picture, no PDF and no text in UTF-8")
    if not text.strip():
        raise UnfitAttachment("it is empty")
    if len(text) > MAX_CHARACTERS:
        raise UnfitAttachment(f"it holds more than {MAX_CHARACTERS:,} characters of text")
    return text
