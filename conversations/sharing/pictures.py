"""Pictures without what a camera or a program wrote into them: place, time, names, comments, embedded films.

The pixels are not touched, so this costs no more than a copy. How a photo is to be turned stays, and how often a GIF
is played.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from PIL import Image

_TURNED = b"\xff\xe1\x00\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0%c\0\0\0\0\0\0"
_ORIENTATION = 0x112
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, b"\xff\xd9"
_PNG_HEAD = 8
_PNG_KEPT = frozenset(
    b"IHDR PLTE IDAT IEND tRNS gAMA cHRM sRGB iCCP cICP sBIT bKGD pHYs acTL fcTL fdAT".split(),
)
_WEBP_DROPPED = frozenset({b"EXIF", b"XMP "})
_WEBP_FLAGS = 0x0C  # of VP8X: there is EXIF, there is XMP
_GIF_HEAD, _GIF_EXTENSION, _GIF_FRAME, _GIF_END = 13, 0x21, 0x2C, 0x3B
# How long a frame is shown and what is transparent in it; how often all of them are.
_GIF_KEPT = re.compile(rb"\x21\xf9\x04....\x00|\x21\xff\x0b(?:NETSCAPE2\.0|ANIMEXTS1\.0)\x03\x01..\x00", re.DOTALL)


def bare_picture(data: bytes, media_type: str) -> bytes:
    """Return the same picture without metadata; `data` was read by `read_file` once, so it is whole."""
    match media_type:
        case "image/jpeg":
            return b"".join(_jpeg(data))
        case "image/png":
            return b"".join(_png(data))
        case "image/webp":
            chunks = b"".join(_webp(data))
            return b"RIFF" + (len(chunks) + 4).to_bytes(4, "little") + b"WEBP" + chunks
        case "image/gif":
            return b"".join(_gif(data))
    return data


def _jpeg(data: bytes) -> Iterator[bytes]:
    yield data[:2]
    if (turn := _turn(data)) != 1:
        yield _TURNED % turn
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != _START_OF_SCAN:
        if data[at + 1] == 0xFF:  # a byte that fills
            at += 1
            continue
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if _is_needed(data[at + 1], data[at + 4 : at + 16]):
            yield data[at:end]
        at = end
    last = data.find(_END_OF_IMAGE, at)
    yield data[at:] if last < 0 else data[at : last + 2]


def _is_needed(marker: int, beginning: bytes) -> bool:
    """Tell whether a segment says how the pixels are to be understood: not of an application, or one of three."""
    if marker == 0xFE:
        return False
    if not 0xE0 <= marker <= 0xEF:
        return True
    known = {0xE0: b"JFIF\0", 0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}.get(marker)
    return known is not None and beginning.startswith(known)


def _turn(data: bytes) -> int:
    with Image.open(io.BytesIO(data), formats=["JPEG"]) as picture:
        turn = picture.getexif().get(_ORIENTATION, 1)
    return turn if isinstance(turn, int) and 1 <= turn <= 8 else 1


def _png(data: bytes) -> Iterator[bytes]:
    yield data[:_PNG_HEAD]
    at = _PNG_HEAD
    while at + 12 <= len(data):
        kind, end = data[at + 4 : at + 8], at + 12 + int.from_bytes(data[at : at + 4], "big")
        if kind in _PNG_KEPT:
            yield data[at:end]
        if kind == b"IEND":
            return
        at = end


def _webp(data: bytes) -> Iterator[bytes]:
    at = 12
    whole = min(len(data), 8 + int.from_bytes(data[4:8], "little"))
    while at + 8 <= whole:
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        end = at + 8 + size + size % 2
        if kind == b"VP8X":
            yield data[at : at + 8] + bytes([data[at + 8] & ~_WEBP_FLAGS]) + data[at + 9 : end]
        elif kind not in _WEBP_DROPPED:
            yield data[at:end]
        at = end


def _gif(data: bytes) -> Iterator[bytes]:
    """Yield head and frames, and of the extensions those that say how a film runs; between them nothing counts."""
    at = _GIF_HEAD + _colors(data[10])
    yield data[:at]
    while at + 10 < len(data) and data[at] != _GIF_END:
        if data[at] == _GIF_FRAME:
            end = _after_pieces(data, at + 11 + _colors(data[at + 9]))
            yield data[at:end]
        elif data[at] == _GIF_EXTENSION:
            end = _after_pieces(data, at + 2)
            if _GIF_KEPT.fullmatch(data, at, end):
                yield data[at:end]
        else:
            end = at + 1
        at = end
    yield bytes([_GIF_END])


def _colors(flags: int) -> int:
    """Return how many bytes the table of colours has that these flags announce."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _after_pieces(data: bytes, at: int) -> int:
    """Return where the pieces end that begin here; each says its length, and the last has none."""
    while at < len(data) and data[at]:
        at += 1 + data[at]
    return at + 1
