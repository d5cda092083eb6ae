"""A file comes in: first all of it is read and judged, and only then is anything written.

What is written is named after what it was called in the file, so the same file again changes nothing, a newer one adds
what is new, and an import that was cut off is finished by the next. Nothing that is there is ever changed or removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import IO
from uuid import UUID

from django.db import IntegrityError, transaction
from pydantic import ValidationError

from agent.runtime.messages import Value
from conversations.exceptions import ImportInvalid
from conversations.models import User
from conversations.moving.archives import UNPACKED, is_zip, unpack
from conversations.moving.chatgpt import is_chatgpt, read_chatgpt
from conversations.moving.claude import is_claude, read_claude
from conversations.moving.document import Envelope
from conversations.moving.elements import Room, elements, layout_of
from conversations.moving.faults import first_fault
from conversations.moving.incoming import Incoming
from conversations.moving.own import read_own
from conversations.moving.planting import Planted, Planter

TOGETHER = 250  # messages that are written with one transaction, unless one conversation has more


class Imported(Value):
    """What became of a file.

    `conversations` are those of the file in its order, wherever they stood before. `empty` counts those in which
    nothing was said, `model_states_dropped` the model states that do not come from this site, or not unchanged.
    """

    created: int
    updated: int
    unchanged: int
    empty: int
    conversations: tuple[UUID, ...]
    model_states_dropped: int


def import_file(user: User, file: IO[bytes], *, largest: int, agent: str | None = None) -> Imported:
    """Take in a file of conversations: our JSON, or an export of ChatGPT or Claude, each of them also in a zip archive.

    `largest` is how many bytes such a file may have; `agent` is the slug of the one that goes on with conversations
    whose own the person has not. Takes seconds, in short transactions. Raises `ImportInvalid` and `AgentNotFound`, and
    then nothing has been written.
    """
    planter = Planter(user, agent)
    with ExitStack() as opened:
        sources = list(_sources(user.pk, file, largest, opened))
        empty = dropped = 0
        for source in sources:
            for incoming in source.conversations():
                planter.check(incoming)
                empty += not incoming.worth_planting
                dropped += incoming.dropped
        planted = [
            each for source in sources for group in _groups(source.conversations()) for each in _plant(planter, group)
        ]
    how = Counter(each.how for each in planted)
    return Imported(
        created=how["created"],
        updated=how["updated"],
        unchanged=how["unchanged"],
        empty=empty,
        conversations=tuple(dict.fromkeys(each.id for each in planted)),
        model_states_dropped=dropped + planter.dropped,
    )


def _plant(planter: Planter, group: Sequence[Incoming]) -> list[Planted]:
    for incoming in group:
        planter.prepare(incoming)
    try:
        with transaction.atomic():
            return [planter.plant(incoming) for incoming in group]
    except IntegrityError:  # another import of the same file was quicker with one of them
        with transaction.atomic():
            return [planter.plant(incoming) for incoming in group]


def _groups(conversations: Iterator[Incoming]) -> Iterator[list[Incoming]]:
    group: list[Incoming] = []
    messages = 0
    for incoming in conversations:
        if not incoming.worth_planting:
            continue
        group.append(incoming)
        messages += len(incoming.said)
        if messages >= TOGETHER:
            yield group
            group, messages = [], 0
    if group:
        yield group


def _sources(owner: int, file: IO[bytes], largest: int, opened: ExitStack) -> Iterator[_Source]:
    """Yield the JSON files in a file; each keeps one descriptor until `opened` is closed."""
    room = Room()
    if not is_zip(file):
        yield _Source(owner, file, "$", opened, room)
        return
    for name, content in unpack(file, largest * UNPACKED):
        with TemporaryFile() as member:
            member.writelines(content)
            yield _Source(owner, member, f"{name}: $", opened, room)


class _Source:
    """A JSON file whose conversations can be read more than once."""

    def __init__(self, owner: int, file: IO[bytes], root: str, opened: ExitStack, room: Room) -> None:
        file.flush()
        if not file.seek(0, 2):
            raise ImportInvalid(root, "the file is empty")
        self._owner = owner
        self._data = opened.enter_context(mmap(file.fileno(), 0, access=ACCESS_READ))
        self._layout = layout_of(self._data, root, room)
        self._ours = isinstance(self._layout.envelope, Mapping) and "format" in self._layout.envelope
        if self._ours:
            try:
                Envelope.from_wire(self._layout.envelope)
            except ValidationError as error:
                raise first_fault(error, root) from error

    def conversations(self) -> Iterator[Incoming]:
        """Yield the conversations; raises `ImportInvalid`."""
        for element in elements(self._data, self._layout):
            value, place = element.value, element.place
            if self._ours:
                yield read_own(value, place)
            elif is_chatgpt(value):
                yield read_chatgpt(value, place, self._owner)
            elif is_claude(value):
                yield read_claude(value, place, self._owner)
            else:
                raise ImportInvalid(place, "this is no conversation of PAR, ChatGPT or Claude")
