"""The same request under the same key is carried out once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from conversations.models import Conversation, IdempotentRequest, User
from conversations.rights.deletion import delete_conversations
from conversations.rights.retention import Pruning
from tests.conversations.api.test_conversations import Api, code
from tests.conversations.store.writing import turn
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


def by_request(user: User, pk: UUID) -> None:
    assert Api(user)("delete", f"/{pk}").status_code == 204


def with_all_others(user: User, pk: UUID) -> None:
    assert delete_conversations(user)


def by_retention(user: User, pk: UUID) -> None:
    Conversation.objects.filter(pk=pk).update(temporary=True, updated_at=timezone.now() - timedelta(days=30))
    for _ in Pruning().steps():
        pass


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug="demo", is_default=True)
    return UserFactory()


def test_the_first_answer_is_given_again(user: User) -> None:
    api, key = Api(user), str(uuid4())
    first = api("post", "", {"title": "Once"}, **{"Idempotency-Key": key})
    again = api("post", "", {"title": "Once"}, **{"Idempotency-Key": key})
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert Conversation.objects.count() == 1
    assert code(api("post", "", {"title": "Twice"}, **{"Idempotency-Key": key})) == (400, "INVALID_ARGUMENT")
    assert code(api("post", "", {"title": "Once"}, **{"Idempotency-Key": "mine"})) == (400, "INVALID_ARGUMENT")


def test_keys_of_two_people_are_two_keys(user: User) -> None:
    key = str(uuid4())
    made = [Api(each)("post", "", {}, **{"Idempotency-Key": key}).json() for each in (user, UserFactory())]
    assert made[0]["conversation"]["conversationId"] != made[1]["conversation"]["conversationId"]


def test_what_was_refused_may_be_sent_again(user: User) -> None:
    api, key = Api(user), str(uuid4())
    body = {"agent": "later"}
    assert code(api("post", "", body, **{"Idempotency-Key": key})) == (404, "AGENT_NOT_FOUND")
    AgentProfileFactory(slug="later")
    assert api("post", "", body, **{"Idempotency-Key": key}).status_code == 200


def test_a_secret_in_an_answer_is_not_stored_in_the_clear(user: User) -> None:
    api, key = Api(user), str(uuid4())
    headers = {"Authorization": f"Bearer {api.token}", "Idempotency-Key": key}
    first = Client().post("/ai/tickets", headers=headers).json()
    assert Client().post("/ai/tickets", headers=headers).json() == first
    assert first["ticket"] not in IdempotentRequest.objects.get().answer


@pytest.fixture
def talk(user: User) -> Conversation:
    return turn(user, "q1", "a1").conversation


def wanted(api: Api, talk: Conversation, path: str) -> dict[str, Any]:
    """Return the body of a request whose answer tells of a conversation."""
    assert talk.head is not None
    context = api("get", f"/{talk.pk}").json()["context"]
    context["modelContext"]["modelState"] = None
    bodies: dict[str, dict[str, Any]] = {
        "": {"title": "Plans", "context": context},
        "/fork": {"title": "Plans"},
        "/restore": {"revisionId": str(talk.head.public_id)},
        "/reset-model-state": {"revision": talk.version},
        "/shares": {},
    }
    return bodies[path]


@pytest.mark.parametrize("path", ["", "/fork", "/restore", "/reset-model-state", "/shares"])
@pytest.mark.parametrize("delete", [by_request, with_all_others, by_retention])
def test_an_answer_goes_with_its_conversation_and_its_key_stays_used(
    user: User, talk: Conversation, path: str, delete: Callable[[User, UUID], None]
) -> None:
    api, key = Api(user), {"Idempotency-Key": str(uuid4())}
    body = wanted(api, talk, path)
    place = path and f"/{talk.pk}{path}"
    first = api("post", place, body, **key)
    assert first.status_code in (200, 201), first.content
    about = UUID((first.json().get("conversation") or first.json().get("share"))["conversationId"])
    delete(user, about)
    assert not Conversation.objects.filter(pk=about).exists()
    left = Conversation.objects.count()
    assert code(api("post", place, body, **key)) == (404, "CONVERSATION_NOT_FOUND")
    assert code(api("post", place, {"title": "Another"}, **key)) == (400, "INVALID_ARGUMENT")
    assert Conversation.objects.count() == left
    assert not IdempotentRequest.objects.exclude(answer="").exists()


def test_an_answer_about_a_conversation_stays_when_another_one_goes(user: User, talk: Conversation) -> None:
    api, key = Api(user), {"Idempotency-Key": str(uuid4())}
    body = wanted(api, talk, "")
    first = api("post", "", body, **key)
    by_request(user, talk.pk)
    assert api("post", "", body, **key).content == first.content


def test_at_once_on_two_connections_it_is_carried_out_once(user: User) -> None:
    api, key = Api(user), str(uuid4())

    def send(_: int) -> Any:
        try:
            return api("post", "", {"title": "Once"}, **{"Idempotency-Key": key}).content
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        answers = set(pool.map(send, range(4)))
    assert len(answers) == 1
    assert Conversation.objects.count() == 1


def test_so_many_requests_a_minute(user: User, settings: Any) -> None:
    settings.PAR = settings.PAR.model_copy(update={"requests_per_minute": 3})
    api = Api(user)
    answers = [api("get", "") for _ in range(4)]
    if {answer["RateLimit-Remaining"] for answer in answers} != {"2", "1", "0"}:
        answers = [api("get", "") for _ in range(4)]  # a minute began in between
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[0]["RateLimit-Limit"] == "3"
    assert code(answers[-1]) == (429, "RATE_LIMITED")
    assert 0 < int(answers[-1]["Retry-After"]) <= timedelta(minutes=1).total_seconds()
    assert int(answers[-1]["RateLimit-Reset"]) <= 60
    assert Api(UserFactory())("get", "").status_code == 200
