"""Files that leave: their names, their parts, and what they cost."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.exceptions import ConversationNotFound, CorruptRevision
from conversations.models import Conversation, Revision, User
from conversations.moving import Form, dump, export_all, export_one
from conversations.moving.exports import file_name
from tests.damage import grow, message
from tests.factories import ConversationFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return UserFactory()


def conversation(owner: User, turns: int = 1, **more: Any) -> Conversation:
    row = ConversationFactory(owner=owner, **more)
    for number in range(1, turns + 1):
        said = {"id": f"m-{number}", "role": "user", "blocks": [{"type": "text", "text": f"Turn {number}"}]}
        row.head = Revision.objects.create(conversation=row, number=number, parent=row.head, context=[said])
    row.save()
    return row


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Bread", "Bread"),
        ("数据 索引", "数据 索引"),
        ('a/b\\c:d*e?f"g<h>i|j', "a b c d e f g h i j"),
        ("../../etc/passwd", "etc passwd"),
        ("\u202egpj.exe\0\n", "gpj.exe"),
        ("हिन्दी", "हिन्दी"),
        ("...", "conversation"),
        (None, "conversation"),
        ("x" * 300, "x" * 80),
    ],
)
def test_a_title_becomes_the_name_of_a_file(title: str | None, name: str) -> None:
    assert file_name(title) == name


@pytest.mark.parametrize("form", [Form.MARKDOWN, Form.HTML])
def test_all_conversations_are_an_archive_of_files(user: User, form: Form) -> None:
    first, second = conversation(user, title="Same"), conversation(user, title="Same")
    conversation(UserFactory(), title="Theirs")
    export = export_all(user, form)
    with zipfile.ZipFile(io.BytesIO(b"".join(export.pieces))) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert [name.rpartition("(")[2][:8] for name in names] == [first.pk.hex[-8:], second.pk.hex[-8:]]
        assert all("Turn 1" in archive.read(name).decode() for name in names)
    assert (export.name, export.media_type) == ("conversations.zip", "application/zip")


def test_one_damaged_conversation_is_a_note_in_the_archive(user: User) -> None:
    conversation(user, title="Whole")
    conversation(user, title="Damaged")
    Revision.objects.filter(conversation__title="Damaged").update(context=[{"id": 1}])
    with zipfile.ZipFile(io.BytesIO(b"".join(export_all(user, Form.MARKDOWN).pieces))) as archive:
        whole, damaged = (archive.read(name).decode() for name in archive.namelist())
    assert "Turn 1" in whole
    assert damaged.startswith("This conversation cannot be read: ")


@pytest.mark.parametrize("form", Form)
def test_one_damaged_conversation_alone_is_an_error(user: User, form: Form) -> None:
    """R123."""
    row = conversation(user, turns=2)
    Revision.objects.filter(number=2).update(context=[{"id": 1}])
    with pytest.raises(CorruptRevision, match="revision 2"):
        list(export_one(user, row.pk, form).pieces)


def test_somebody_elses_conversation_is_as_unknown_as_none(user: User) -> None:
    with pytest.raises(ConversationNotFound):
        export_one(user, conversation(UserFactory()).pk, Form.JSON)


def test_the_cost_in_queries_is_one_for_so_many_revisions(user: User) -> None:
    row = conversation(user, turns=dump.BATCH * 2 + 1)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        file = orjson.loads(b"".join(export_one(user, row.pk, Form.JSON).pieces))
    assert len(file["conversations"][0]["revisions"]) == dump.BATCH * 2 + 1
    assert len(queries) <= 8


def test_a_turn_that_is_saved_meanwhile_is_left_out(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    row = conversation(user, turns=2)
    row.version, tip, sealed = 2, row.head, dump.seal

    def seal(mark: bytes) -> str:
        if row.head == tip and tip is not None:
            grow(row, tip, message("later"), model_state={"since": 2, "size": 1, "change": {}, "digest": "x"})
        return sealed(mark)

    monkeypatch.setattr(dump, "BATCH", 1)
    monkeypatch.setattr(dump, "seal", seal)
    file = orjson.loads(b"".join(export_one(user, row.pk, Form.JSON).pieces))
    assert row.revisions.count() == 3
    assert [each["number"] for each in file["conversations"][0]["revisions"]] == [1, 2]


def test_many_conversations_come_in_few_pieces(user: User) -> None:
    for _ in range(60):
        conversation(user)
    export = export_all(user, Form.JSON)
    pieces = list(export.pieces)
    assert len(orjson.loads(b"".join(pieces))["conversations"]) == 60
    assert len(pieces) <= 2
    assert export.name == "conversations.json"


def test_nothing_to_export_is_a_file_too(user: User) -> None:
    assert orjson.loads(b"".join(export_all(user, Form.JSON).pieces))["conversations"] == []
    assert zipfile.ZipFile(io.BytesIO(b"".join(export_all(user, Form.HTML).pieces))).namelist() == []


def test_what_is_deleted_meanwhile_is_left_out(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [conversation(user), conversation(user)]
    pieces = dump.dump(Conversation.objects.filter(owner=user).select_related("agent", "head").order_by("pk"))
    first = next(pieces)
    Conversation.objects.filter(pk=rows[1].pk).update(head=None)
    Conversation.objects.filter(pk=rows[1].pk).delete()
    file = orjson.loads(first + b"".join(pieces))
    assert [each["conversationId"] for each in file["conversations"]] == [str(rows[0].pk)]
