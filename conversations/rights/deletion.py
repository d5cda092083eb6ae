"""What a person takes away: all conversations, or the account with everything.

docs/data.md says what goes and what stays.
"""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models, transaction
from django.utils import timezone

from agent.governance import audit
from agent.governance.audit import AuditEntry
from agent.models import AuditRecord
from agent.runtime.exceptions import InvalidState
from conversations.models import ApiToken, Conversation, User
from conversations.rights.sign_ins import end_sessions, forget_sessions
from conversations.store import delete_conversation

LAST_ADMINISTRATOR = "You are the only administrator: make somebody else one first."
_DELETED = "(deleted)"
_BATCH = 100


def delete_conversations(user: User) -> int:
    """Delete all conversations of a person, each in a transaction of its own; returns how many that were.

    Their runs are to be stopped before: a live one finds at its end that it was deleted.
    """
    count = _delete_conversations(user)
    if count:
        audit.write([AuditEntry("conversations-deleted", user_id=user.pk, payload={"count": count})])
    return count


def close_account(user: User, *, session_key: str | None = None) -> None:
    """Delete a person and everything of theirs; what else could act for them ends first.

    Conversations go one by one, so that nobody waits for long; the rest is one transaction. May be done again after it
    was interrupted: the session with `session_key` stays good to the last. Raises `InvalidState` for the only
    administrator.
    """
    check_may_close(user)
    ApiToken.objects.filter(user=user, revoked_at=None).update(revoked_at=timezone.now())
    end_sessions(user, but=session_key)
    _delete_conversations(user)
    with transaction.atomic():
        # All administrators are locked, so that the last two do not leave at the same time.
        wanted = models.Q(pk=user.pk) | models.Q(is_superuser=True, is_active=True)
        locked = User.objects.select_for_update().filter(wanted).order_by("pk")
        current = next((each for each in locked if each.pk == user.pk), None)
        if current is None:
            return  # done already
        check_may_close(current)
        _delete_conversations(current)
        _forget_names(current)
        AuditRecord.objects.filter(user_id=user.pk).exclude(payload=None).update(payload=None)
        forget_sessions(user.pk)
        audit.write([AuditEntry("account-closed", user_id=user.pk)])
        current.delete()


def check_may_close(user: User) -> None:
    """Raise `InvalidState` if nobody could administer the site afterwards."""
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    if user.is_superuser and not others.exists():
        raise InvalidState(LAST_ADMINISTRATOR)


def _delete_conversations(user: User) -> int:
    count = 0
    mine = Conversation.objects.filter(owner=user).order_by().values_list("pk", flat=True)
    while pks := list(mine[:_BATCH]):
        count += sum(delete_conversation(user, pk) for pk in pks)
    return count


def _forget_names(user: User) -> None:
    """Take what the admin's history calls this person and what is theirs out of it; who did what and when stays."""
    mine: list[models.QuerySet[Any]] = [User.objects.filter(pk=user.pk)]
    mine += [model._default_manager.filter(user=user) for model in (EmailAddress, Authenticator, ApiToken)]
    for rows in mine:
        kind = ContentType.objects.get_for_model(rows.model)
        keys = [str(pk) for pk in rows.values_list("pk", flat=True)]
        entries = LogEntry.objects.filter(content_type=kind, object_id__in=keys)
        entries.update(object_repr=_DELETED, change_message="")
