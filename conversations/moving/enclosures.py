"""Attachments of conversations on their way in: judged like any upload, and mentioned under the ids that they get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from agent.runtime.messages import AgentMessage, Block, TextBlock
from conversations.attachments import ReadFile, files_in, keep, picture_of, pictures_in, read_file, renamed
from conversations.attachments.storage import write
from conversations.exceptions import ImportInvalid, UnfitAttachment
from conversations.models import Attachment, Conversation, User


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file in a file: `id` is what its messages call it, `data` None what was missing when it was exported."""

    id: UUID
    name: str
    data: bytes | None
    place: str


class Enclosures:
    """The attachments of one import; what was read once is not read again, for a PDF takes seconds."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._known: dict[tuple[UUID, str], ReadFile] = {}

    def check(self, enclosures: Iterable[Enclosure], messages: Iterable[AgentMessage]) -> None:
        """Raise `ImportInvalid` for a file that nobody could upload, or that these messages show and is no picture."""
        pictures = pictures_in(messages)
        for each in enclosures:
            file = self._read(each)
            if file is not None and each.id in pictures and not file.media_type.startswith("image/"):
                raise ImportInvalid(each.place, "it is no picture, and a message shows it as one")

    def write(self, enclosures: Iterable[Enclosure]) -> None:
        """Put the contents into the storage, before the transaction that makes attachments of them."""
        for each in enclosures:
            if (file := self._read(each)) is not None:
                write(file.digest, file.data)

    def keep(
        self, enclosures: Sequence[Enclosure], messages: Sequence[AgentMessage], conversation: Conversation | None
    ) -> Mapping[UUID, UUID | str]:
        """Make attachments of what these messages mention, but for those that the conversation has; in a transaction.

        Returns the new ids, or the name of a picture that is not in the file.
        """
        wanted = pictures_in(messages) | files_in(messages)
        rows = Attachment.objects.filter(conversations=conversation) if conversation is not None else ()
        there = {(row.digest, row.name): row.pk for row in rows}
        ids: dict[UUID, UUID | str] = {}
        for each in enclosures:
            if each.id not in wanted:
                continue
            file = self._read(each)
            if file is None:
                ids[each.id] = each.name
            else:
                ids[each.id] = there.get((file.digest, file.name)) or keep(self._user, file, bounded=False).pk
        return ids

    def _read(self, enclosure: Enclosure) -> ReadFile | None:
        data = enclosure.data
        if data is None:
            return None
        known = self._known.get((enclosure.id, enclosure.place))
        if known is not None:
            return replace(known, data=data)
        try:
            file = read_file(data, enclosure.name)
        except UnfitAttachment as error:
            raise ImportInvalid(enclosure.place, error.message) from error
        if file.data == data:  # else it was made smaller
            self._known[enclosure.id, enclosure.place] = replace(file, data=b"")
        return file


def with_ids(messages: Sequence[AgentMessage], ids: Mapping[UUID, UUID | str]) -> tuple[AgentMessage, ...]:
    """Return the messages with these ids of attachments, and words in the place of a picture that is not there."""

    def block(old: Block) -> Block:
        picture = picture_of(old)
        name = ids.get(picture) if picture is not None else None
        return TextBlock(text=f"[image: {name}]") if isinstance(name, str) else old

    found = {old: new for old, new in ids.items() if isinstance(new, UUID)}
    if len(found) < len(ids):
        messages = [each.model_copy(update={"blocks": tuple(map(block, each.blocks))}) for each in messages]
    return renamed(messages, found)
