"""The same request under the same key is carried out once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connections
from django.test import Client

from conversations.models import Conversation, IdempotentRequest, User
from tests.conversations.api.test_conversations import Api, code
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


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
