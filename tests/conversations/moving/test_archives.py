"""Zip archives of strangers: what is in them is judged by what really comes out (B84)."""

from __future__ import annotations

import io
import json
import struct
import time
import zipfile

import pytest

from conversations.exceptions import ImportInvalid
from conversations.models import Conversation, User
from conversations.moving import archives, elements
from tests.conversations.moving.files import chatgpt, taken, zipped
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db

GOOD = json.dumps([chatgpt({"u": (None, "user", "Hi")})]).encode()
BRACKETS = sum(GOOD.count(each) for each in (b"[", b"]", b"{", b"}"))


@pytest.fixture
def user() -> User:
    AgentProfileFactory()
    return UserFactory()


def refused(user: User, data: bytes, *, largest: int = 1024 * 1024) -> str:
    with pytest.raises(ImportInvalid) as error:
        taken(user, data, largest=largest)
    assert not Conversation.objects.exists()
    return error.value.message


def test_a_bomb_is_not_unpacked(user: User) -> None:
    """A megabyte of zeros that becomes a gigabyte."""
    begun = time.monotonic()
    bomb = zipped(conversations=b"[" + b" " * 200_000_000 + b"]")
    assert len(bomb) < 1_000_000
    assert "too large" in refused(user, bomb)
    assert time.monotonic() - begun < 20


def test_many_parts_are_counted_together(user: User) -> None:
    parts = {f"conversations-{at}": b"[" + b" " * 1_000_000 + b"]" for at in range(5)}
    assert "too large" in refused(user, zipped(**parts))


def test_only_so_many_files_are_opened(user: User) -> None:
    """Each keeps a descriptor, and those are everybody's."""
    parts = {f"{at}/conversations": b"[]" for at in range(archives.MOST_READ)}
    assert taken(user, zipped(**parts)).created == 0
    assert "more than 100 files of conversations" in refused(user, zipped(**parts, conversations=GOOD))


@pytest.mark.parametrize(("limit", "most"), [("MOST_CONVERSATIONS", 2), ("MOST_BRACKETS", 2 * BRACKETS)])
def test_what_one_file_may_hold_is_what_all_of_them_may(
    user: User, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(elements, limit, most)
    parts = {f"conversations-{at}": GOOD for at in range(3)}
    assert f"more than {most}" in refused(user, zipped(**parts))
    assert taken(user, zipped(**dict.fromkeys([*parts][:2], GOOD))).unchanged == 1


def test_a_false_size_is_not_believed(user: User) -> None:
    data = bytearray(zipped(conversations=b"[" + b" " * 10_000_000 + b"]"))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<L", 10)  # the unpacked size in the directory
    refused(user, bytes(data))


def test_a_directory_without_end_is_not_read(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_ENTRIES", 100)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for at in range(101):
            archive.writestr(str(at), b"")
        archive.writestr("conversations.json", GOOD)
    assert "more than 100 files" in refused(user, written.getvalue())


def test_an_archive_in_an_archive_is_no_file_of_conversations(user: User) -> None:
    assert "no JSON" in refused(user, zipped(conversations=zipped(conversations=GOOD)))


def test_an_archive_without_conversations_is_refused(user: User) -> None:
    assert "no conversations.json" in refused(user, zipped(other=GOOD))
    assert "no conversations.json" in refused(user, zipped())


def test_what_is_encrypted_or_packed_in_another_way_is_refused(user: User) -> None:
    data = bytearray(zipped(conversations=GOOD))
    for at in (data.index(b"PK\x03\x04") + 6, data.rindex(b"PK\x01\x02") + 8):
        data[at] |= 1
    assert "encrypted" in refused(user, bytes(data))
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("conversations.json", GOOD)
    assert "packed" in refused(user, written.getvalue())


def test_a_damaged_archive_is_refused_in_words(user: User) -> None:
    whole = zipped(conversations=GOOD)
    for data in (whole[:-10], whole[: len(whole) // 2], b"PK\x03\x04", whole.replace(b"PK\x03\x04", b"PK\x03\x05", 1)):
        assert "this archive cannot be read" in refused(user, data) or data.startswith(b"PK\x03\x05")
    middle = len(whole) // 3
    spoiled = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
    assert "cannot be read" in refused(user, spoiled)


def test_a_path_in_an_archive_leads_nowhere(user: User) -> None:
    """Nothing is written under a name that an archive chose."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("../../conversations.json", GOOD)
    assert taken(user, written.getvalue()).created == 1
