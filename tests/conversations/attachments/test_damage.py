"""`manage.py check_conversations` finds files that are missing or damaged, and says where they are shown."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent.runtime.messages import AgentMessage, TextBlock
from conversations import attachments, checking, store
from conversations.attachments import damage, storage
from conversations.models import Attachment, Conversation, User
from conversations.store.inspection import Damage
from tests.conversations.attachments.files import picture, stored_in
from tests.damage import answer, grow
from tests.factories import AgentProfileFactory, ConversationFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def stored(tmp_path: Path) -> Iterator[Path]:
    """A storage of the test's own."""
    with stored_in(tmp_path / "attachments"):
        yield tmp_path / "attachments"


def uploaded(user: User, data: bytes, name: str) -> Attachment:
    return attachments.keep(user, attachments.read_file(data, name))


def talk(owner: User, *rows: Attachment) -> Conversation:
    """A conversation with a revision of words, and one for each attachment."""
    blocks = [TextBlock(text="Hello"), *map(attachments.block_of, rows)]
    nodes = [
        store.Node(at - 1 if at else None, (AgentMessage(id=f"m{at}", role="user", blocks=(block,)),))
        for at, block in enumerate(blocks)
    ]
    return store.plant_tree(owner, AgentProfileFactory(), nodes)


@pytest.fixture
def cat() -> Attachment:
    return uploaded(UserFactory(), picture(), "cat.png")


def found() -> list[Damage]:
    return list(checking.check_all(checking.Tally()))


def test_files_that_are_there_are_no_damage(cat: Attachment) -> None:
    text = uploaded(cat.owner, b"Hello", "a.txt")
    talk(cat.owner, cat, text)
    assert found() == []


def test_a_missing_file_is_told_with_its_conversation_and_revision(cat: Attachment) -> None:
    row, place = talk(cat.owner, cat), storage.place_of(cat.digest)
    words = f"its file 'cat.png' (attachment {cat.pk}, {place}) is not in the storage"
    storage.remove(cat.digest)
    assert found() == [Damage("attachment", words, row.pk, 2)]
    out = io.StringIO()
    with pytest.raises(CommandError, match="damage in 1 places"):
        call_command("check_conversations", stdout=out)
    assert out.getvalue() == f"conversation {row.pk}, revision 2: {words}\n"


def test_the_revision_that_is_told_is_the_first_with_the_file(cat: Attachment) -> None:
    text = uploaded(cat.owner, b"Hello", "a.txt")
    talk(cat.owner, cat, text, cat, text)
    storage.remove(cat.digest)
    storage.remove(text.digest)
    assert sorted((each.revision, "a.txt" in each.message) for each in found()) == [(2, False), (3, True)]


def test_a_file_that_no_revision_mentions_is_told_without_one(cat: Attachment) -> None:
    """That of a turn which failed."""
    row = talk(cat.owner)
    row.attachments.add(cat)
    storage.remove(cat.digest)
    assert [(each.conversation_id, each.revision) for each in found()] == [(row.pk, None)]


def test_a_file_of_another_size_or_content_is_damage(cat: Attachment, stored: Path) -> None:
    talk(cat.owner, cat)
    file, whole = stored / storage.place_of(cat.digest), picture()
    file.write_bytes(whole[:-1])
    assert [each.message.partition(") ")[2] for each in found()] == [f"has {cat.size - 1} bytes instead of {cat.size}"]
    file.write_bytes(whole[:-1] + b"x")
    assert [each.message.partition(") ")[2] for each in found()] == ["is not what was stored"]
    file.unlink()
    file.mkdir()
    assert [each.message.partition(") ")[2] for each in found()] == ["cannot be read"]


def test_a_picture_that_the_conversation_does_not_have_is_damage(cat: Attachment) -> None:
    """Nothing would keep its file: the row was deleted past the site, or never was."""
    kept, lost = talk(cat.owner, cat), talk(cat.owner, cat)
    lost.attachments.clear()
    words = f"its picture (attachment {cat.pk}) is none that the conversation has"
    assert found() == [Damage("attachment", words, lost.pk, 2)]
    kept.attachments.clear()
    cat.delete()
    assert {(each.conversation_id, each.message) for each in found()} == {(kept.pk, words), (lost.pk, words)}


def test_what_only_looks_like_a_quoted_file_is_no_damage() -> None:
    stranger = uploaded(UserFactory(), b"Hello", "a.txt")
    talk(UserFactory(), stranger)
    storage.remove(stranger.digest)
    assert found() == []


def test_a_revision_that_cannot_be_read_is_told_once() -> None:
    row = ConversationFactory()
    grow(row, None, {"id": "x", "role": "user", "blocks": [{"type": "image", "source": 7}, {"type": "text"}, 8]})
    grow(row, row.head, answer("y") | {"blocks": "none"})
    assert [each.kind for each in found()] == ["context"] * 2


def test_queries_do_not_grow_with_files_and_a_content_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = damage.fault_of

    def noted(digest: str, size: int) -> str | None:
        read.append(digest)
        return real(digest, size)

    monkeypatch.setattr(damage, "fault_of", noted)
    counts = []
    for _ in range(2):
        owner = UserFactory()
        talk(owner, uploaded(owner, picture(), "a.png"), uploaded(owner, b"Hello", "b.txt"))
        read.clear()
        with CaptureQueriesContext(connection) as queries:
            assert found() == []
        counts.append(len(queries))
        assert len(read) == 2
    assert counts[0] == counts[1]


def test_a_large_file_is_read_piece_by_piece(cat: Attachment, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(cat.owner, cat)
    monkeypatch.setattr(damage, "PIECE", 7)
    assert found() == []
