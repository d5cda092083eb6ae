"""Pictures of one pixel, in base64."""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
JPEG = (
    "/9j/4AAQSkZJRgABAQEAYABgAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwgJC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4z"
    "NDL/wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAACf/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AKp//2Q=="
)
WEBP = "UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAwA0JaQAA3AA/vuUAAA="
LOSSLESS = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="
EXTENDED = b64encode(b"RIFF\x2a\0\0\0WEBPVP8X\x0a" + bytes(13) + b64decode(LOSSLESS)[12:]).decode()

TYPES = {
    PNG: "image/png",
    GIF: "image/gif",
    JPEG: "image/jpeg",
    WEBP: "image/webp",
    LOSSLESS: "image/webp",
    EXTENDED: "image/webp",
}
SVG = b64encode(b'<svg xmlns="http://www.w3.org/2000/svg"/>').decode()


def png(width: int, height: int, *, size: int = 0) -> str:
    """The header of a PNG that says so much, and so many bytes in all."""
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\x06\0\0\0"
    return b64encode(header.ljust(size, b"\0")).decode()
