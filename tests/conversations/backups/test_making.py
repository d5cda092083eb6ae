from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from conversations.backups import BackupFault, make_backup
from conversations.backups.archive import DATABASE, unpack
from conversations.backups.places import check_file
from tests.factories import ConversationFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sqlite() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("backups of a PostgreSQL are pg_dump's")


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_postgresql_has_a_way_of_its_own(command: str, tmp_path: Path) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("this is SQLite")
    with pytest.raises(CommandError, match=r"pg_dump and pg_restore.*docs/deployment\.md"):
        call_command(command, str(tmp_path / "x.tar"))


def test_a_backup_is_the_database_of_one_moment(sqlite: None, tmp_path: Path) -> None:
    ConversationFactory.create(title="saved")
    made = make_backup(tmp_path)
    assert made.path.parent == tmp_path
    assert made.size == made.path.stat().st_size
    place = tmp_path / "place"
    place.mkdir()
    manifest = unpack(made.path, place)
    assert manifest == made.manifest
    assert manifest.version == settings.VERSION
    assert set(check_file(place / DATABASE)) == set(manifest.migrations)
    assert b"saved" in (place / DATABASE).read_bytes()
    assert sorted(tmp_path.iterdir()) == sorted([made.path, place])


def test_nothing_is_written_over(sqlite: None, tmp_path: Path) -> None:
    target = tmp_path / "backup.tar"
    target.write_bytes(b"the one before")
    with pytest.raises(BackupFault, match="exists already"):
        make_backup(target)
    assert target.read_bytes() == b"the one before"


def test_a_place_that_is_not_there_is_named(sqlite: None, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("backup", str(tmp_path / "no" / "backup.tar"))
    with pytest.raises(CommandError, match="there is no backup"):
        call_command("restore", str(tmp_path / "none.tar"))
