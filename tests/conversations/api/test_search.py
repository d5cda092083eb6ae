"""Search over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from conversations.models import ApiToken, User
from tests.conversations.search.said import conversation, message, say
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada() -> User:
    return UserFactory.create()


def get(user: User, scopes: tuple[str, ...] = ("read",), **parameters: Any) -> Any:
    _, token = ApiToken.issue(user, "test", scopes=scopes)
    return Client().get("/ai/search", parameters, headers={"Authorization": f"Bearer {token}"})


def test_a_hit_names_its_message_and_marks_what_was_found(ada: User) -> None:
    row = conversation(ada, "About cats")
    revision = say(row, message("Does a cat sleep?"), message("<b>Cats</b> do.", "assistant", "the-answer"))
    answer = get(ada, q="cat")
    assert answer.status_code == 200
    found = answer.json()
    assert found["nextCursor"] is None
    newest, _, title = found["hits"]
    assert newest["conversation"]["conversationId"] == str(row.pk)
    assert newest["conversation"]["headRevisionId"] == newest["revisionId"] == str(revision.public_id)
    assert (newest["messageId"], newest["role"]) == ("the-answer", "assistant")
    assert newest["snippet"] == [
        {"text": "<b>", "match": False},
        {"text": "Cats", "match": True},
        {"text": "</b> do.", "match": False},
    ]
    assert newest["title"] == [{"text": "About ", "match": False}, {"text": "cats", "match": True}]
    assert [title[name] for name in ("revisionId", "messageId", "role", "snippet")] == [None, None, None, []]


def test_pages_follow_the_cursor(ada: User) -> None:
    row = conversation(ada)
    say(row, *(f"cat {number}" for number in range(5)))
    texts, cursor = [], {}
    while True:
        found = get(ada, q="cat", limit=2, **cursor).json()
        texts += ["".join(piece["text"] for piece in hit["snippet"]) for hit in found["hits"]]
        if found["nextCursor"] is None:
            break
        cursor = {"cursor": found["nextCursor"]}
    assert texts == [f"cat {number}" for number in range(4, -1, -1)]


@pytest.mark.parametrize(
    ("parameters", "count"),
    [
        ({"tag": "pets"}, 1),
        ({"agent": "no such"}, 0),
        ({"pinned": "true"}, 1),
        ({"archived": "false"}, 2),
        ({"since": "2020-01-01"}, 2),
        ({"since": "2020-01-01T00:00:00+02:00", "until": "2199-12-31T23:59:59Z"}, 2),
        ({"until": "1970-01-02"}, 0),
    ],
)
def test_filters_narrow(ada: User, parameters: dict[str, str], count: int) -> None:
    say(conversation(ada, tags=["pets"], pinned=True), "cat")
    say(conversation(ada), "cat")
    assert len(get(ada, q="cat", **parameters).json()["hits"]) == count


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"q": ""},
        {"q": "…"},
        {"q": "a" * 501},
        {"q": "cat", "limit": 0},
        {"q": "cat", "limit": 101},
        {"q": "cat", "cursor": "x"},
        {"q": "cat", "cursor": "9223372036854775808"},
        {"q": "cat", "cursor": "-1"},
        {"q": "cat", "since": "yesterday"},
        {"q": "cat", "pinned": "perhaps"},
        {"q": "cat", "tag": "x" * 51},
    ],
)
def test_what_cannot_be_searched_for_is_refused(ada: User, parameters: dict[str, Any]) -> None:
    answer = get(ada, **parameters)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_ARGUMENT")


def test_bytes_that_are_no_text_are_read_as_none(ada: User) -> None:
    say(conversation(ada), "a cat")
    _, token = ApiToken.issue(ada, "test", scopes=["read"])
    headers = {"Authorization": f"Bearer {token}"}
    assert len(Client().get("/ai/search?q=%ffcat%ed%a0%80", headers=headers).json()["hits"]) == 1
    assert Client().get("/ai/search?q=cat%00", headers=headers).status_code == 400


def test_a_token_needs_the_scope_and_sees_its_owners_words_only(ada: User) -> None:
    say(conversation(UserFactory.create()), "their cat")
    assert get(ada, q="cat").json() == {"hits": [], "nextCursor": None}
    assert get(ada, scopes=("write",), q="cat").status_code == 403
    assert Client().get("/ai/search?q=cat").status_code == 401
