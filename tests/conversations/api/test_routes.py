"""The HTTP API: what it answers, to whom, and the one shape of its errors."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from conversations.models import ApiToken, User
from tests.factories import AgentProfileFactory, ConversationFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def user() -> User:
    return UserFactory()


def get(user: User | None, path: str, *scopes: str, **headers: str) -> Any:
    if user is not None:
        _, token = ApiToken.issue(user, "test", scopes=scopes or ("read",))
        headers["Authorization"] = f"Bearer {token}"
    return Client().get(path, headers=headers)


def test_conversations_are_ones_own_and_newest_first(user: User) -> None:
    """R124, R125."""
    ConversationFactory(owner=UserFactory(), title="theirs")
    first, second = ConversationFactory(owner=user, title="old"), ConversationFactory(owner=user, title="new")
    listed = get(user, "/ai/conversations").json()["conversations"]
    assert [row["conversationId"] for row in listed] == [str(second.pk), str(first.pk)]
    contract = {"conversationId", "title", "revision", "status", "createdAt", "updatedAt"}
    assert set(listed[0]) == contract | {"agent", "pinned", "tags", "temporary", "headRevisionId"}


def test_somebody_elses_conversation_looks_like_none(user: User) -> None:
    """R125."""
    foreign = ConversationFactory(owner=UserFactory())
    answers = [get(user, f"/ai/conversations/{pk}") for pk in (foreign.pk, uuid4())]
    assert {answer.status_code for answer in answers} == {404}
    assert {answer.json()["error"]["code"] for answer in answers} == {"CONVERSATION_NOT_FOUND"}


def test_agents_are_those_that_one_may_use(user: User) -> None:
    AgentProfileFactory(slug="mine", name="Mine", description="d", model="gpt-4o", context_window=64_000)
    AgentProfileFactory(slug="theirs", model="gpt-4o")
    AgentProfileFactory(slug="off", enabled=False)
    mine, theirs = get(user, "/ai/agents").json()["agents"]
    assert mine == {"slug": "mine", "name": "Mine", "description": "d", "contextWindow": 64_000}
    assert theirs["contextWindow"] == 128_000


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 401), ({"Authorization": "Bearer nonsense"}, 401), ({"Authorization": "Basic eDp5"}, 401)],
)
def test_nobody_is_told_to_sign_in(headers: dict[str, str], status: int) -> None:
    answer = get(None, "/ai/conversations", **headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, "AUTH_REQUIRED")
    assert answer["WWW-Authenticate"] == "Bearer"


def test_a_token_needs_its_scope(user: User) -> None:
    answer = get(user, "/ai/conversations", "write")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "FORBIDDEN")


def test_a_session_counts_unless_a_header_says_otherwise(user: User) -> None:
    client = Client()
    client.force_login(user)
    assert client.get("/ai/conversations").status_code == 200
    assert client.get("/ai/conversations", headers={"Authorization": "Bearer nonsense"}).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("get", "/ai/nothing", 404, "NOT_FOUND"),
        ("delete", "/ai/conversations", 405, "METHOD_NOT_ALLOWED"),
        ("get", "/ai/conversations/nonsense", 400, "INVALID_ARGUMENT"),
    ],
)
def test_every_error_has_the_one_shape(user: User, method: str, path: str, status: int, code: str) -> None:
    """R153, R156."""
    _, token = ApiToken.issue(user, "test")
    answer = getattr(Client(), method)(path, headers={"Authorization": f"Bearer {token}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer["Content-Type"].startswith("application/json")
