"""The file of a backup: a tar with the database, the attachments and, last, a manifest of all of it.

What is read is believed only when every member is in the manifest, and every digest is right.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Literal

import orjson
from pydantic import ValidationError

from agent.runtime.messages import Value
from conversations.backups.exceptions import BackupFault

FORMAT = 1
DATABASE = "par.sqlite3"
ATTACHMENTS = "attachments"
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 256 * 1024 * 1024  # bytes; an entry of an attachment takes about 200

_CHUNK = 1024 * 1024
_PART = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}"
_NAME = re.compile(rf"{re.escape(DATABASE)}|{ATTACHMENTS}(/{_PART}){{1,8}}")


class Member(Value):
    """A file in a backup."""

    size: int
    sha256: str


class Manifest(Value):
    """What is in a backup, and what made it; `keys` are the names of the keys that its secrets may need."""

    format: Literal[1]
    version: str
    created_at: datetime
    migrations: tuple[str, ...]
    keys: tuple[str, ...]
    members: dict[str, Member]


@dataclass(frozen=True, slots=True)
class Described:
    """What a manifest says beside its members."""

    version: str
    created_at: datetime
    migrations: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(slots=True)
class _Hashed:
    """A file that is hashed while it is read."""

    file: IO[bytes]
    sum: hashlib._Hash

    def read(self, size: int = -1) -> bytes:
        data = self.file.read(size)
        self.sum.update(data)
        return data


def pack(target: Path, database: Path, attachments: Path, described: Described) -> Manifest:
    """Write a backup to `target`, which must not exist, and on to the disk.

    An attachment that is deleted meanwhile is left out.
    """
    members: dict[str, Member] = {}
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            members[DATABASE] = _add(tar, DATABASE, database, described.created_at)
            for path in _files(attachments):
                name = f"{ATTACHMENTS}/{path.relative_to(attachments).as_posix()}"
                if not _NAME.fullmatch(name):
                    raise BackupFault(f"{path} is no attachment: take it away from there")
                try:
                    members[name] = _add(tar, name, path, described.created_at)
                except FileNotFoundError:
                    continue  # deleted since the database was copied
            manifest = Manifest(
                format=FORMAT,
                version=described.version,
                created_at=described.created_at,
                migrations=described.migrations,
                keys=described.keys,
                members=members,
            )
            _add_bytes(tar, MANIFEST, orjson.dumps(manifest.to_wire()), described.created_at)
        file.flush()
        os.fsync(file.fileno())
    return manifest


def unpack(source: Path, place: Path) -> Manifest:
    """Write the files of a backup into the empty directory `place` and return the manifest that all of them fit.

    Raises `BackupFault` for everything that is not as `pack` writes it.
    """
    try:
        with tarfile.open(source, "r:") as tar:
            members = _members(tar)
            manifest = _manifest(tar, members)
            if unlike := set(members) ^ set(manifest.members):
                raise BackupFault(f"{source} is damaged: {min(unlike)!r} is not both in it and in its manifest")
            if unlike := {name for name, member in manifest.members.items() if members[name].size != member.size}:
                raise BackupFault(f"{source} is damaged: {min(unlike)!r} has another size than in its manifest")
            _check_room(place, manifest)
            for name, member in manifest.members.items():
                _extract(tar, members[name], place / name, member)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise BackupFault(f"{source} is no whole backup: {error}") from error
    except OSError as error:
        raise BackupFault(f"{source} cannot be read: {error}") from error
    return manifest


def _files(directory: Path) -> Iterator[Path]:
    """Yield the regular files below a directory; those that begin with a dot are being written."""
    for base, directories, files in os.walk(directory):
        directories.sort()
        for name in sorted(files):
            path = Path(base, name)
            if not name.startswith(".") and not path.is_symlink():
                yield path


def _add(tar: tarfile.TarFile, name: str, path: Path, at: datetime) -> Member:
    with path.open("rb") as file:
        info = _info(name, os.fstat(file.fileno()).st_size, at)
        read = _Hashed(file, hashlib.sha256())
        tar.addfile(info, read)
    return Member(size=info.size, sha256=read.sum.hexdigest())


def _add_bytes(tar: tarfile.TarFile, name: str, data: bytes, at: datetime) -> None:
    tar.addfile(_info(name, len(data), at), io.BytesIO(data))


def _info(name: str, size: int, at: datetime) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o600, int(at.timestamp())
    return info


def _members(tar: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    found: dict[str, tarfile.TarInfo] = {}
    for info in tar:
        if info.name in found:
            raise BackupFault(f"the backup has {info.name!r} twice")
        if info.type != tarfile.REGTYPE or not (info.name == MANIFEST or _NAME.fullmatch(info.name)):
            raise BackupFault(f"{info.name!r} does not belong into a backup")
        found[info.name] = info
    return found


def _manifest(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo]) -> Manifest:
    info = members.pop(MANIFEST, None)
    if info is None or DATABASE not in members:
        raise BackupFault("this is no backup of PAR, or not all of one: the manifest or the database is missing")
    if info.size > LARGEST_MANIFEST:
        raise BackupFault("the manifest is too large")
    file = tar.extractfile(info)
    assert file is not None
    try:
        data = orjson.loads(file.read())
        made_by = data.get("format") if isinstance(data, dict) else None
        if made_by != FORMAT:
            raise BackupFault(f"the backup has the format {made_by!r}; this release reads {FORMAT}")
        return Manifest.from_wire(data)
    except (orjson.JSONDecodeError, ValidationError) as error:
        raise BackupFault(f"the manifest cannot be read: {error}") from error


def _check_room(place: Path, manifest: Manifest) -> None:
    needed = sum(member.size for member in manifest.members.values())
    free = shutil.disk_usage(place).free
    if needed > free:
        raise BackupFault(f"{needed:,} bytes are needed in {place.parent}, {free:,} are free")


def _extract(tar: tarfile.TarFile, info: tarfile.TarInfo, target: Path, member: Member) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = tar.extractfile(info)
    assert file is not None
    read = _Hashed(file, hashlib.sha256())
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as written:
        while data := read.read(_CHUNK):
            written.write(data)
        written.flush()
        os.fsync(written.fileno())
    if read.sum.hexdigest() != member.sha256:
        raise BackupFault(f"the backup is damaged: {info.name!r} is not what its manifest says")
