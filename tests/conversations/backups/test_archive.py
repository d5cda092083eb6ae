"""The file of a backup: whole, or refused with the reason."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.backups import archive
from conversations.backups.archive import DATABASE, MANIFEST, Described, pack, unpack
from conversations.backups.exceptions import BackupFault

DESCRIBED = Described("0.1.0", datetime(2026, 12, 1, tzinfo=UTC), ("a.0001_initial",), ("00000000",))
PICTURE = "attachments/ab/cd/abcd"
Contents = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """A backup of a database and a picture."""
    kept = tmp_path / PICTURE
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"a picture")
    (kept.parent / ".half").write_bytes(b"being written")
    (kept.parent / "link").symlink_to("/etc/hostname")
    (tmp_path / "database").write_bytes(b"a database")
    pack(tmp_path / "backup.tar", tmp_path / "database", tmp_path / "attachments", DESCRIBED)
    return tmp_path / "backup.tar"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "place"
    made.mkdir()
    return made


def contents(path: Path) -> Contents:
    with tarfile.open(path) as tar:
        return [(info, tar.extractfile(info).read()) for info in tar]  # type: ignore[union-attr]


def write(path: Path, members: Contents) -> None:
    with tarfile.open(path, "w") as tar:
        for info, data in members:
            info.size = len(data) if info.isreg() else 0
            tar.addfile(info, io.BytesIO(data))


def test_what_was_packed_is_unpacked(backup: Path, place: Path) -> None:
    manifest = unpack(backup, place)
    assert set(manifest.members) == {DATABASE, PICTURE}
    assert (place / DATABASE).read_bytes() == b"a database"
    assert (place / PICTURE).read_bytes() == b"a picture"
    assert (manifest.version, manifest.migrations, manifest.keys) == ("0.1.0", ("a.0001_initial",), ("00000000",))
    assert backup.stat().st_mode & 0o777 == 0o600


def test_a_site_without_attachments_has_a_backup(tmp_path: Path, place: Path) -> None:
    (tmp_path / "database").write_bytes(b"x")
    pack(tmp_path / "backup.tar", tmp_path / "database", tmp_path / "none", DESCRIBED)
    assert set(unpack(tmp_path / "backup.tar", place).members) == {DATABASE}


def test_nothing_is_written_over(backup: Path, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        pack(backup, tmp_path / "database", tmp_path / "none", DESCRIBED)


def test_what_is_no_attachment_is_not_left_out_in_silence(tmp_path: Path) -> None:
    strange = tmp_path / "attachments" / "a b"
    strange.parent.mkdir()
    strange.write_bytes(b"")
    (tmp_path / "database").write_bytes(b"x")
    with pytest.raises(BackupFault, match="is no attachment"):
        pack(tmp_path / "backup.tar", tmp_path / "database", tmp_path / "attachments", DESCRIBED)


def changed_byte(members: Contents) -> Contents:
    return [(info, b"A picture" if info.name == PICTURE else data) for info, data in members]


def without_a_member(members: Contents) -> Contents:
    return [(info, data) for info, data in members if info.name != PICTURE]


def without_the_manifest(members: Contents) -> Contents:
    return members[:-1]


def without_the_database(members: Contents) -> Contents:
    return members[1:]


def with_another(name: str, **values: Any) -> Callable[[Contents], Contents]:
    def change(members: Contents) -> Contents:
        info = tarfile.TarInfo(name)
        for field, value in values.items():
            setattr(info, field, value)
        return [(info, b"x"), *members]

    return change


def with_manifest(**values: Any) -> Callable[[Contents], Contents]:
    def change(members: Contents) -> Contents:
        info, data = members[-1]
        return [*members[:-1], (info, orjson.dumps(orjson.loads(data) | values))]

    return change


def manifest_of(data: bytes) -> Callable[[Contents], Contents]:
    return lambda members: [*members[:-1], (members[-1][0], data)]


LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}
WRONG: dict[str, Callable[[Contents], Contents]] = {
    "is not what its manifest says": changed_byte,
    "is not both in it and in its manifest": without_a_member,
    "the manifest or the database is missing": without_the_manifest,
    "database is missing": without_the_database,
    "'attachments/no'": with_another("attachments/no"),
    "'/etc/passwd' does not belong": with_another("/etc/passwd"),
    "'attachments/../../x' does not belong": with_another("attachments/../../x"),
    "'attachments/.x' does not belong": with_another("attachments/.x"),
    "'attachments' does not belong": with_another("attachments", type=tarfile.DIRTYPE),
    "'attachments/x' does not belong": with_another("attachments/x", **LINK),
    "'par.sqlite3' twice": with_another(DATABASE),
    "has the format 2": with_manifest(format=2),
    "has the format None": manifest_of(b"[]"),
    "cannot be read: ": manifest_of(b"{"),
    "Extra inputs": with_manifest(more=1),
    "another size": lambda members: [(info, data + b"x" * (info.name == PICTURE)) for info, data in members],
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_not_as_it_was_written_is_refused(backup: Path, place: Path, words: str) -> None:
    write(backup, WRONG[words](contents(backup)))
    with pytest.raises(BackupFault, match=words.replace("[", r"\[")):
        unpack(backup, place)


def test_a_backup_that_was_cut_off_is_refused(backup: Path, place: Path) -> None:
    data = backup.read_bytes()
    for at, length in enumerate((0, 100, 512, 700, 2000, len(data) - 10_000)):
        backup.write_bytes(data[:length])
        (place / str(at)).mkdir()
        with pytest.raises(BackupFault):
            unpack(backup, place / str(at))


def test_a_manifest_that_is_too_large_is_not_read(backup: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LARGEST_MANIFEST", 10)
    with pytest.raises(BackupFault, match="too large"):
        unpack(backup, place)


def test_a_backup_that_does_not_fit_is_refused_before_it_is_unpacked(
    backup: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive.shutil, "disk_usage", lambda place: type("Usage", (), {"free": 5}))
    with pytest.raises(BackupFault, match="19 bytes are needed"):
        unpack(backup, place)
    assert not list(place.iterdir())


@given(data=st.binary(max_size=2000))
def test_nonsense_is_no_backup(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "nonsense.tar"
    path.write_bytes(data)
    with pytest.raises(BackupFault):
        unpack(path, path.parent)


def test_the_manifest_comes_last(backup: Path) -> None:
    assert contents(backup)[-1][0].name == MANIFEST
