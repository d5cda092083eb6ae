"""Pictures by address: fetched once, when a run starts, and kept as what they were then (B76, B79).

No provider and no browser ever gets an address that a user or a model wrote.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode

from agent.providers.net import Fetcher, FetchFailed, FetchLimits
from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import Base64Source, ImageBlock, TextBlock, UrlSource
from conversations.bodies import StartBody

# Providers count the base64 form, of which the strictest takes 5 MB.
PICTURE_LIMITS = FetchLimits(max_bytes=3_750_000, timeout=15.0)

_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def picture_type(data: bytes) -> str | None:
    """Return the media type of a picture by its first bytes, None for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS.items() if data.startswith(beginning)), None)


def has_addresses(body: StartBody) -> bool:
    """Return whether there is anything to fetch."""
    return any(isinstance(block, ImageBlock) and isinstance(block.source, UrlSource) for block in body.input)


async def fetch_pictures(body: StartBody, fetcher: Fetcher) -> tuple[TextBlock | ImageBlock, ...]:
    """Return the input with what is at its addresses, all fetched at once; raises `InvalidArgument`."""
    try:
        async with asyncio.TaskGroup() as group:
            blocks = [group.create_task(_fetched(block, fetcher)) for block in body.input]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return tuple(block.result() for block in blocks)


async def _fetched(block: TextBlock | ImageBlock, fetcher: Fetcher) -> TextBlock | ImageBlock:
    if not isinstance(block, ImageBlock) or not isinstance(block.source, UrlSource):
        return block
    try:
        fetched = await fetcher.fetch(block.source.url, accept="image/png, image/jpeg, image/webp, image/gif")
    except FetchFailed as error:
        raise InvalidArgument(f"the picture could not be fetched: {error}") from None
    kind = picture_type(fetched.body)
    if kind is None:
        raise InvalidArgument("what is at the address is no PNG, JPEG, GIF or WebP picture")
    return ImageBlock(source=Base64Source(media_type=kind, data=b64encode(fetched.body).decode()))
