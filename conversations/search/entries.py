"""What goes into the index: what people and models said, in any branch, and titles.

Reasoning, tool calls and their results are not searched. A message that several revisions hold is there once, and once
more for each other text that it has in one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from agent.runtime.messages import AgentMessage
from conversations.models import Conversation, Revision, SearchEntry
from conversations.search.index import Findable, SearchIndex, instant
from conversations.search.postgresql import PostgresqlIndex
from conversations.search.sqlite import SqliteIndex

ROLES = ("user", "assistant")

_CONVERSATIONS_AT_ONCE = 20
_REVISIONS_AT_ONCE = 100


def search_index(database: BaseDatabaseWrapper | None = None, entries: type[Model] = SearchEntry) -> SearchIndex:
    """Return the index of a database, by default of the site's."""
    database = database or connections[DEFAULT_DB_ALIAS]
    kind = PostgresqlIndex if database.vendor == "postgresql" else SqliteIndex
    return kind(database, entries)


def index_messages(conversation: Conversation, revision: Revision, messages: Sequence[AgentMessage]) -> None:
    """Make the messages that a new revision adds findable; part of the transaction that saves it.

    Costs one statement or two, whatever was said before.
    """
    said = [each.to_wire() for each in messages if each.role in ROLES]
    search_index().add(_said(conversation, revision.pk, revision.created_at, said, instant(revision.created_at)))


def index_title(conversation: Conversation) -> None:
    """Make a conversation findable by the title that it has now; part of the transaction that gives it."""
    SearchEntry.objects.filter(conversation=conversation, message_id="").delete()
    search_index().add(_title(conversation))


def index_revisions(conversation: Conversation, revisions: Iterable[Revision]) -> None:
    """Make all messages of new revisions findable; part of the transaction that adds them."""
    _index(search_index(), conversation, ((row.pk, row.created_at, row.context) for row in revisions))


def rebuild(index: SearchIndex, conversations: type[Conversation], revisions: type[Revision]) -> Iterator[int]:
    """Make all entries anew, some conversations in a transaction; yields how many were done.

    It can run beside everything else: what is not reached yet is found as before.
    """
    last = None
    while True:
        with transaction.atomic():
            rows = conversations._default_manager.order_by("pk").select_for_update()
            batch = list((rows if last is None else rows.filter(pk__gt=last))[:_CONVERSATIONS_AT_ONCE])
            index.entries._default_manager.filter(conversation_id__in=[row.pk for row in batch]).delete()
            index.add(entry for row in batch for entry in _title(row))
            for row in batch:
                stored = revisions._default_manager.filter(conversation_id=row.pk).order_by("number")
                said = stored.values_list("pk", "created_at", "context").iterator(chunk_size=_REVISIONS_AT_ONCE)
                _index(index, row, said)
        if not batch:
            return
        last = batch[-1].pk
        yield len(batch)


def texts(message: Mapping[str, Any]) -> str:
    """Return what a message in wire form says in text blocks; damaged parts say nothing."""
    blocks = message.get("blocks")
    said = [
        block["text"]
        for block in (blocks if isinstance(blocks, list | tuple) else ())
        if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    return "\n".join(said)


def _index(index: SearchIndex, conversation: Conversation, revisions: Iterable[tuple[int, datetime, Any]]) -> None:
    following, wanted = 0, list[Findable]()
    for count, (pk, created_at, context) in enumerate(revisions, 1):
        added = _said(conversation, pk, created_at, list(_messages(context)), max(following, instant(created_at)))
        following = added[-1].instant + 1 if added else following
        wanted += added
        if count % _REVISIONS_AT_ONCE == 0:
            index.add(wanted)
            wanted = []
    index.add(wanted)


def _messages(context: object) -> Iterator[Mapping[str, Any]]:
    """Yield the messages of a stored revision that are to be found; damaged ones are not."""
    for message in context if isinstance(context, list) else ():
        if isinstance(message, Mapping) and message.get("role") in ROLES and isinstance(message.get("id"), str):
            yield message


def _said(
    conversation: Conversation,
    revision_id: int,
    created_at: datetime,
    messages: Sequence[Mapping[str, Any]],
    first: int,
) -> list[Findable]:
    return [
        Findable(
            conversation_id=conversation.pk,
            owner_id=conversation.owner_id,
            revision_id=revision_id,
            message_id=message["id"],
            role=message["role"],
            created_at=created_at,
            instant=first + nth,
            text=texts(message),
        )
        for nth, message in enumerate(messages)
    ]


def _title(conversation: Conversation) -> Iterable[Findable]:
    if conversation.title:
        yield Findable(
            conversation_id=conversation.pk,
            owner_id=conversation.owner_id,
            revision_id=None,
            message_id="",
            role="",
            created_at=conversation.created_at,
            instant=instant(conversation.created_at),
            text=conversation.title,
        )
