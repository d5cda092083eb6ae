"""What comes with a message besides its text: files read and kept before a run starts, pictures shown to its model.

A conversation holds mentions of attachments only. Reading a file takes up to seconds, so it happens in threads, a few
at a time, and the database is asked separately.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID
from weakref import WeakValueDictionary

from agent.providers.images import MAX_BYTES, UnfitPicture, checked
from agent.runtime.cancellation import CancelSignal
from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import AgentMessage, Base64Source, Block, ImageBlock, TextBlock
from agent.runtime.model import Model, ModelEvent, ModelRequest
from conversations.attachments import (
    ReadFile,
    block_of,
    keep,
    open_bytes,
    owned_attachments,
    picture_of,
    pictures_in,
    read_file,
    release,
)
from conversations.attachments.storage import write
from conversations.bodies import AttachmentBlock, Given
from conversations.exceptions import AttachmentMissing, AttachmentNotFound, UnfitAttachment
from conversations.hosting.executor import DatabaseExecutor
from conversations.models import Attachment, User

if TYPE_CHECKING:
    from conversations.hosting.jobs import Jobs

READ_AT_ONCE = 2


class FileReader:
    """Reads files that people send: a few at a time, because pictures take memory, and PDFs a process; for each person
    one at a time, so that nobody holds up the others."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(READ_AT_ONCE)
        self._people: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def read(self, user_id: int, load: Callable[[], bytes], name: str = "") -> ReadFile:
        """Return what is in a file, whose content is in the storage then; `load` is called when its turn has come.

        Raises `UnfitAttachment`, and what `load` raises.
        """
        mine = self._people.get(user_id) or asyncio.Lock()
        self._people[user_id] = mine
        async with mine, self._turn:
            return await asyncio.to_thread(_read, load, name)


def _read(load: Callable[[], bytes], name: str) -> ReadFile:
    file = read_file(load(), name)
    write(file.digest, file.data)
    return file


@dataclass(slots=True)
class Enclosed:
    """The input of a start as it is stored; `made` are the attachments that were made of it."""

    blocks: tuple[TextBlock | ImageBlock, ...] = ()
    made: list[UUID] = field(default_factory=list)


def encloses(blocks: Sequence[Given]) -> bool:
    """Return whether an input is more than text."""
    return any(not isinstance(block, TextBlock) for block in blocks)


async def enclosed(blocks: Sequence[Given], user: User, reader: FileReader, executor: DatabaseExecutor) -> Enclosed:
    """Return an input that mentions attachments in the place of files and pictures.

    Raises `AttachmentNotFound`, and `InvalidArgument` for a picture that is damaged.
    """
    ids = [block.attachment_id for block in blocks if isinstance(block, AttachmentBlock)]
    known = await executor.run(owned_attachments, user.pk, ids) if ids else {}
    found = Enclosed()
    stored: list[TextBlock | ImageBlock] = []
    try:
        for block in blocks:
            match block:
                case AttachmentBlock():
                    stored.append(block_of(known[block.attachment_id]))
                case ImageBlock():
                    assert isinstance(block.source, Base64Source)
                    file = await _read_picture(user, block.source, reader)
                    row = await executor.run(keep, user, file, bounded=False)
                    found.made.append(row.pk)
                    stored.append(block_of(row))
                case TextBlock():
                    stored.append(block)
    except BaseException:
        await discard(found, executor)
        raise
    found.blocks = tuple(stored)
    return found


async def _read_picture(user: User, source: Base64Source, reader: FileReader) -> ReadFile:
    try:
        return await reader.read(user.pk, lambda: b64decode(source.data))
    except UnfitAttachment as error:
        raise InvalidArgument(f"the picture cannot be shown to a model: {error}") from None


async def discard(enclosed: Enclosed, executor: DatabaseExecutor) -> None:
    """Delete what was made for a start that did not come about."""
    if enclosed.made:
        await executor.run(release, enclosed.made)


class SeeingModel:
    """A model that is sent the pictures which its messages mention, read once in a run.

    Raises `AttachmentMissing` for one that is not there, or not this person's: no model answers without it.
    """

    def __init__(self, model: Model, user_id: int, jobs: Jobs, executor: DatabaseExecutor) -> None:
        self._model = model
        self._user_id = user_id
        self._jobs = jobs
        self._executor = executor
        self._pictures: dict[UUID, ImageBlock] = {}
        self._shown: dict[str, tuple[AgentMessage, AgentMessage]] = {}

    def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Make the call; see `agent.runtime.model.Model`. Without pictures it is the other model's alone."""
        wanted = pictures_in(request.messages)
        return self._seeing(request, signal, wanted) if wanted else self._model.stream(request, signal)

    async def _seeing(
        self, request: ModelRequest, signal: CancelSignal, wanted: set[UUID]
    ) -> AsyncGenerator[Sequence[ModelEvent], None]:
        await self._load(wanted - self._pictures.keys())
        request = replace(request, messages=tuple([self._with_pictures(each) for each in request.messages]))
        async with aclosing(self._model.stream(request, signal)) as events:
            async for batch in events:
                yield batch

    async def _load(self, ids: set[UUID]) -> None:
        if not ids:
            return
        try:
            rows = await self._executor.run(self._jobs.attachments, self._user_id, ids)
        except AttachmentNotFound as error:
            raise AttachmentMissing(f"a picture of this conversation cannot be shown: {error}") from None
        for id in sorted(ids):
            self._pictures[id] = await asyncio.to_thread(_picture, rows[id])

    def _with_pictures(self, message: AgentMessage) -> AgentMessage:
        """Return the message as a model sees it, the same object each time: adapters keep its form on it."""
        known = self._shown.get(message.id)
        if known is not None and known[0] is message:
            return known[1]
        blocks = tuple([self._shown_block(block) for block in message.blocks])
        if blocks == message.blocks:
            return message
        shown = message.model_copy(update={"blocks": blocks})
        self._shown[message.id] = message, shown
        return shown

    def _shown_block(self, block: Block) -> Block:
        id = picture_of(block)
        return block if id is None else self._pictures[id]


def _picture(attachment: Attachment) -> ImageBlock:
    if attachment.size > MAX_BYTES:
        raise AttachmentMissing(f"the picture {attachment.name!r} is too large for a model")
    data = b64encode(open_bytes(attachment)).decode()
    try:
        return ImageBlock(source=checked(Base64Source(media_type=attachment.media_type, data=data)))
    except (UnfitPicture, ValueError) as error:
        raise AttachmentMissing(f"the file {attachment.name!r} is no picture: {error}") from None
