"""A reader's own conversation that begins with what a link shows, and has nothing else of it."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from uuid import UUID

from agent.models import AgentProfile
from agent.providers.images import look
from agent.runtime.messages import AgentMessage, Base64Source, Block, ImageBlock, TextBlock
from conversations.attachments import (
    ReadFile,
    block_of,
    digest_of,
    keep,
    open_bytes,
    picture_of,
    pictures_in,
    read_file,
    release,
)
from conversations.attachments.reading import ENDINGS
from conversations.attachments.storage import write
from conversations.exceptions import AttachmentMissing, UnfitAttachment
from conversations.models import Attachment, Conversation, ShareLink, User
from conversations.sharing.pictures import bare_picture
from conversations.sharing.redaction import PICTURE, said_messages, shared_messages
from conversations.sharing.snapshots import turns
from conversations.store import Node, load_context, plant_tree, usable_agent


@contextmanager
def copied_messages(user: User, share: ShareLink) -> Iterator[tuple[AgentMessage, ...]]:
    """Give the shared messages with pictures of the reader's own, which go at the end unless a conversation has them.

    Pictures are read and written one by one, so it is best no part of a transaction. Raises `CorruptRevision`, and
    `AttachmentMissing` for a picture that is not there any more.
    """
    said = said_messages(shared_messages(load_context(share.conversation, share.revision).messages))
    pictures = _Pictures(user, share.owner)
    try:
        yield pictures.copied(said)
    finally:
        if pictures.made:
            release(pictures.made)


def copy_share(user: User, share: ShareLink, copied: Sequence[AgentMessage]) -> Conversation:
    """Make a conversation of `copied_messages`, without tools, one revision for each turn.

    It goes on with the same agent, if the person may use it, else with their usual one. Raises `AgentNotFound` where
    there is none for them.
    """
    return plant_tree(
        user,
        agent_for(user, share),
        [Node(at - 1 if at else None, turn) for at, turn in enumerate(turns(copied))],
        title=share.title or None,
        title_by_person=share.conversation.title_by_person,
    )


def agent_for(user: User, share: ShareLink) -> AgentProfile:
    """Return the agent with which this person goes on; raises `AgentNotFound`."""
    same = AgentProfile.objects.visible_to(user).filter(pk=share.conversation.agent_id).first()
    return usable_agent(user, None) if same is None else same


class _Pictures:
    """Makes what the page of a link shows of the owner's pictures the reader's: no metadata, and no name."""

    def __init__(self, user: User, owner: User) -> None:
        self._user = user
        self._owner = owner
        self._blocks: dict[UUID, Block] = {}
        self.made: list[UUID] = []

    def copied(self, messages: Sequence[AgentMessage]) -> tuple[AgentMessage, ...]:
        theirs = Attachment.objects.filter(owner=self._owner, media_type__startswith="image/")
        for id, row in sorted(theirs.in_bulk(list(pictures_in(messages))).items()):
            file = _bare(open_bytes(row), row.media_type)
            self._blocks[id] = self._kept(replace(file, width=row.width, height=row.height))
        return tuple([each.model_copy(update={"blocks": tuple(self._own(each.blocks))}) for each in messages])

    def _own(self, blocks: Iterable[Block]) -> Iterator[Block]:
        for block in blocks:
            if (id := picture_of(block)) is not None:
                if id not in self._blocks:
                    raise AttachmentMissing(f"the attachment {str(id)!r} is not there any more")
                yield self._blocks[id]
            elif isinstance(block, ImageBlock):
                yield self._by_value(block)
            else:
                yield block

    def _by_value(self, block: ImageBlock) -> Block:
        """Return the block for a picture that the message holds itself; words for what is no picture."""
        assert isinstance(block.source, Base64Source)  # `shared_messages` lets no address pass
        try:
            data = b64decode(block.source.data)
            file = read_file(data, "") if look(data) is not None else None
        except (ValueError, UnfitAttachment):
            file = None
        if file is None:
            return TextBlock(text=PICTURE)
        bare = _bare(file.data, file.media_type)
        return self._kept(replace(bare, width=file.width, height=file.height))

    def _kept(self, file: ReadFile) -> Block:
        write(file.digest, file.data)
        row = keep(self._user, file, bounded=False)
        self.made.append(row.pk)
        return block_of(row)


def _bare(data: bytes, media_type: str) -> ReadFile:
    data = bare_picture(data, media_type)
    digest = digest_of(data)
    return ReadFile(f"picture.{ENDINGS[media_type]}", media_type, data, digest, digest)
