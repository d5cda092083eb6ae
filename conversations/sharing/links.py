"""Share links: made, listed, published again, revoked. Each change is one transaction and is audited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agent.governance import audit
from agent.runtime.exceptions import InvalidArgument, InvalidState
from conversations.exceptions import ShareNotFound
from conversations.models import Conversation, Revision, ShareLink, User
from conversations.sharing.redaction import shared_messages
from conversations.store import UNCHANGED, Unchanged, load_context, locked_conversation, owned_revision, title_of

LIVE_LINKS = 200  # of one person
LONGEST = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class ShareListing:
    """Some of a person's links, newest first; `older` is the cursor of the next page, None where this is the last."""

    rows: Sequence[ShareLink]
    older: UUID | None
    is_newest: bool


def create_share(
    user: User, conversation_id: UUID, *, revision_id: UUID | None = None, expires_at: datetime | None = None
) -> tuple[ShareLink, str]:
    """Publish a revision, without `revision_id` the head; returns the link and its secret part, shown this once.

    Raises `ConversationNotFound`, `RevisionNotFound`, `CorruptRevision`, `InvalidArgument` for a time that is not to
    come, and `InvalidState` where nothing was said yet or the person has too many links.
    """
    _check_expiry(expires_at)
    with transaction.atomic():
        _check_room(user)
        conversation = locked_conversation(user, conversation_id)
        revision = _wanted(conversation, revision_id)
        title = _title(conversation, revision)
        row, token = ShareLink.publish(conversation, revision, title, expires_at=expires_at)
        _note("share-created", user, row)
    return row, token


def owned_share(user: User, share_id: UUID) -> ShareLink:
    """Return the person's link; raises `ShareNotFound`, also for somebody else's."""
    found = ShareLink.objects.light().filter(pk=share_id, owner=user).first()
    if found is None:
        raise ShareNotFound(f"there is no share {str(share_id)!r}")
    return found


def uuid_of(text: str) -> UUID | None:
    """Return the id that an address or a form gives, as the cursor of a list; None for nonsense."""
    try:
        return UUID(text)
    except ValueError:
        return None


def shares_of(
    user: User, *, conversation: Conversation | None = None, before: UUID | None = None, limit: int = 50
) -> ShareListing:
    """Return up to `limit` links of a person, with `conversation` those to it, that come after the cursor `before`."""
    rows = ShareLink.objects.light().filter(owner=user).order_by("-id")
    if conversation is not None:
        rows = rows.filter(conversation=conversation)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows[: limit + 1])
    shown = found[:limit]
    return ShareListing(shown, shown[-1].pk if len(found) > limit else None, before is None)


def change_share(
    user: User,
    share_id: UUID,
    *,
    expires_at: datetime | None | Unchanged = UNCHANGED,
    revision_id: UUID | Unchanged = UNCHANGED,
) -> ShareLink:
    """Change when a link expires, None is never, and what it shows; what is not mentioned stays.

    Raises `ShareNotFound`, `InvalidState` for a link that was revoked, and as `create_share` does.
    """
    if not isinstance(expires_at, Unchanged):
        _check_expiry(expires_at)
    with transaction.atomic():
        if not isinstance(expires_at, Unchanged) and owned_share(user, share_id).state == "expired":
            _check_room(user)  # first, as everywhere: its lock comes before that of a conversation
        row = _locked_share(user, share_id)
        if not isinstance(expires_at, Unchanged):
            row.expires_at = expires_at
        if not isinstance(revision_id, Unchanged):
            _publish(user, row, revision_id)
        row.save(update_fields=["expires_at", "revision", "title", "published_at"])
    return row


def republish(user: User, share_id: UUID) -> ShareLink:
    """Let a link show all that the conversation says by now; raises as `change_share` does."""
    with transaction.atomic():
        row = _locked_share(user, share_id)
        _publish(user, row, None)
        row.save(update_fields=["revision", "title", "published_at"])
    return row


def revoke(share: ShareLink, by: User) -> bool:
    """End a link for good; returns whether this call did."""
    with transaction.atomic():
        ended = bool(ShareLink.objects.filter(pk=share.pk, revoked_at=None).update(revoked_at=timezone.now()))
        if ended:
            _note("share-revoked", by, share)
    return ended


def _publish(user: User, row: ShareLink, revision_id: UUID | None) -> None:
    revision = _wanted(row.conversation, revision_id)
    row.title = _title(row.conversation, revision)
    row.revision, row.published_at = revision, timezone.now()
    _note("share-published", user, row)


def _title(conversation: Conversation, revision: Revision) -> str:
    """Return the title of a snapshot; one that was made of a first message may be that of another branch."""
    said = shared_messages(load_context(conversation, revision).messages)
    if conversation.title_by_person:
        return conversation.title or ""
    first = next((message for message in said if message.role == "user"), None)
    return (first and title_of(first)) or ""


def _wanted(conversation: Conversation, revision_id: UUID | None) -> Revision:
    revision = conversation.head if revision_id is None else owned_revision(conversation, revision_id)
    if revision is None:
        raise InvalidState("nothing has been said yet that could be shared")
    return revision


def _check_expiry(expires_at: datetime | None) -> None:
    if expires_at is None:
        return
    if expires_at.utcoffset() is None:
        raise InvalidArgument("expiresAt: say the time zone, as in 2027-01-31T12:00:00Z")
    now = datetime.now(UTC)
    if not now < expires_at <= now + LONGEST:
        raise InvalidArgument(f"expiresAt: a time to come within {LONGEST.days} days is needed")


def _check_room(user: User) -> None:
    User.objects.select_for_update(no_key=True).get(pk=user.pk)  # two requests at once count one another
    if ShareLink.objects.live().filter(owner=user).count() >= LIVE_LINKS:
        raise InvalidState(f"you have {LIVE_LINKS} links that work; revoke one first")


def _locked_share(user: User, share_id: UUID) -> ShareLink:
    """Return the person's link with its conversation, neither of which anybody changes until the transaction ends."""
    conversation = locked_conversation(user, owned_share(user, share_id).conversation_id)
    ShareLink.objects.select_for_update(of=("self",), no_key=True).filter(pk=share_id).values_list("pk").first()
    row = owned_share(user, share_id)
    row.conversation = conversation
    if row.state == "revoked":
        raise InvalidState("the link was revoked; make another one")
    return row


def _note(event: str, user: User, share: ShareLink) -> None:
    entry = audit.AuditEntry(
        event=event, user_id=user.pk, conversation_id=str(share.conversation_id), payload={"id": str(share.pk)}
    )
    audit.write([entry])
