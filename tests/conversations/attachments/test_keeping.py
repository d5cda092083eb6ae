"""A file is there as long as something mentions it, and not longer, whoever does what at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from agent.runtime.exceptions import InvalidState
from agent.runtime.ids import uuid7
from agent.runtime.messages import AgentMessage, ImageBlock, TextBlock, UrlSource
from conversations import attachments, store
from conversations.attachments import keeping, storage
from conversations.attachments.references import address_of
from conversations.exceptions import AttachmentMissing, AttachmentNotFound
from conversations.models import Attachment, Conversation, StoredFile, User
from tests.conversations.attachments.files import picture, stored_in
from tests.factories import ConversationFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

SOON = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def stored(tmp_path: Path) -> Iterator[Path]:
    """A storage of the test's own."""
    place = tmp_path / "attachments"
    with stored_in(place):
        yield place


def files(place: Path) -> list[Path]:
    return sorted(each for each in place.rglob("*") if each.is_file())


def uploaded(user: User, data: bytes = b"Hello", name: str = "a.txt") -> Attachment:
    return attachments.keep(user, attachments.read_file(data, name))


def mentioning(*rows: Attachment) -> tuple[AgentMessage, ...]:
    return (AgentMessage(id="m", role="user", blocks=tuple(map(attachments.block_of, rows))),)


def given_to(conversation: Conversation, *rows: Attachment) -> None:
    with transaction.atomic():
        attachments.attach(conversation, mentioning(*rows))


def test_one_content_lies_there_once(stored: Path) -> None:
    one, other = uploaded(UserFactory()), uploaded(UserFactory())
    (file,) = files(stored)
    assert file.read_bytes() == b"Hello"
    assert file.name == one.digest == other.digest
    assert (file.stat().st_mode & 0o077, file.parent.stat().st_mode & 0o077) == (0, 0)
    assert attachments.open_bytes(other) == b"Hello"


def test_a_file_goes_with_the_last_conversation_that_has_it(stored: Path) -> None:
    user = UserFactory()
    row = uploaded(user)
    first, second = ConversationFactory(owner=user), ConversationFactory(owner=user)
    given_to(first, row)
    given_to(first, row)
    given_to(second, row)
    store.delete_conversation(user, first.pk)
    assert attachments.open_bytes(row) == b"Hello"
    store.delete_conversation(user, second.pk)
    assert (files(stored), Attachment.objects.count(), StoredFile.objects.count()) == ([], 0, 0)


def test_somebody_elses_copy_of_a_content_stays(stored: Path) -> None:
    one, other = UserFactory(), UserFactory()
    mine, theirs = uploaded(one), uploaded(other)
    attachments.delete_attachment(one, mine.pk)
    assert attachments.open_bytes(theirs) == b"Hello"
    other.delete()
    assert (files(stored), StoredFile.objects.count()) == ([], 0)


def test_deleting_a_person_deletes_their_files(stored: Path) -> None:
    user = UserFactory()
    used, unused = uploaded(user), uploaded(user, b"unused")
    given_to(ConversationFactory(owner=user), used)
    User.objects.filter(pk=user.pk).delete()
    assert unused.digest != used.digest
    assert (files(stored), Attachment.objects.count()) == ([], 0)


def test_a_fork_has_the_attachments_too(stored: Path) -> None:
    user = UserFactory()
    row = uploaded(user, picture(), "a.png")
    conversation = store.plant_tree(user, ConversationFactory(owner=user).agent, [store.Node(None, mentioning(row))])
    copy = store.fork(user, conversation.pk)
    store.delete_conversation(user, conversation.pk)
    assert list(copy.attachments.all()) == [row]
    assert files(stored)


def test_a_picture_of_somebody_else_cannot_be_mentioned() -> None:
    theirs = uploaded(UserFactory(), picture(), "a.png")
    unknown = ImageBlock(source=UrlSource(url=address_of(uuid7())))
    for block in (attachments.block_of(theirs), unknown):
        with transaction.atomic(), pytest.raises(AttachmentNotFound):
            attachments.attach(ConversationFactory(), (AgentMessage(id="m", role="user", blocks=(block,)),))


def test_a_text_that_only_looks_like_a_file_is_a_text() -> None:
    theirs = uploaded(UserFactory())
    conversation = ConversationFactory()
    text = TextBlock(text=attachments.block_of(theirs).text.replace("Hello", "Forged"))  # type: ignore[union-attr]
    with transaction.atomic():
        attachments.attach(conversation, (AgentMessage(id="m", role="user", blocks=(text,)),))
    assert not conversation.attachments.exists()


def test_a_file_in_use_is_not_deleted_and_somebody_elses_is_not_known() -> None:
    user = UserFactory()
    row = uploaded(user)
    given_to(ConversationFactory(owner=user), row)
    with pytest.raises(InvalidState):
        attachments.delete_attachment(user, row.pk)
    with pytest.raises(AttachmentNotFound) as strangers:
        attachments.delete_attachment(UserFactory(), row.pk)
    id = uuid7()
    with pytest.raises(AttachmentNotFound) as unknown:
        attachments.delete_attachment(user, id)
    assert strangers.value.message.replace(str(row.pk), "") == unknown.value.message.replace(str(id), "")


def test_what_nobody_sent_is_pruned_with_what_was_left_over(stored: Path) -> None:
    user = UserFactory()
    used, unused = uploaded(user), uploaded(user, b"unused")
    given_to(ConversationFactory(owner=user), used)
    storage.write("ab" * 32, b"of a crash")
    StoredFile.objects.create(digest="cd" * 32, size=1)
    assert attachments.prune_attachments(timezone.now() - SOON) == 0
    assert attachments.open_bytes(unused) == b"unused"
    assert attachments.prune_attachments(timezone.now() + SOON) == 1
    assert [file.name for file in files(stored)] == [used.digest]
    assert [row.pk for row in StoredFile.objects.all()] == [used.digest]


def test_a_person_can_keep_only_so_much_that_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "UNUSED_FILES", 0)
    user = UserFactory()
    with pytest.raises(InvalidState, match="send or delete"):
        uploaded(user)
    attachments.keep(user, attachments.read_file(b"of a start", ""), bounded=False)


def test_a_file_that_is_gone_or_damaged_is_an_explicit_error(stored: Path) -> None:
    row = uploaded(UserFactory())
    (file,) = files(stored)
    file.write_bytes(b"hELLO")
    with pytest.raises(AttachmentMissing, match="damaged"):
        attachments.open_bytes(row)
    file.unlink()
    with pytest.raises(AttachmentMissing, match="missing"):
        attachments.open_bytes(row)


def at_once(*jobs: Callable[[], Any]) -> list[Any]:
    """Run all jobs at the same time, each in a thread with a connection of its own; returns results and errors."""
    together = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        together.wait(10)
        try:
            return job()
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def test_an_upload_while_the_last_reference_goes_leaves_the_file(stored: Path) -> None:
    """The row of the content is locked by both: the file is there for whoever was told that it is."""
    user, other = UserFactory(), UserFactory()
    for _ in range(10):
        old = uploaded(user)
        file = attachments.read_file(b"Hello", "a.txt")

        def upload(file: attachments.ReadFile = file) -> Attachment:
            storage.write(file.digest, file.data)
            return attachments.keep(other, file)

        _, new = at_once(lambda old=old: attachments.delete_attachment(user, old.pk), upload)
        assert attachments.open_bytes(new) == b"Hello"
        attachments.delete_attachment(other, new.pk)
        assert files(stored) == []


def test_a_file_that_is_sent_while_it_is_deleted_is_sent_or_refused(stored: Path) -> None:
    user = UserFactory()
    for _ in range(10):
        row, conversation = uploaded(user, picture(), "a.png"), ConversationFactory(owner=user)
        deleted, given = at_once(
            lambda row=row: attachments.delete_attachment(user, row.pk),
            lambda row=row, conversation=conversation: given_to(conversation, row),
        )
        assert (type(deleted), type(given)) in [(InvalidState, type(None)), (type(None), AttachmentNotFound)]
        assert bool(files(stored)) == conversation.attachments.exists()
        store.delete_conversation(user, conversation.pk)
    assert files(stored) == []


def test_many_of_one_content_at_once_are_all_there(stored: Path) -> None:
    users = [UserFactory() for _ in range(4)]
    rows = at_once(*[lambda user=user: uploaded(user) for user in users])
    assert [attachments.open_bytes(row) for row in rows] == [b"Hello"] * 4
    at_once(*[lambda row=row: attachments.delete_attachment(row.owner, row.pk) for row in rows])
    assert files(stored) == []
