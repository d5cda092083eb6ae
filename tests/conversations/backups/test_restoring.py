"""A backup takes the place of what is there, or changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.conf import settings

from agent.crypto import key_name
from conversations.backups.archive import Described, pack
from conversations.backups.exceptions import BackupFault
from conversations.backups.places import check_file
from conversations.backups.restoring import Restored, put_in_place

KNOWN = ("agent.0001_initial", "conversations.0001_initial")
OURS = tuple(map(key_name, settings.PAR.secret_keys))
DESCRIBED = Described("0.1.0", datetime(2026, 12, 1, tzinfo=UTC), KNOWN, OURS)


def database(path: Path, word: str, migrations: Iterable[str] = KNOWN) -> Path:
    """A database that says a word."""
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE words (word)")
        made.execute("INSERT INTO words VALUES (?)", [word])
        made.execute("CREATE TABLE django_migrations (id INTEGER PRIMARY KEY, app, name)")
        made.executemany("INSERT INTO django_migrations (app, name) VALUES (?, ?)", [m.split(".") for m in migrations])
        made.commit()
    return path


def word(path: Path) -> str:
    with closing(sqlite3.connect(path)) as opened:
        return str(opened.execute("SELECT word FROM words").fetchone()[0])


class Place:
    """A site before and after a restore."""

    def __init__(self, root: Path) -> None:
        self.site = root / "site"
        self.site.mkdir()
        self.database, self.attachments = self.site / "par.sqlite3", self.site / "attachments"
        self.backup = root / "backup.tar"
        self.source = root / "source"

    def make(self, described: Described = DESCRIBED, migrations: Iterable[str] = KNOWN) -> None:
        (self.source / "ab").mkdir(parents=True)
        (self.source / "ab" / "file").write_text("a picture")
        pack(self.backup, database(self.source / "db", "saved", migrations), self.source, described)

    def fill(self) -> None:
        database(self.database, "there").with_name("par.sqlite3-journal").write_bytes(b"")
        self.attachments.mkdir()
        (self.attachments / "file").write_text("another picture")

    def restore(self, *, force: bool = False) -> Restored:
        return put_in_place(self.backup, self.database, self.attachments, force)

    def names(self) -> list[str]:
        return sorted(path.name.split(".before-restore-")[0] for path in self.site.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_an_empty_place_is_filled(place: Place) -> None:
    place.make()
    restored = place.restore()
    assert (restored.aside, restored.missing_keys) == ((), ())
    assert word(place.database) == "saved"
    assert (place.attachments / "ab" / "file").read_text() == "a picture"
    assert place.database.stat().st_mode & 0o777 == 0o600
    assert place.names() == ["attachments", "par.sqlite3"]


def test_empty_files_are_nothing_to_keep(place: Place) -> None:
    place.make()
    place.database.write_bytes(b"")
    place.attachments.mkdir()
    place.restore()
    assert word(place.database) == "saved"


@pytest.mark.parametrize("there", ["par.sqlite3", "attachments/file"])
def test_what_is_there_is_written_over_by_nobody(place: Place, there: str) -> None:
    place.make()
    path = place.site / there
    path.parent.mkdir(exist_ok=True)
    path.write_text("there")
    with pytest.raises(BackupFault, match="--force sets it aside"):
        place.restore()
    assert path.read_text() == "there"


def test_force_keeps_what_was_there_beside(place: Place) -> None:
    place.make()
    place.fill()
    restored = place.restore(force=True)
    assert word(place.database) == "saved"
    files, kept, *rest = restored.aside
    assert word(kept) == "there"
    assert (files / "file").read_text() == "another picture"
    assert place.names() == sorted(
        ["attachments", "attachments", "par.sqlite3", "par.sqlite3", *["par.sqlite3"] * len(rest)]
    )


def test_what_was_written_last_before_a_crash_is_kept_too(place: Place) -> None:
    place.make()
    database(place.database, "there")
    with closing(sqlite3.connect(place.database)) as opened:
        opened.execute("PRAGMA journal_mode=WAL")
        opened.execute("UPDATE words SET word = 'latest'")
        opened.commit()
        assert place.database.with_name("par.sqlite3-wal").stat().st_size
        kept = place.restore(force=True).aside[0]
    assert word(kept) == "latest"
    assert word(place.database) == "saved"


def test_the_log_of_a_database_that_is_gone_is_not_written_into_the_new_one(place: Place) -> None:
    place.make()
    log = place.database.with_name("par.sqlite3-wal")
    log.write_bytes(b"left by a crash")
    (aside,) = place.restore().aside
    assert aside.read_bytes() == b"left by a crash"
    assert not log.exists()


def test_a_damaged_database_is_set_aside_as_it_is(place: Place) -> None:
    place.make()
    place.database.write_bytes(b"nonsense" * 1000)
    (kept,) = place.restore(force=True).aside
    assert kept.read_bytes() == b"nonsense" * 1000
    assert word(place.database) == "saved"


def test_a_damaged_backup_changes_nothing(place: Place) -> None:
    place.make()
    place.fill()
    before = place.names()
    data = bytearray(place.backup.read_bytes())
    data[5_000] ^= 1
    place.backup.write_bytes(data)
    with pytest.raises(BackupFault, match="damaged"):
        place.restore(force=True)
    assert word(place.database) == "there"
    assert place.names() == before


def test_a_backup_of_a_later_release_is_refused(place: Place) -> None:
    later = (*KNOWN, "agent.9999_later")
    place.make(replace(DESCRIBED, migrations=later, version="9.0.0"), later)
    with pytest.raises(BackupFault, match=r"PAR 9\.0\.0.*agent\.9999_later"):
        place.restore()
    assert place.names() == []


def test_a_manifest_of_another_database_is_refused(place: Place) -> None:
    place.make(replace(DESCRIBED, migrations=KNOWN[:1]))
    with pytest.raises(BackupFault, match="not the one of its manifest"):
        place.restore()


def test_keys_that_are_missing_are_named(place: Place) -> None:
    place.make(replace(DESCRIBED, keys=(*OURS, "deadbeef")))
    assert place.restore().missing_keys == ("deadbeef",)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    path.write_bytes(b"nonsense" * 1000)
    with pytest.raises(BackupFault, match="cannot be read"):
        check_file(path)


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE t (a)")
    with pytest.raises(BackupFault, match="django_migrations"):
        check_file(path)
