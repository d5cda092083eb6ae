"""Share links over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from django.test import Client
from django.utils import timezone

from conversations import sharing, store
from conversations.models import ApiToken, Conversation, ShareLink, User
from tests.conversations.sharing.talk import SECRET, answered, everything, go_on, said, talk
from tests.factories import ConversationFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner() -> User:
    return UserFactory()


@pytest.fixture
def conversation(owner: User) -> Conversation:
    return talk(owner, (said("One"), answered("1")), (said("Two"), answered("2")))


class Program:
    """A client with a bearer token."""

    def __init__(self, user: User, *scopes: str) -> None:
        _, token = ApiToken.issue(user, "test", scopes=scopes or ("read", "write"))
        self._client = Client()
        self._headers = {"Authorization": f"Bearer {token}"}

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data, kind = (b"", "") if body is None else (orjson.dumps(body), "application/json")
        return self._client.generic(method.upper(), f"/ai{path}", data, kind, headers={**self._headers, **headers})


@pytest.fixture
def program(owner: User) -> Program:
    return Program(owner)


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_share_is_made_and_its_link_told_once(program: Program, conversation: Conversation) -> None:
    answer = program("post", f"/conversations/{conversation.pk}/shares")

    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    made, share = answer.json(), answer.json()["share"]
    assert conversation.head is not None
    assert share["revisionId"] == str(conversation.head.public_id)
    assert (share["state"], share["upToDate"], share["expiresAt"]) == ("live", True, None)
    address = made["link"].removeprefix("http://testserver")
    assert Client().get(address).status_code == 200
    told = program("get", f"/shares/{share['shareId']}").json()
    assert told == {"share": share}
    token = address.split("/")[2]
    assert share["prefix"] == token[:6]
    for path in ("/shares", f"/conversations/{conversation.pk}/shares"):
        listed = program("get", path)
        assert listed.json() == {"shares": [share], "nextCursor": None}
        assert token not in listed.content.decode()


def test_the_same_key_makes_one_share_and_tells_the_same_link(program: Program, conversation: Conversation) -> None:
    key, path = str(uuid4()), f"/conversations/{conversation.pk}/shares"
    first = program("post", path, {}, **{"Idempotency-Key": key})
    again = program("post", path, {}, **{"Idempotency-Key": key})

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert ShareLink.objects.count() == 1
    other = {"expiresAt": "2030-01-01T00:00:00Z"}
    assert code(program("post", path, other, **{"Idempotency-Key": key})) == (400, "INVALID_ARGUMENT")


def test_a_share_is_changed_published_again_and_revoked(program: Program, conversation: Conversation) -> None:
    first, second = conversation.revisions.order_by("pk")
    until = timezone.now() + timedelta(days=2)
    body = {"revisionId": str(first.public_id), "expiresAt": until.isoformat()}
    made = program("post", f"/conversations/{conversation.pk}/shares", body).json()["share"]
    assert made["revisionId"] == str(first.public_id)
    assert not made["upToDate"]
    path = f"/shares/{made['shareId']}"

    assert program("patch", path, {}).json()["share"] == made
    assert program("patch", path, {"expiresAt": None}).json()["share"]["expiresAt"] is None
    moved = program("patch", path, {"revisionId": str(second.public_id)}).json()["share"]
    assert (moved["revisionId"], moved["upToDate"]) == (str(second.public_id), True)
    go_on(conversation, said("Three"), answered("3"))
    newest = program("post", f"{path}/republish").json()["share"]
    assert newest["upToDate"]
    assert newest["publishedAt"] > made["publishedAt"]

    assert [program("delete", path).status_code for _ in range(2)] == [204, 204]
    assert program("get", path).json()["share"]["state"] == "revoked"
    assert code(program("patch", path, {"expiresAt": None})) == (409, "INVALID_STATE")
    assert code(program("post", f"{path}/republish")) == (409, "INVALID_STATE")


def test_nothing_of_what_was_said_or_hidden_is_told_with_a_share(program: Program, owner: User) -> None:
    row = everything(owner)
    made = program("post", f"/conversations/{row.pk}/shares")
    listed = program("get", "/shares")
    for answer in (made, listed):
        assert SECRET not in answer.content.decode()
        assert owner.email not in answer.content.decode()


def test_somebody_elses_share_looks_like_none(owner: User, conversation: Conversation) -> None:
    """R125."""
    share, _ = sharing.create_share(owner, conversation.pk)
    stranger = Program(UserFactory())
    for method, end, body in (
        ("get", "", None),
        ("patch", "", {"expiresAt": None}),
        ("delete", "", None),
        ("post", "/republish", None),
    ):
        theirs, unknown = (stranger(method, f"/shares/{pk}{end}", body) for pk in (share.pk, uuid4()))
        assert code(theirs) == code(unknown) == (404, "SHARE_NOT_FOUND"), (method, end)
    for method in ("get", "post"):
        answers = [stranger(method, f"/conversations/{pk}/shares") for pk in (conversation.pk, uuid4())]
        assert {code(answer) for answer in answers} == {(404, "CONVERSATION_NOT_FOUND")}
    assert stranger("get", "/shares").json() == {"shares": [], "nextCursor": None}
    assert sharing.owned_share(owner, share.pk).state == "live"


def test_reading_and_writing_need_their_scope(owner: User, conversation: Conversation) -> None:
    share, _ = sharing.create_share(owner, conversation.pk)
    reader, writer = Program(owner, "read"), Program(owner, "write")
    shares, one = f"/conversations/{conversation.pk}/shares", f"/shares/{share.pk}"
    for method, path in (("post", shares), ("patch", one), ("delete", one), ("post", f"{one}/republish")):
        assert code(reader(method, path, {})) == (403, "FORBIDDEN"), (method, path)
    for path in (shares, one, "/shares"):
        assert code(writer("get", path)) == (403, "FORBIDDEN"), path


@pytest.mark.parametrize(
    "body",
    [
        {"expiresAt": "2001-01-01T00:00:00Z"},
        {"expiresAt": "2030-01-01T00:00:00"},
        {"expiresAt": "9999-12-31T23:59:59-14:00"},
        {"expiresAt": "0001-01-01T00:00:00+14:00"},
        {"expiresAt": "soon"},
        {"expiresAt": 1e300},
        {"revisionId": "nonsense"},
        {"revision_id": None},
        {"title": "x"},
        [],
    ],
)
def test_a_body_that_makes_no_sense_is_refused(program: Program, conversation: Conversation, body: Any) -> None:
    share, _ = sharing.create_share(conversation.owner, conversation.pk)
    assert code(program("post", f"/conversations/{conversation.pk}/shares", body)) == (400, "INVALID_ARGUMENT")
    assert code(program("patch", f"/shares/{share.pk}", body)) == (400, "INVALID_ARGUMENT")
    assert ShareLink.objects.count() == 1


def test_a_share_cannot_show_no_revision_or_another_conversations(program: Program, conversation: Conversation) -> None:
    share, _ = sharing.create_share(conversation.owner, conversation.pk)
    other = talk(conversation.owner, (said("x"), answered("y")))
    assert other.head is not None
    assert code(program("patch", f"/shares/{share.pk}", {"revisionId": None})) == (400, "INVALID_ARGUMENT")
    for pk in (other.head.public_id, uuid4()):
        body = {"revisionId": str(pk)}
        assert code(program("patch", f"/shares/{share.pk}", body)) == (404, "REVISION_NOT_FOUND")
        assert code(program("post", f"/conversations/{conversation.pk}/shares", body)) == (404, "REVISION_NOT_FOUND")


def test_an_empty_conversation_is_not_shared(program: Program, owner: User) -> None:
    empty = ConversationFactory(owner=owner)
    assert code(program("post", f"/conversations/{empty.pk}/shares")) == (409, "INVALID_STATE")


def test_lists_are_paged(program: Program, conversation: Conversation) -> None:
    made = [str(sharing.create_share(conversation.owner, conversation.pk)[0].pk) for _ in range(5)]
    seen: list[str] = []
    cursor = ""
    while True:
        page = program("get", f"/shares?limit=2{cursor}").json()
        seen += [row["shareId"] for row in page["shares"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={UUID(page['nextCursor'])}"
    assert seen == made[::-1]
    for wrong in ("limit=0", "limit=201", "cursor=x"):
        assert code(program("get", f"/shares?{wrong}")) == (400, "INVALID_ARGUMENT")


def test_shares_of_a_deleted_conversation_are_gone(program: Program, conversation: Conversation) -> None:
    share, _ = sharing.create_share(conversation.owner, conversation.pk)
    store.delete_conversation(conversation.owner, conversation.pk)
    assert code(program("get", f"/shares/{share.pk}")) == (404, "SHARE_NOT_FOUND")
    assert program("get", "/shares").json()["shares"] == []
