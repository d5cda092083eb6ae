"""What somebody has used: theirs alone, of the time they ask for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agent.models import AgentProfile, UsageRecord
from agent.runtime.ids import uuid7
from conversations.api.usage import Used
from conversations.models import ApiToken, Execution, User
from tests.factories import AgentProfileFactory, ConversationFactory, ExecutionFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def user() -> User:
    return UserFactory()


@pytest.fixture
def agent() -> AgentProfile:
    return AgentProfileFactory(slug="helper")


def call(user: User, agent: AgentProfile | None, at: datetime = NOON, **values: Any) -> UsageRecord:
    given = {"input_tokens": 10, "output_tokens": 2, "cost": Decimal("0.001"), **values}
    row = UsageRecord.objects.create(user=user, agent=agent, model="m", execution_id=uuid7(), call_index=0, **given)
    UsageRecord.objects.filter(pk=row.pk).update(created_at=at)
    return row


def get(user: User, query: str = "", *scopes: str) -> Any:
    _, token = ApiToken.issue(user, "test", scopes=scopes or ("read",))
    return Client().get(f"/ai/usage{query}", headers={"Authorization": f"Bearer {token}"})


def used(user: User, since: str = "2026-02-01T00:00:00Z", until: str = "2026-04-01T00:00:00Z") -> Used:
    answer = get(user, f"?since={since.replace('+', '%2B')}&until={until}")
    assert answer.status_code == 200, answer.content
    return Used.from_wire(answer.json())


def test_calls_are_summed_by_day_and_agent(user: User, agent: AgentProfile) -> None:
    call(user, agent, cached_tokens=4, reasoning_tokens=1)
    call(user, agent, NOON + timedelta(days=1))
    call(user, None, NOON + timedelta(hours=1), cost=None, input_tokens=None, output_tokens=None)
    call(UserFactory(), agent)
    found = used(user)
    assert (found.total.model_calls, found.total.unpriced_calls) == (3, 1)
    assert (found.total.input_tokens, found.total.output_tokens) == (20, 4)
    assert (found.total.cached_tokens, found.total.reasoning_tokens) == (4, 1)
    assert found.total.cost == Decimal("0.002")
    assert [(str(day.day), day.model_calls) for day in found.by_day] == [("2026-03-01", 2), ("2026-03-02", 1)]
    assert [(row.agent, row.model_calls) for row in found.by_agent] == [("helper", 2), (None, 1)]


def test_the_first_moment_counts_and_the_last_does_not(user: User, agent: AgentProfile) -> None:
    call(user, agent)
    assert used(user, since="2026-03-01T12:00:00Z").total.model_calls == 1
    assert used(user, until="2026-03-01T12:00:00Z").total.model_calls == 0


def test_moments_have_an_offset_and_days_are_those_of_utc(user: User, agent: AgentProfile) -> None:
    call(user, agent, datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    found = used(user, since="2026-03-02T00:00:00+02:00")
    assert [str(day.day) for day in found.by_day] == ["2026-03-01"]
    assert found.since == datetime(2026, 3, 1, 22, tzinfo=UTC)


def test_without_a_question_it_is_the_last_thirty_days(user: User, agent: AgentProfile) -> None:
    call(user, agent, timezone.now() - timedelta(days=29))
    call(user, agent, timezone.now() - timedelta(days=31))
    found = Used.from_wire(get(user).json())
    assert found.total.model_calls == 1
    assert found.until - found.since == timedelta(days=30)


def test_nobody_who_used_nothing_is_told_of_errors(user: User) -> None:
    found = used(user)
    assert (found.total.model_calls, found.total.cost, found.by_day, found.by_agent) == (0, 0, (), ())


def test_runs_and_conversations_of_the_time_are_counted(user: User) -> None:
    first, second = ConversationFactory.create_batch(2, owner=user)
    for conversation in (first, first, second):
        ExecutionFactory(conversation=conversation, status="completed")
    ExecutionFactory(conversation=ConversationFactory(), status="completed")
    Execution.objects.update(created_at=NOON)
    found = used(user)
    assert (found.executions, found.conversations) == (3, 2)


@pytest.mark.parametrize(
    "query",
    [
        "?since=yesterday",
        "?since=2026-03-01T00:00:00",
        "?since=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z",
        "?since=2024-03-02T00:00:00Z&until=2026-03-01T00:00:00Z",
        "?since=0001-01-01T00:00:00%2B14:00&until=0001-01-01T00:00:00%2B14:00",
        "?until=0001-01-01T00:00:00%2B14:00",
        "?until=9999-12-31T23:59:59-14:00",
        "?since=-99999999999999999999",
        "?until=1e400",
        "?until=NaN",
        "?since=",
    ],
)
def test_a_senseless_time_is_refused(user: User, query: str) -> None:
    answer = get(user, query)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_ARGUMENT")


def test_a_token_needs_to_read(user: User) -> None:
    assert get(user, "", "write").status_code == 403
    assert Client().get("/ai/usage").status_code == 401
