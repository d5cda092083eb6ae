"""The index of a site that is brought up to date, and of one that goes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from conversations.models import SearchEntry, User
from conversations.search.sqlite import WORDS
from tests.conversations.search.said import conversation, found, kept, message, say
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def migrated(name: str) -> Iterator[Any]:
    """Go to a migration of the conversations, give the models of that time, and come back."""
    executor = MigrationExecutor(connection)
    before = [("conversations", name)]
    others = [key for key in executor.loader.graph.leaf_nodes() if key[0] != "conversations"]
    executor.migrate(before)
    try:
        yield executor.loader.project_state(before + others).apps
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())


def zoo(models: Any) -> tuple[Any, Any, Any]:
    """Make a conversation in which a message was given another text: who owns it, it and its first revision."""
    ada = models.get_model("conversations", "User").objects.create(username="ada", email="ada@example.org")
    endpoint = models.get_model("agent", "ModelEndpoint").objects.create(slug="e", name="e", protocol="demo")
    agent = models.get_model("agent", "AgentProfile").objects.create(slug="a", name="a", endpoint=endpoint, model="m")
    row = models.get_model("conversations", "Conversation").objects.create(owner=ada, agent=agent, title="old cats")
    first, _ = (
        models.get_model("conversations", "Revision").objects.create(
            conversation=row, number=number, keyframe=True, context=[message(text, message_id="m1").to_wire()]
        )
        for number, text in enumerate(["an old cat", "a cat and a dog"], 1)
    )
    return ada, row, first


def test_what_was_said_before_there_was_an_index_is_found() -> None:
    with migrated("0006_sign_ins") as models:
        ada, _, _ = zoo(models)
    assert found(User.objects.get(pk=ada.pk), "cat") == ["a cat and a dog", "an old cat", "[old cats]"]


def test_what_the_index_knew_is_found_and_the_texts_that_it_passed_over() -> None:
    with migrated("0010_share_links") as models:
        ada, row, first = zoo(models)
        members = {"conversation": row, "created_at": row.created_at}
        entries = models.get_model("conversations", "SearchEntry").objects
        entries.create(id=1, message_id="", role="", **members)
        entries.create(id=2, message_id="m1", role="user", revision=first, **members)
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute(f"INSERT INTO {WORDS} (rowid, owner, words) VALUES (2, '', 'cat')")
    ada = User.objects.get(pk=ada.pk)
    assert found(ada, "cat") == ["a cat and a dog", "an old cat", "[old cats]"]
    assert found(ada, "dog") == ["a cat and a dog"]
    assert kept() == 3
    SearchEntry.objects.all().delete()
    assert kept() == 0


def test_a_site_that_goes_back_keeps_the_first_text_of_a_message() -> None:
    ada = UserFactory.create()
    row = conversation(ada, "cats")
    say(row, message("a cat", message_id="m1"))
    say(row, message("a dog", message_id="m1"), keyframe=True)
    assert kept() == 3
    with migrated("0010_share_links") as models:
        entries = models.get_model("conversations", "SearchEntry").objects
        assert sorted(entries.values_list("message_id", flat=True)) == ["", "m1"]
        assert kept() == 2
        entries.filter(message_id="m1").delete()
        assert kept() == 1
    assert found(ada, "cat") == ["a cat", "[cats]"]
    assert found(ada, "dog") == ["a dog"]
