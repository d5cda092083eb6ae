"""Conversations over HTTP: made, read, saved, changed, listed and deleted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.test import Client

from conversations import store
from conversations.models import ApiToken, Conversation, Execution, Revision, User
from conversations.store import Branch
from tests.conversations.store.writing import begin, texts, turn
from tests.factories import AgentProfileFactory, ConversationFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


class Api:
    """A program of one person."""

    def __init__(self, user: User, *scopes: str) -> None:
        _, self.token = ApiToken.issue(user, "test", scopes=scopes or ("read", "write"))

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        headers["Authorization"] = f"Bearer {self.token}"
        data = b"" if body is None else orjson.dumps(body)
        sent = {} if method == "get" else {"data": data, "content_type": "application/json"}
        return getattr(Client(), method)(f"/ai/conversations{path}", headers=headers, **sent)


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug="demo", is_default=True)
    return UserFactory()


@pytest.fixture
def api(user: User) -> Api:
    return Api(user)


@pytest.fixture
def talk(user: User) -> Conversation:
    return turn(user, "q1", "a1").conversation


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_conversation_is_made_with_nothing_and_with_everything(api: Api) -> None:
    """R147: 200, and a title is all that there may be."""
    made = api("post", "")
    assert (made.status_code, made.json()["conversation"]["revision"]) == (200, 0)
    assert made.json()["context"]["messages"] == []
    AgentProfileFactory(slug="other")
    context = api("get", f"/{turn(User.objects.get(), 'q', 'a').conversation_id}").json()["context"]
    context["modelContext"]["modelState"] = None
    full = api("post", "", {"title": "Plans", "agent": "other", "temporary": True, "context": context}).json()
    row = full["conversation"]
    assert (row["title"], row["agent"], row["temporary"], row["revision"]) == ("Plans", "other", True, 1)
    assert full["context"] == context
    assert code(api("post", "", {"agent": "unknown"})) == (404, "AGENT_NOT_FOUND")
    assert code(api("post", "", {"title": "x" * 257})) == (400, "INVALID_ARGUMENT")


def test_what_is_read_can_be_saved_again(api: Api, talk: Conversation) -> None:
    """R120-R122: one unit under one revision, the model state included."""
    read = api("get", f"/{talk.pk}").json()
    assert read["context"]["modelContext"]["modelState"] == {"format": "x/1", "data": "a1"}
    read["context"]["messages"].append({"id": "m-2", "role": "user", "blocks": [{"type": "text", "text": "q2"}]})
    saved = api("put", f"/{talk.pk}", {"title": "Mine", "revision": 1, "context": read["context"]})
    assert saved.json()["conversation"]["revision"] == 2
    assert saved.json()["context"] == read["context"]
    again = api("put", f"/{talk.pk}", {"title": "Mine", "revision": 1, "context": read["context"]})
    assert code(again) == (409, "CONVERSATION_CONFLICT")
    assert again.json()["error"]["currentRevision"] == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["context"]["modelContext"].pop("modelState"),
        lambda body: body["context"].pop("modelContext"),
        lambda body: body.pop("revision"),
        lambda body: body.pop("title"),
        lambda body: body.update(revision=1.0),
        lambda body: body.update(revision=-1),
        lambda body: body.update(revision=True),
        lambda body: body.update(extra=1),
        lambda body: body["context"]["messages"].append({"id": "s", "role": "system", "blocks": []}),
        lambda body: body["context"]["modelContext"].update(modelState={"format": "x/1", "data": "forged"}),
    ],
)
def test_a_save_that_is_not_whole_is_refused(api: Api, talk: Conversation, change: Any) -> None:
    """R5, R121, R194."""
    body = {"title": "t", "revision": 1, "context": api("get", f"/{talk.pk}").json()["context"]}
    change(body)
    assert code(api("put", f"/{talk.pk}", body)) == (400, "INVALID_ARGUMENT")
    assert Revision.objects.count() == 1


def test_missing_means_unchanged_and_null_means_clear(api: Api, talk: Conversation) -> None:
    changed = api("patch", f"/{talk.pk}", {"title": "T", "pinned": True, "tags": ["b", "a ", "b"]}).json()[
        "conversation"
    ]
    assert (changed["title"], changed["pinned"], changed["tags"], changed["revision"]) == ("T", True, ["b", "a"], 2)
    assert api("patch", f"/{talk.pk}", {"archived": True}).json()["conversation"]["title"] == "T"
    cleared = api("patch", f"/{talk.pk}", {"title": None, "tags": None, "pinned": None, "archived": None})
    row = cleared.json()["conversation"]
    assert (row["title"], row["tags"], row["pinned"], row["status"], row["revision"]) == (None, [], False, "active", 4)
    assert api("patch", f"/{talk.pk}", {}).json()["conversation"]["revision"] == 4
    assert code(api("patch", f"/{talk.pk}", {"pinned": True, "revision": 1})) == (409, "CONVERSATION_CONFLICT")
    for bad in ({"title": " "}, {"tags": [""]}, {"tags": ["x"] * 21}, {"pinned": 1}, {"agent": "demo"}):
        assert code(api("patch", f"/{talk.pk}", bad)) == (400, "INVALID_ARGUMENT"), bad


def test_deleting_is_idempotent_and_touches_nobody_else(api: Api, user: User, talk: Conversation) -> None:
    """R128."""
    foreign = ConversationFactory(owner=UserFactory())
    for pk in (talk.pk, talk.pk, foreign.pk, uuid4()):
        assert api("delete", f"/{pk}").status_code == 204
    assert list(Conversation.objects.all()) == [foreign]
    assert not Execution.objects.exists()


def test_lists_are_filtered_and_paged(api: Api, user: User) -> None:
    """R126."""
    rows = [ConversationFactory(owner=user, title=f"{n}", pinned=n == 0, tags=["odd"] * (n % 2)) for n in range(7)]
    store.change_conversation(user, rows[3].pk, store.Changes(title="3", archived=True))
    Conversation.objects.filter(pk=rows[0].pk).update(updated_at=datetime(1900, 1, 1, tzinfo=UTC))
    Conversation.objects.filter(pk=rows[1].pk).update(updated_at=datetime(1901, 1, 1, tzinfo=UTC))
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        page = api("get", f"?limit=2&cursor={cursor}").json()
        seen += [row["title"] for row in page["conversations"]]
        cursor = page["nextCursor"]
    assert seen == ["6", "5", "4", "3", "2", "1", "0"]

    def titles(query: str) -> list[str]:
        return [row["title"] for row in api("get", f"?{query}").json()["conversations"]]

    assert titles("tag=odd&archived=false") == ["5", "1"]
    assert (titles("pinned=true"), titles("archived=true"), titles("tag=none")) == (["0"], ["3"], [])
    assert titles("q=3") == ["3"]
    assert titles(f"agent={rows[2].agent.slug}") == ["2"]
    assert titles("since=2000-01-01T00:00:00Z&until=2001-01-01T00:00:00Z") == []
    for bad in ("cursor=nonsense", "limit=0", "limit=1001", "pinned=perhaps", "since=yesterday"):
        assert code(api("get", f"?{bad}")) == (400, "INVALID_ARGUMENT"), bad


def test_a_list_costs_the_same_queries_whatever_its_length(
    api: Api, user: User, django_assert_max_num_queries: Any
) -> None:
    for _ in range(20):
        turn(user, "q", "a")
    with django_assert_max_num_queries(3):  # token, its use, list
        assert len(api("get", "").json()["conversations"]) == 20


def test_revisions_are_a_tree_that_can_be_walked_and_compared(api: Api, user: User, talk: Conversation) -> None:
    first = turn(user, "q2", "a2", talk)
    other = turn(user, "Q2", "A2", talk, branch=Branch(Revision.objects.get(number=1).public_id))
    listed = api("get", f"/{talk.pk}/revisions?limit=2").json()
    assert [row["number"] for row in listed["revisions"]] == [3, 2]
    last = api("get", f"/{talk.pk}/revisions?limit=2&before={listed['nextBefore']}").json()
    assert ([row["number"] for row in last["revisions"]], last["nextBefore"]) == ([1], None)
    three, two, one = *listed["revisions"], *last["revisions"]
    assert (two["parentId"], three["parentId"], one["parentId"]) == (one["revisionId"], one["revisionId"], None)
    assert [row["isHead"] for row in (one, two, three)] == [False, False, True]
    assert [row["onHeadPath"] for row in (one, two, three)] == [True, False, True]
    assert (three["preview"], three["messageCount"], three["kind"]) == ("Q2", 2, "turn")
    whole = api("get", f"/{talk.pk}/revisions/{first.public_id}").json()
    assert [m["blocks"][0]["text"] for m in whole["context"]["messages"]] == ["q1", "a1", "q2", "a2"]
    assert whole["revision"] == two
    diff = api("get", f"/{talk.pk}/revisions/{other.public_id}/diff?against={first.public_id}").json()
    assert (diff["common"], diff["commonEnd"], diff["modelStateChanged"]) == (2, 0, True)
    assert [m["blocks"][0]["text"] for m in diff["removed"] + diff["added"]] == ["q2", "a2", "Q2", "A2"]


def test_a_branch_is_named_restored_and_copied(api: Api, user: User, talk: Conversation) -> None:
    first = talk.head
    assert first is not None
    turn(user, "q2", "a2", talk)
    named = api("patch", f"/{talk.pk}/revisions/{first.public_id}", {"label": "short"}).json()
    assert (named["revision"]["label"], named["conversation"]["revision"]) == ("short", 3)
    restored = api("post", f"/{talk.pk}/restore", {"revisionId": str(first.public_id), "revision": 3}).json()
    assert restored["conversation"]["headRevisionId"] == str(first.public_id)
    assert texts(talk) == ["q1", "a1"]
    copy = api("post", f"/{talk.pk}/fork", {"scope": "all", "title": "Copy"})
    assert copy.status_code == 201
    made = Conversation.objects.get(pk=copy.json()["conversation"]["conversationId"])
    assert (made.title, made.revisions.count(), texts(made)) == ("Copy", 2, ["q1", "a1"])
    reset = api("post", f"/{talk.pk}/reset-model-state", {"revision": 4}).json()
    assert reset["context"]["modelContext"]["modelState"] is None
    assert reset["conversation"]["revision"] == 5


def test_what_needs_the_head_waits_for_a_live_run(api: Api, user: User, talk: Conversation) -> None:
    begin(user, "q2", talk)
    assert talk.head is not None
    for path, body in (
        ("restore", {"revisionId": str(talk.head.public_id)}),
        ("reset-model-state", {"revision": 1}),
    ):
        assert code(api("post", f"/{talk.pk}/{path}", body)) == (409, "INVALID_STATE")


def test_a_token_that_may_only_read_changes_nothing(user: User, talk: Conversation) -> None:
    reader = Api(user, "read")
    for method, path, body in (
        ("post", "", {}),
        ("patch", f"/{talk.pk}", {"title": "x"}),
        ("delete", f"/{talk.pk}", None),
        ("post", f"/{talk.pk}/fork", {}),
    ):
        assert code(reader(method, path, body)) == (403, "FORBIDDEN")
    assert reader("get", f"/{talk.pk}").status_code == 200
