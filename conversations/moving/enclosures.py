"""Attachments of conversations on their way in: judged like any upload, and mentioned under the ids that they get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from agent.providers.images import look
from agent.runtime.messages import AgentMessage, Block, TextBlock
from conversations.attachments import (
    ReadFile,
    digest_of,
    files_in,
    keep,
    named,
    picture_of,
    pictures_in,
    read_file,
    renamed,
)
from conversations.attachments.storage import write
from conversations.exceptions import ImportInvalid, UnfitAttachment
from conversations.models import Attachment, Conversation, User

MOST_PIXELS = 2_000_000_000  # of all pictures of an import: 250 of a whole large screen
MOST_PAGES = 10_000  # of all its PDFs
LEAST_PAGES = 10  # that a PDF counts for, since a process is started for it
PAGE = 4_000  # characters; more of them count for more pages


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file in a file: `id` is what its messages call it, `data` None what was missing when it was exported."""

    id: UUID
    name: str
    data: bytes | None
    place: str


class Enclosures:
    """The attachments of one import that its messages mention.

    What was read once is not read again, for a PDF takes seconds, and all of them together are bounded.
    """

    def __init__(self, user: User) -> None:
        self._user = user
        self._known: dict[str, ReadFile] = {}
        self._pixels = MOST_PIXELS
        self._pages = MOST_PAGES

    def check(self, enclosures: Iterable[Enclosure], messages: Iterable[AgentMessage]) -> None:
        """Raise `ImportInvalid` for a file that nobody could upload, or that these messages show and is no picture."""
        messages = tuple(messages)
        pictures = pictures_in(messages)
        for each in _mentioned(enclosures, messages):
            file = self._read(each)
            if file is not None and each.id in pictures and not file.media_type.startswith("image/"):
                raise ImportInvalid(each.place, "it is no picture, and a message shows it as one")

    def write(self, enclosures: Iterable[Enclosure], messages: Iterable[AgentMessage]) -> None:
        """Put the contents into the storage, before the transaction that makes attachments of them."""
        for each in _mentioned(enclosures, messages):
            if (file := self._read(each)) is not None:
                write(file.digest, file.data)

    def keep(
        self, enclosures: Sequence[Enclosure], messages: Sequence[AgentMessage], conversation: Conversation | None
    ) -> Mapping[UUID, UUID | str]:
        """Make attachments of what these messages mention, but for those that the conversation has; in a transaction.

        Returns the new ids, or the name of a picture that is not in the file.
        """
        ids = dict(self.there(enclosures, messages, conversation))
        made: dict[tuple[str, str], UUID] = {}
        for each in _mentioned(enclosures, messages):
            if each.id in ids or (file := self._read(each)) is None:
                continue
            sent = file.digest, file.name  # the same file twice is one, so that a newer file finds it again
            if sent not in made:
                made[sent] = keep(self._user, file, bounded=False).pk
            ids[each.id] = made[sent]
        return ids

    def there(
        self, enclosures: Sequence[Enclosure], messages: Sequence[AgentMessage], conversation: Conversation | None
    ) -> Mapping[UUID, UUID | str]:
        """Return what `keep` would, of those that the conversation has, and of pictures that are not in the file."""
        rows = list(Attachment.objects.filter(conversations=conversation)) if conversation is not None else []
        own = {row.pk for row in rows}
        pictures = pictures_in(messages)
        names = {row.name: row for row in rows}
        there = {(row.digest, row.name): row.pk for row in rows}
        ids: dict[UUID, UUID | str] = {}
        for each in _mentioned(enclosures, messages):
            if each.id in own:
                ids[each.id] = each.id
                continue
            file = self._read(each)
            if file is None:  # lost there; not here, perhaps
                row = names.get(each.name)
                fits = row is not None and (row.is_picture or each.id not in pictures)
                ids[each.id] = row.pk if row is not None and fits else each.name
            elif found := there.get((file.digest, file.name)):
                ids[each.id] = found
        return ids

    def _read(self, enclosure: Enclosure) -> ReadFile | None:
        data = enclosure.data
        if data is None:
            return None
        sent = digest_of(data)
        if (known := self._known.get(sent)) is not None:
            return named(known if known.data else replace(known, data=data), enclosure.name)
        if (seen := look(data)) is not None:
            width, height = seen[1]
            self._pixels -= width * height
        if self._pixels < 0:
            raise ImportInvalid(enclosure.place, f"the pictures up to it have more than {MOST_PIXELS:,} pixels")
        try:
            file = read_file(data, enclosure.name)
        except UnfitAttachment as error:
            raise ImportInvalid(enclosure.place, error.message) from error
        if file.pages is not None:
            self._pages -= max(file.pages, LEAST_PAGES, len(file.text) // PAGE)
        if self._pages < 0:
            raise ImportInvalid(enclosure.place, f"the PDFs up to it have more than {MOST_PAGES:,} pages")
        self._known[sent] = replace(file, data=b"") if file.digest == sent else file  # else it was made smaller
        return file


def _mentioned(enclosures: Iterable[Enclosure], messages: Iterable[AgentMessage]) -> list[Enclosure]:
    """Return the files that these messages show or quote; nobody will ever see another."""
    messages = tuple(messages)
    wanted = pictures_in(messages) | files_in(messages)
    return [each for each in enclosures if each.id in wanted]


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
