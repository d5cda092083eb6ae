"""Attachments in the database and their files, so that a file goes with the last reference to it, and never before.

Two locks make that exact. Whoever adds an attachment to a conversation, or removes it because none has it, locks its
row; whoever adds or removes an attachment of a content locks the content's `StoredFile`. A file is removed after the
rows have been, in a transaction of its own: if that fails, a file too many is left, which `prune_attachments` finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models, transaction
from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from agent.runtime.exceptions import InvalidState
from agent.runtime.messages import AgentMessage
from conversations.attachments import storage
from conversations.attachments.reading import ReadFile, digest_of
from conversations.attachments.references import files_in, pictures_in
from conversations.exceptions import AttachmentMissing, AttachmentNotFound
from conversations.models import Attachment, Conversation, StoredFile, User

UNUSED_FILES = 10  # of the largest size, that one person may have uploaded and not sent
BATCH = 200

Use: Any = Attachment.conversations.through


def keep(user: User, file: ReadFile, *, bounded: bool = True) -> Attachment:
    """Make an attachment of a file, one that no conversation has yet; its content is best written before.

    Part of the caller's transaction, if there is one. Raises `InvalidState` for a person with too much that is
    uploaded and not sent, unless it is not to be `bounded`.
    """
    with transaction.atomic():
        if bounded:
            _check_room(user, file.size)
        row = _locked_file(file.digest, file.size)
        if not storage.is_there(file.digest):
            storage.write(file.digest, file.data)
        return Attachment.objects.create(
            owner=user,
            file=row,
            media_type=file.media_type,
            name=file.name,
            size=file.size,
            width=file.width,
            height=file.height,
            pages=file.pages,
            text=file.text,
        )


def check_room(user: User, size: int) -> None:
    """Raise `InvalidState` if a file of this size is too much beside what the person uploaded and did not send."""
    with transaction.atomic():
        _check_room(user, size)


def _check_room(user: User, size: int) -> None:
    User.objects.select_for_update(no_key=True).get(pk=user.pk)  # two requests at once count one another
    unused = Attachment.objects.filter(owner=user, conversations=None).aggregate(models.Sum("size"))["size__sum"] or 0
    most = UNUSED_FILES * settings.PAR.max_attachment_bytes
    if unused + size > most:
        raise InvalidState(f"your files that no message has take {unused:,} bytes of {most:,}; send or delete some")


def _locked_file(digest: str, size: int) -> StoredFile:
    """Return the row of a content, which nobody removes before this transaction has ended."""
    while True:
        StoredFile.objects.bulk_create([StoredFile(digest=digest, size=size)], ignore_conflicts=True)
        if row := StoredFile.objects.select_for_update().filter(pk=digest).first():
            return row  # else it was removed while this waited for it


def owned_attachment(user: User, id: UUID) -> Attachment:
    """Return the person's attachment; raises `AttachmentNotFound`, also for somebody else's."""
    found = Attachment.objects.filter(pk=id, owner=user).first()
    if found is None:
        raise AttachmentNotFound(f"there is no attachment {str(id)!r}")
    return found


def owned_attachments(user_id: int, ids: Collection[UUID]) -> dict[UUID, Attachment]:
    """Return these attachments of a person; raises `AttachmentNotFound`, also for somebody else's."""
    found = Attachment.objects.filter(owner_id=user_id).in_bulk(list(ids))
    for id in ids:
        if id not in found:
            raise AttachmentNotFound(f"there is no attachment {str(id)!r}")
    return found


def attach(conversation: Conversation, messages: Iterable[AgentMessage]) -> None:
    """Note that a conversation has the attachments that these messages mention. Part of the caller's transaction.

    Raises `AttachmentNotFound` for a picture that its owner does not have. What only looks like a quoted file is text.
    """
    messages = tuple(messages)
    pictures, files = pictures_in(messages), files_in(messages)
    if not pictures and not files:
        return
    theirs = Attachment.objects.filter(owner_id=conversation.owner_id, pk__in=pictures | files).order_by("pk")
    found = dict(theirs.select_for_update(no_key=True).values_list("pk", "media_type"))
    for id in pictures:
        if not found.get(id, "").startswith("image/"):
            raise AttachmentNotFound(f"there is no attachment {str(id)!r} that is a picture")
    uses = [Use(attachment_id=id, conversation_id=conversation.pk) for id in found]
    Use.objects.bulk_create(uses, ignore_conflicts=True)


def delete_attachment(user: User, id: UUID) -> None:
    """Delete an attachment that no conversation has; raises `AttachmentNotFound`, `InvalidState`."""
    with transaction.atomic():
        row = Attachment.objects.select_for_update().filter(pk=id, owner=user).first()
        if row is None:
            raise AttachmentNotFound(f"there is no attachment {str(id)!r}")
        if row.conversations.exists():
            raise InvalidState("a conversation has this file; it goes with the last one that has it")
        row.delete()


def release(ids: Collection[UUID]) -> int:
    """Delete those of these attachments that no conversation has; returns how many."""
    with transaction.atomic():
        rows = Attachment.objects.filter(pk__in=ids).order_by("pk")
        there = list(rows.select_for_update().values_list("pk", flat=True))
        used = set(Use.objects.filter(attachment_id__in=there).values_list("attachment_id", flat=True))
        unused = [id for id in there if id not in used]
        Attachment.objects.filter(pk__in=unused).delete()
    return len(unused)


def remove_unused_file(digest: str) -> bool:
    """Remove a content from the storage unless an attachment has it; returns whether it was removed."""
    with transaction.atomic():
        row = _locked_file(digest, 0)
        if row.attachments.exists():
            return False
        row.delete()
        storage.remove(digest)
    return True


def prune_attachments(older_than: datetime) -> int:
    """Delete what was uploaded before that and is in no conversation, and files left over; returns how many uploads."""
    pruned = 0
    unused = Attachment.objects.filter(conversations=None, created_at__lt=older_than).order_by("pk")
    last = None
    while ids := list((unused.filter(pk__gt=last) if last else unused).values_list("pk", flat=True)[:BATCH]):
        pruned += release(ids)
        last = ids[-1]
    for digest in StoredFile.objects.filter(attachments=None).values_list("pk", flat=True):
        remove_unused_file(digest)
    for digest in storage.digests():
        if not StoredFile.objects.filter(pk=digest).exists():
            remove_unused_file(digest)
    return pruned


def open_bytes(attachment: Attachment) -> bytes:
    """Return the content of an attachment; raises `AttachmentMissing` if it is not there or is another."""
    try:
        with storage.storage().open(storage.place_of(attachment.digest)) as file:
            data: bytes = file.read()
    except OSError as error:
        raise _missing(attachment) from error
    if digest_of(data) != attachment.digest:
        raise _missing(attachment)
    return data


def _missing(attachment: Attachment) -> AttachmentMissing:
    return AttachmentMissing(f"the file {attachment.name!r} (attachment {attachment.pk}) is missing or damaged")


@receiver(pre_delete, sender=Conversation)
def _conversation_goes(instance: Conversation, **kwargs: object) -> None:
    ids = list(Use.objects.filter(conversation=instance).values_list("attachment_id", flat=True))
    if ids:
        transaction.on_commit(partial(release, ids), robust=True)


@receiver(post_delete, sender=Attachment)
def _attachment_goes(instance: Attachment, **kwargs: object) -> None:
    transaction.on_commit(partial(remove_unused_file, instance.digest), robust=True)
