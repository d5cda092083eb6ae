"""Where the contents of attachments lie: by digest, in many small directories, each written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, Storage, storages

ALIAS = "attachments"


class WholeFileStorage(FileSystemStorage):
    """A directory in which a file appears under its name with all its bytes, on the disk, or does not appear."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"file_permissions_mode": 0o600, "directory_permissions_mode": 0o700, **options})

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        return name  # the same name is the same content

    def _save(self, name: str, content: Any) -> str:
        target = Path(self.path(name))
        for directory in (*reversed(target.parents), target.parent):
            directory.mkdir(mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".", dir=target.parent)  # with mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                for chunk in content.chunks():
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
        return name


def storage() -> Storage:
    """Return the storage that the settings name."""
    return storages[ALIAS]


def place_of(digest: str) -> str:
    """Return the name under which a content lies."""
    return f"{digest[:2]}/{digest[2:4]}/{digest}"


def write(digest: str, data: bytes) -> None:
    """Put a content into the storage; the same one again changes nothing."""
    storage().save(place_of(digest), ContentFile(data))


def is_there(digest: str) -> bool:
    return storage().exists(place_of(digest))


def remove(digest: str) -> None:
    """Take a content out of the storage; none is no error."""
    storage().delete(place_of(digest))


def digests() -> Iterator[str]:
    """Yield what lies in the storage."""
    yield from _walk("", 2)


def _walk(directory: str, depth: int) -> Iterator[str]:
    try:
        directories, files = storage().listdir(directory)
    except FileNotFoundError:
        return
    if depth == 0:
        yield from (name for name in files if len(name) == 64)
        return
    for each in sorted(directories):
        yield from _walk(f"{directory}/{each}".lstrip("/"), depth - 1)
