"""Versions of a turn, earlier versions, and the pages around revisions, as a browser without scripts sees them."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from agent.runtime.messages import AgentMessage, ModelContext
from conversations.models import Conversation, Execution, Revision, RevisionKind, User
from conversations.store import append_revision, restore
from tests.factories import ConversationFactory, ExecutionFactory, UserFactory
from tests.pages import body

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> User:
    return UserFactory.create()


@pytest.fixture
def signed_in(client: Client, person: User) -> Client:
    client.force_login(person)
    return client


@pytest.fixture
def row(person: User) -> Conversation:
    return ConversationFactory.create(owner=person, title="Branches")


def message(text: str, role: str = "user", id: str = "") -> AgentMessage:
    return AgentMessage.from_wire(
        {"id": id or f"message-{uuid4()}", "role": role, "blocks": [{"type": "text", "text": text}]}
    )


def turn(
    row: Conversation, *texts: str, parent: Revision | None = None, kind: RevisionKind = RevisionKind.TURN, **more: Any
) -> Revision:
    """Add a turn below `parent`; texts are the person's and the agent's by turns."""
    messages = [message(text, ("user", "assistant")[at % 2]) for at, text in enumerate(texts)]
    return revision(row, messages, parent, kind, **more)


def revision(
    row: Conversation,
    messages: list[AgentMessage],
    parent: Revision | None = None,
    kind: RevisionKind = RevisionKind.TURN,
    **more: Any,
) -> Revision:
    nothing = ModelContext(model_state=None)
    below = parent.pk if parent else None
    return append_revision(row, kind, messages, nothing, parent_id=below, known=None, **more)


def transcript(page: str) -> str:
    return page[page.index('id="transcript"') : page.index('id="composer"')]


def counts(page: str) -> list[str]:
    return re.findall(r"Version (\d+ of \d+)<", transcript(page))


def test_a_turn_without_siblings_has_nothing_to_choose(signed_in: Client, row: Conversation) -> None:
    turn(row, "question", "answer")

    assert counts(body(signed_in, f"/c/{row.pk}/")) == []


def test_the_versions_of_a_turn_stand_at_its_question(signed_in: Client, row: Conversation) -> None:
    first = turn(row, "question", "answer one")
    asked = AgentMessage.from_wire(first.context[0])
    second = revision(row, [asked, message("answer two", "assistant")], kind=RevisionKind.REGENERATE)
    third = turn(row, "another question", "answer three", kind=RevisionKind.EDIT)
    Revision.objects.filter(pk=third.pk).update(label="<b>third</b>")

    page = body(signed_in, f"/c/{row.pk}/")
    assert counts(page) == ["3 of 3"]
    assert f'data-sibling="previous" value="{second.public_id}"' in page
    assert 'data-sibling="next" value="" aria-label="Next version" disabled' in page
    assert "&lt;b&gt;third&lt;/b&gt;" in page

    restore(row.owner, row.pk, second.public_id)
    page = transcript(body(signed_in, f"/c/{row.pk}/"))
    assert page.index(">question<") < page.index("Version 2 of 3") < page.index("answer two")


def test_versions_that_part_within_a_long_revision_stand_where_they_part(signed_in: Client, row: Conversation) -> None:
    """A saved whole, of which the second question was edited."""
    whole = turn(row, "q one", "a one", "q two", "a two", kind=RevisionKind.PUT, keyframe=True)
    kept = [AgentMessage.from_wire(each) for each in whole.context[:2]]
    changed = [*kept, message("q other"), message("a other", "assistant")]
    revision(row, changed, kind=RevisionKind.EDIT, keyframe=True)

    page = transcript(body(signed_in, f"/c/{row.pk}/"))
    assert page.index("a one") < page.index("q other") < page.index("Version 2 of 2") < page.index("a other")


def test_versions_that_part_with_a_revision_of_no_message_stand_at_the_next_one(
    signed_in: Client, row: Conversation
) -> None:
    first = turn(row, "q one", "a one")
    reset = revision(row, [], first, RevisionKind.RESET)
    turn(row, "q two", "a two", parent=reset)
    turn(row, "q other", "a other", parent=first)
    restore(row.owner, row.pk, reset.public_id, newest=True)

    page = transcript(body(signed_in, f"/c/{row.pk}/"))
    assert page.index(">q two<") < page.index("Version 1 of 2") < page.index("a two")


def test_choosing_costs_a_fixed_number_of_queries(
    signed_in: Client, row: Conversation, django_assert_num_queries: Any
) -> None:
    parent: Revision | None = None
    for n in range(5):
        turn(row, f"q {n}", "left", parent=parent)
        parent = turn(row, f"q {n}", "right", parent=parent)

    with django_assert_num_queries(8):  # session, person, conversation, two of its context, versions, unsaved, list
        page = body(signed_in, f"/c/{row.pk}/")
    assert counts(page) == ["2 of 2"] * 5


def test_an_earlier_version_shows_what_was_there_then(signed_in: Client, row: Conversation) -> None:
    first = turn(row, "q one", "a one")
    turn(row, "q two", "a two", parent=first)

    page = body(signed_in, f"/c/{row.pk}/?revision={first.public_id}")
    assert "An earlier version." in page
    assert "q two" not in transcript(page)
    assert "data-readonly" in page
    assert f'data-revision="{first.public_id}"' in page


def test_the_head_by_its_name_is_the_conversation(signed_in: Client, row: Conversation) -> None:
    head = turn(row, "q one", "a one")

    page = body(signed_in, f"/c/{row.pk}/?revision={head.public_id}")
    assert "An earlier version." not in page
    assert 'data-revision=""' in page


def test_after_a_restore_the_page_tells_of_what_came_after(signed_in: Client, row: Conversation) -> None:
    first = turn(row, "q one", "a one")
    turn(row, "q two", "a two", parent=first)
    restore(row.owner, row.pk, first.public_id)

    page = body(signed_in, f"/c/{row.pk}/")
    assert "is kept in the history" in page
    assert 'data-later="true"' in page


@pytest.mark.parametrize("name", ["", "x", "0" * 400, "01890a5d-ac96-774b-bcce-b302099a8057", "{foreign}"])
@pytest.mark.parametrize("address", ["?revision=", "compare/?to=", "compare/?from="])
def test_an_unknown_revision_has_the_page_of_an_unknown_address(
    signed_in: Client, row: Conversation, name: str, address: str
) -> None:
    """B77."""
    turn(row, "q", "a")
    foreign = turn(ConversationFactory.create(), "private", "words")

    assert "Nothing here" in body(signed_in, f"/c/{row.pk}/{address}{name.format(foreign=foreign.public_id)}", 404)


@pytest.mark.parametrize("page", ["history/", "compare/", "runs/00000000-0000-4000-8000-000000000000/", "?revision=x"])
def test_pages_of_somebody_elses_conversation_are_unknown(signed_in: Client, page: str) -> None:
    """B77."""
    foreign = ConversationFactory.create()
    turn(foreign, "private", "words")

    body(signed_in, f"/c/{foreign.pk}/{page}", 404)


@pytest.mark.parametrize("page", ["history/", "compare/", "runs/00000000-0000-4000-8000-000000000000/"])
def test_strangers_sign_in_first(client: Client, row: Conversation, page: str) -> None:
    assert client.get(f"/c/{row.pk}/{page}").status_code == 302


def test_the_history_lists_every_revision_with_its_way(signed_in: Client, row: Conversation) -> None:
    first = turn(row, "<i>first words</i>", "a")
    turn(row, "q two", "a", parent=first)
    turn(row, "q other", "a", parent=first, kind=RevisionKind.EDIT)

    page = body(signed_in, f"/c/{row.pk}/history/")
    assert page.index("Revision 3<") < page.index("Revision 2<") < page.index("Revision 1<")
    assert page.count("On another branch") == 1
    assert page.count(">Current<") == 1
    assert 'Edited message, follows <a href="#revision-1">1</a>' in page
    assert "Turn, a beginning" in page
    assert "&lt;i&gt;first words&lt;/i&gt;" in page


def test_a_long_history_comes_page_by_page(
    signed_in: Client, row: Conversation, django_assert_num_queries: Any
) -> None:
    parent: Revision | None = None
    for n in range(60):
        parent = turn(row, f"q {n}", "a", parent=parent)

    with django_assert_num_queries(6):  # session, person, conversation, light rows, revisions, parents
        newest = body(signed_in, f"/c/{row.pk}/history/")
    assert newest.count('class="revision"') == 50
    older = body(signed_in, f"/c/{row.pk}/history/?before=11")
    assert older.count('class="revision"') == 10
    assert "?before=11" in newest
    assert ">Older<" not in older
    for senseless in ("x", "²", "9" * 40, "-1"):
        assert body(signed_in, f"/c/{row.pk}/history/?before={senseless}").count('class="revision"') == 50


def test_a_conversation_without_revisions_has_an_empty_history(signed_in: Client, row: Conversation) -> None:
    assert "Nothing is stored" in body(signed_in, f"/c/{row.pk}/history/")


def test_two_revisions_are_compared_in_their_order(signed_in: Client, row: Conversation) -> None:
    first = turn(row, "q one", "a one")
    left = turn(row, "q left", "a left", parent=first)
    right = turn(row, "q right", "a right", parent=first)

    pages = [
        body(signed_in, f"/c/{row.pk}/compare/?from={one.public_id}&to={two.public_id}")
        for one, two in ((left, right), (right, left))
    ]
    for page in pages:
        assert "Both begin with the same 2 messages." in page
        assert page.index("q left") < page.index("q right")
        assert "q one" not in page


def run(row: Conversation, **more: Any) -> Execution:
    return ExecutionFactory.create(conversation=row, **more)


def place(client: Client, execution: Execution, seen: Revision | None) -> dict[str, Any]:
    asked = f"?seen={seen.public_id}" if seen is not None else ""
    response = client.get(f"/c/{execution.conversation_id}/runs/{execution.pk}/{asked}")
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


def test_a_run_on_the_head_follows_all_that_is_shown(signed_in: Client, row: Conversation) -> None:
    head = turn(row, "q", "a")

    assert place(signed_in, run(row, base=head), head) == {
        "onPath": True,
        "before": None,
        "revisionId": None,
        "versions": None,
    }


def test_an_edit_stands_before_the_message_that_it_takes_the_place_of(signed_in: Client, row: Conversation) -> None:
    first = turn(row, "q one", "a one")
    second = turn(row, "q two", "a two", "q three", "a three", parent=first)

    whole = place(signed_in, run(row, base=first, beside=second), second)
    assert (whole["onPath"], whole["before"]) == (True, second.context[0]["id"])
    Execution.objects.update(status="cancelled")
    within = place(signed_in, run(row, base=first, beside=second, kept=2), second)
    assert (within["onPath"], within["before"]) == (True, second.context[2]["id"])
    Execution.objects.update(status="cancelled")
    beginning = place(signed_in, run(row, beside=first), second)
    assert (beginning["onPath"], beginning["before"]) == (True, first.context[0]["id"])


def test_a_run_on_another_branch_stands_nowhere(signed_in: Client, row: Conversation) -> None:
    first = turn(row, "q one", "a one")
    left = turn(row, "q left", "a", parent=first)
    right = turn(row, "q right", "a", parent=first)

    assert place(signed_in, run(row, base=left), right)["onPath"] is False
    Execution.objects.update(status="cancelled")
    assert place(signed_in, run(row, base=first, beside=left, kept=1), right)["onPath"] is False


def test_a_stored_run_tells_the_versions_of_its_turn(signed_in: Client, row: Conversation) -> None:
    first = turn(row, "q one", "a one")
    second = turn(row, "q other", "a other")
    done = run(row, beside=first, revision=second, status="completed")

    found = place(signed_in, done, first)
    assert found["revisionId"] == str(second.public_id)
    assert found["versions"] == {
        "revisionId": str(second.public_id),
        "at": 2,
        "count": 2,
        "previous": str(first.public_id),
        "next": None,
        "label": "",
    }
