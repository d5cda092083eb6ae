"""Zip archives: written while they are sent, and read only as far as a file of conversations is in them."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from conversations.exceptions import ImportInvalid

MOST_ENTRIES = 50_000
MOST_READ = 100  # files of conversations; each keeps a descriptor while it is imported
UNPACKED = 4  # times the largest file: how large what is unpacked may be

_PIECE = 1024 * 1024
_ENTRY = b"PK\x01\x02"  # before the name of each entry in a zip's directory
_CONVERSATIONS = re.compile(r"(?:[^\0]*/)?conversations(?:-\d+)?\.json")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class _Sink:
    """Where a zip file is written to, and taken from; it cannot go back, so that what is written can be sent."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def flush(self) -> None:
        """Everything is there already."""

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken


class Archive:
    """A zip archive that is made a file at a time."""

    def __init__(self) -> None:
        self._sink = _Sink()
        target: Any = self._sink
        self._zip = zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED)

    def add(self, name: str, content: bytes) -> Iterator[bytes]:
        """Add a file; yields what can be sent so far."""
        with self._zip.open(name, "w") as entry:
            for at in range(0, len(content), _PIECE):
                entry.write(content[at : at + _PIECE])
                yield self._sink.take()
        yield self._sink.take()

    def end(self) -> bytes:
        """Return the end of the archive."""
        self._zip.close()
        return self._sink.take()


def is_zip(file: IO[bytes]) -> bool:
    """Return whether a file is a zip archive, by its first bytes."""
    file.seek(0)
    return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


def unpack(file: IO[bytes], largest: int) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield name and content of each file of conversations in a zip archive, in the order of their names.

    Together they may be `largest` bytes. What an archive says of itself is not believed: what really comes out is
    counted. Raises `ImportInvalid`.
    """
    if _entries(file) > MOST_ENTRIES:
        raise ImportInvalid("zip", f"an archive of more than {MOST_ENTRIES} files")
    with _readable(), zipfile.ZipFile(file) as archive:
        found = sorted(
            (info for info in archive.infolist() if _CONVERSATIONS.fullmatch(info.filename)),
            key=lambda info: info.filename,
        )
        if not found:
            raise ImportInvalid("zip", "there is no conversations.json in this archive")
        if len(found) > MOST_READ:
            raise ImportInvalid("zip", f"more than {MOST_READ} files of conversations in one archive")
        room = [largest]
        for info in found:
            if info.flag_bits & 1 or info.compress_type not in _METHODS:
                raise ImportInvalid(info.filename, "it is encrypted, or packed in a way that is not read")
            yield info.filename, _content(archive, info, room)


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, room: list[int]) -> Iterator[bytes]:
    with _readable(), archive.open(info) as entry:
        while piece := entry.read(_PIECE):
            room[0] -= len(piece)
            if room[0] < 0:
                raise ImportInvalid(info.filename, "unpacked it is too large")
            yield piece


@contextmanager
def _readable() -> Iterator[None]:
    """Say in our words that an archive is damaged."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, OSError, ValueError) as error:
        raise ImportInvalid("zip", f"this archive cannot be read: {error}") from error


def _entries(file: IO[bytes]) -> int:
    """Return how many files there can be at most in an archive, without reading its directory into memory."""
    file.seek(0)
    count, before = 0, b""
    while piece := file.read(_PIECE):
        count += (before + piece).count(_ENTRY)
        before = piece[-len(_ENTRY) + 1 :]
    return count
