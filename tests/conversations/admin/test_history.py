"""The pages of a conversation and of a revision: the tree, any full context, and no more of the model state."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from conversations.models import Conversation, Revision, User
from tests.damage import answer, grow, message, write_raw
from tests.factories import ConversationFactory, ExecutionFactory, UserFactory

pytestmark = pytest.mark.django_db

on_sqlite = pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL stores no text that is no JSON")

STATE = {"format": "vendor/1", "data": {"thought": "opaque-zebra"}}


@pytest.fixture
def reader(client: Client) -> Client:
    """Somebody of the staff who may view everything but model states."""
    user: User = UserFactory(is_staff=True)
    names = ("view_conversation", "view_revision", "view_execution")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(user)
    return client


@pytest.fixture
def row() -> Conversation:
    return ConversationFactory()


def page(reader: Client, row: Conversation, path: str) -> str:
    reader.post(f"/admin/conversations/conversation/{row.pk}/reason/", {"reason": "a support request"})
    answered = reader.get(f"/admin/conversations/{path}")
    assert answered.status_code == 200, path
    return answered.content.decode()


def tree(html: str) -> list[list[str]]:
    """Return the cells of the tree's rows as text."""
    body = html[html.index('<table class="par-tree">') : html.index("</table>", html.index('<table class="par-tree">'))]
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)[1:]
    cells = [re.findall(r"<t[hd].*?</t[hd]>", each, re.DOTALL) for each in rows]
    return [[" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in each] for each in cells]


def test_the_page_shows_the_tree(reader: Client, row: Conversation) -> None:
    first = grow(row, None, message("q1"))
    second = grow(row, first, message("q2"))
    grow(row, second, message("q3"), label="a <try>")
    grow(row, second, message("q4"), kind="edit")
    shown = page(reader, row, f"conversation/{row.pk}/change/")
    assert [cells[:5] for cells in tree(shown)] == [
        ["1", "turn", "", "–", ""],
        ["2", "turn", "", "1", ""],
        ["3 tip", "turn", "a &lt;try&gt;", "2", "1 of 2"],
        ["4 head", "edit", "", "2", "2 of 2"],
    ]
    assert f'href="/admin/conversations/revision/{second.pk}/change/"' in shown


def many(row: Conversation, count: int) -> None:
    rows = [Revision(conversation=row, number=n, context=[message(f"m{n}")]) for n in range(1, count + 1)]
    last: Revision | None = None
    start = Revision.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    for at, each in enumerate(rows, start + 1000):
        each.pk, each.parent = at, last
        last = each
    Revision.objects.bulk_create(rows, batch_size=500)
    Conversation.objects.filter(pk=row.pk).update(head=last, version=count)


def test_five_thousand_revisions_come_in_pages_at_the_same_cost(reader: Client, row: Conversation) -> None:
    counts = []
    for size in (3, 5000):
        row = ConversationFactory()
        many(row, size)
        page(reader, row, "conversation/")
        with CaptureQueriesContext(connection) as queries:
            shown = reader.get(f"/admin/conversations/conversation/{row.pk}/change/").content.decode()
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert tree(shown)[-1][0] == "5000 head"
    assert len(tree(shown)) == 100
    assert "4901 to 5000 of 5000" in shown
    first = reader.get(f"/admin/conversations/conversation/{row.pk}/change/?tree=1").content.decode()
    assert tree(first)[0][0] == "1"


def test_a_long_context_comes_in_pages_the_last_one_first(reader: Client, row: Conversation) -> None:
    many(row, 250)
    head = Revision.objects.get(conversation=row, number=250)
    shown = page(reader, row, f"revision/{head.pk}/change/")
    assert shown.count('class="par-message"') == 50
    assert "201 to 250 of 250" in shown
    with CaptureQueriesContext(connection) as queries:
        page(reader, row, f"revision/{head.pk}/change/?messages=1")
    assert len([each for each in queries if '"context"' in each["sql"]]) <= 2  # the path, and “As stored”
    assert page(reader, row, f"revision/{head.pk}/change/?messages=1").count('class="par-message"') == 100
    for odd in ("0", "-1", "x", "9" * 50):
        page(reader, row, f"revision/{head.pk}/change/?messages={odd}")


def test_a_model_state_is_a_format_and_a_size(reader: Client, row: Conversation) -> None:
    head = grow(row, None, message("q"), answer("a"), model_state=STATE)
    context = {"checkpoint": None, "modelState": STATE, "usage": None}
    run = ExecutionFactory(conversation=row, status="failed", model_context=context, transcript=[message("t")])
    for path in (f"revision/{head.pk}/change/", f"execution/{run.pk}/change/"):
        shown = page(reader, row, path)
        assert f"vendor/1, {len(json.dumps(STATE))} bytes" in shown, path
        assert "opaque-zebra" not in shown, path
    user = User.objects.get(is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_model_state"))
    for path in (f"revision/{head.pk}/change/", f"execution/{run.pk}/change/"):
        assert "opaque-zebra" in page(reader, row, path), path


@pytest.mark.parametrize("context", [7, [1], {"modelState": [STATE]}, {"modelState": "opaque-zebra"}])
def test_a_model_context_of_another_shape_is_not_shown_either(reader: Client, row: Conversation, context: Any) -> None:
    run = ExecutionFactory(conversation=row, status="failed", model_context=context)
    assert "opaque-zebra" not in page(reader, row, f"execution/{run.pk}/change/")


@on_sqlite
def test_damaged_rows_can_be_looked_at(reader: Client, row: Conversation) -> None:
    head = grow(row, None, message("q"))
    run = ExecutionFactory(conversation=row, status="failed")
    for column in ("context", "model_state", "model_context", "usage", "outcome"):
        write_raw(head, column, b"\xff")
    for column in ("input", "transcript", "partial", "model_context", "outcome"):
        write_raw(run, column, b"{")
    assert tree(page(reader, row, f"conversation/{row.pk}/change/"))[0][0] == "1 head"
    shown = page(reader, row, f"revision/{head.pk}/change/")
    assert "REVISION_CORRUPT): the messages of revision 1 cannot be read" in shown
    assert "the context of revision 1 cannot be read" in shown
    assert "the transcript of" in page(reader, row, f"execution/{run.pk}/change/")


def test_lists_cost_the_same_however_many_rows_they_have(reader: Client) -> None:
    counts = []
    for _ in range(2):
        for _ in range(5):
            made = ConversationFactory()
            grow(made, None, message("q"))
            ExecutionFactory(conversation=made, status="failed")
        queries = []
        for name in ("conversation", "revision", "execution"):
            with CaptureQueriesContext(connection) as captured:
                assert reader.get(f"/admin/conversations/{name}/").status_code == 200
            queries.append(len(captured))
        counts.append(queries)
    assert counts[0] == counts[1]
