"""Pictures by address: fetched once, when a run starts, and kept as what they were then (B76, B79).

No provider and no browser ever gets an address that a user or a model wrote.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from dataclasses import dataclass

from agent.providers.images import MAX_BYTES, UnfitPicture, media_type_of
from agent.providers.net import Fetcher, FetchFailed, FetchLimits
from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import Base64Source, ImageBlock, UrlSource
from conversations.bodies import Given, StartBody

PICTURE_LIMITS = FetchLimits(max_bytes=MAX_BYTES, timeout=15.0)
MOST_TOGETHER = 10_000_000  # bytes of all pictures of one start: they are sent with every turn that follows


def has_addresses(body: StartBody) -> bool:
    """Return whether there is anything to fetch."""
    return any(isinstance(block, ImageBlock) and isinstance(block.source, UrlSource) for block in body.input)


async def fetch_pictures(body: StartBody, fetcher: Fetcher) -> tuple[Given, ...]:
    """Return the input with what is at its addresses, all fetched at once; raises `InvalidArgument`."""
    room = _Room(MOST_TOGETHER)
    try:
        async with asyncio.TaskGroup() as group:
            blocks = [group.create_task(_fetched(block, fetcher, room)) for block in body.input]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return tuple(block.result() for block in blocks)


@dataclass(slots=True)
class _Room:
    """How many bytes the pictures of a start may still have."""

    left: int

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise InvalidArgument(f"the pictures are larger than {MOST_TOGETHER:,} bytes together")


async def _fetched(block: Given, fetcher: Fetcher, room: _Room) -> Given:
    if not isinstance(block, ImageBlock) or not isinstance(block.source, UrlSource):
        return block
    try:
        fetched = await fetcher.fetch(block.source.url, accept="image/png, image/jpeg, image/webp, image/gif")
    except FetchFailed as error:
        raise InvalidArgument(f"the picture could not be fetched: {error}") from None
    room.take(len(fetched.body))
    try:
        media_type = media_type_of(fetched.body)
    except UnfitPicture as error:
        raise InvalidArgument(f"what is at the address cannot be shown to a model: {error}") from None
    return ImageBlock(source=Base64Source(media_type=media_type, data=b64encode(fetched.body).decode()))
