"""Pictures as providers take them: judged by their bytes, whatever is said of them (B84).

Only the header is read: nobody here unpacks a picture, and nobody is sent one that would unpack into gigabytes.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable
from typing import TypeAlias

from agent.runtime.messages import Base64Source, ImageBlock

MAX_BYTES = 3_750_000  # providers count the base64 form, of which the strictest takes 5 MB
MAX_SIDE = 8_000  # pixels, of the strictest too
# What stands in place of a picture that cannot be shown, or not there.
NO_IMAGE = "(a picture that this model cannot be shown)"

_MAX_SEGMENTS = 1_000  # of a JPEG, before the one that says its size
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}

Size: TypeAlias = tuple[int, int]


class UnfitPicture(ValueError):
    """Raised when bytes are no picture that can be shown to a model; the text says why, as in “it is …”."""


def look(data: bytes) -> tuple[str, Size] | None:
    """Return media type, width and height that a picture says of itself; None for what is no picture."""
    for media_type, size_of in _FORMATS.items():
        if size := size_of(data):
            return media_type, size
    return None


def media_type_of(picture: bytes) -> str:
    """Return the media type that the content has; raises `UnfitPicture`."""
    if len(picture) > MAX_BYTES:
        raise UnfitPicture(f"it is larger than {MAX_BYTES:,} bytes")
    seen = look(picture)
    if seen is None:
        raise UnfitPicture("it is no PNG, JPEG, GIF or WebP picture")
    media_type, size = seen
    if not all(size):
        raise UnfitPicture("it has no pixels")
    if max(size) > MAX_SIDE:
        raise UnfitPicture(f"it is wider or higher than {MAX_SIDE:,} pixels")
    return media_type


def checked(source: Base64Source) -> Base64Source:
    """Return a picture by value with the media type that its content has; raises `UnfitPicture`."""
    if len(source.data) > (MAX_BYTES + 2) // 3 * 4:
        raise UnfitPicture(f"it is larger than {MAX_BYTES:,} bytes")
    try:
        media_type = media_type_of(b64decode(source.data, validate=True))
    except binascii.Error:
        raise UnfitPicture("it is no base64") from None
    return source if source.media_type == media_type else Base64Source(media_type=media_type, data=source.data)


def shown(block: ImageBlock) -> Base64Source | str:
    """Return a picture as a provider can be sent it, or the words that stand in its place."""
    if not isinstance(block.source, Base64Source):
        return _words("nobody has looked at what lies there")  # hosts fetch pictures before they are sent
    try:
        return checked(block.source)
    except UnfitPicture as error:
        return _words(str(error))


def _words(why: str) -> str:
    return f"{NO_IMAGE[:-1]}: {why})"


def _png(data: bytes) -> Size | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR" or len(data) < 24:
        return None
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def _gif(data: bytes) -> Size | None:
    if not data.startswith((b"GIF87a", b"GIF89a")) or len(data) < 10:
        return None
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


def _jpeg(data: bytes) -> Size | None:
    """Walk from segment to segment up to the one that describes the frame."""
    at = 2 if data.startswith(b"\xff\xd8\xff") else len(data)
    for _ in range(_MAX_SEGMENTS):
        if at + 9 > len(data) or data[at] != 0xFF:
            return None
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == 0xFF:  # a fill byte
            at += 1
        elif marker in _JPEG_FRAMES:
            return int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")
        elif marker in (0xD9, 0xDA) or length < 2:
            return None
        else:
            at += 2 + length
    return None


def _webp(data: bytes) -> Size | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:
        return None
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L" if data[20] == 0x2F:
            bits = int.from_bytes(data[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            width, height = int.from_bytes(data[26:28], "little"), int.from_bytes(data[28:30], "little")
            return width & 0x3FFF, height & 0x3FFF
    return None


_FORMATS: dict[str, Callable[[bytes], Size | None]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
