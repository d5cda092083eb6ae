"""What model calls cost, and that their records are never in the way of a turn."""

from __future__ import annotations

from decimal import Decimal
from uuid import uuid4

import pytest
from django.db import OperationalError, transaction

from agent.governance import prices
from agent.governance.prices import cost_of, record_usage
from agent.models import ModelEndpoint, ModelPrice, UsageRecord
from agent.providers.decoding import MAX_COUNT, usage_of
from agent.providers.metering import CallUsage
from agent.runtime.messages import Usage
from agent.runtime.model import UsageDetails
from conversations.models import User
from tests.factories import ModelEndpointFactory, UserFactory

CLAUDE = ModelEndpoint(slug="claude", protocol="anthropic-messages")
K = 100_000


def used(
    given: int, made: int = 0, model: str = "claude-sonnet-4-5", slug: str = "claude", **details: int
) -> CallUsage:
    usage = Usage(input_tokens=given, output_tokens=made, total_tokens=given + made)
    return CallUsage(slug, model, usage, UsageDetails(**details))


def price(**fields: int) -> ModelPrice:
    values = {"input": 10, "cached_input": 1, "cache_write": 12, "output": 50, **fields}
    return ModelPrice(**{name: Decimal(value) for name, value in values.items()})


def test_what_is_kept_for_an_hour_costs_twice_the_input() -> None:
    """P14, P170: five minutes cost a quarter more."""
    minutes, hour = used(K, cache_write_tokens=K), used(K, cache_write_tokens=K, cache_write_hour_tokens=K)
    assert cost_of(minutes, CLAUDE, None) == Decimal("0.375")
    assert cost_of(hour, CLAUDE, None) == Decimal("0.6")
    assert cost_of(minutes, CLAUDE, price()) == Decimal("1.2")
    assert cost_of(hour, CLAUDE, price()) == Decimal(2)
    assert cost_of(hour, CLAUDE, price(cache_write_hour=17)) == Decimal("1.7")


@pytest.mark.parametrize("own", [None, price(output=99_999_999)])
def test_a_call_that_nobody_counted_has_no_cost(own: ModelPrice | None) -> None:
    assert cost_of(CallUsage("claude", "claude-sonnet-4-5"), CLAUDE, own) is None


def test_a_cost_that_no_call_can_have_is_unknown() -> None:
    absurd = usage_of(2**53 - 1, 10**30, None)
    assert absurd is not None and absurd.input_tokens == absurd.output_tokens == MAX_COUNT
    assert cost_of(CallUsage("claude", "claude-sonnet-4-5", absurd), CLAUDE, price(output=99_999_999)) is None


@pytest.fixture
def user(db: None) -> User:
    ModelEndpointFactory(slug="claude", protocol="anthropic-messages")
    return UserFactory()


def record(user: User, *calls: CallUsage) -> None:
    record_usage(calls, user_id=user.pk, agent_id=None, execution_id=uuid4())


def test_each_call_has_a_row_under_its_number(user: User) -> None:
    """P14: also one of which nothing is known."""
    record(user, used(3, 2), CallUsage("claude", "claude-sonnet-4-5"), used(K, cache_write_hour_tokens=5, slug="gone"))
    rows = UsageRecord.objects.order_by("call_index")
    assert [(row.call_index, row.input_tokens, row.output_tokens) for row in rows] == [
        (1, 3, 2),
        (2, None, None),
        (3, K, 0),
    ]
    assert rows[2].cache_write_hour_tokens == 5


def test_absurd_counts_are_stored_and_read_again(user: User) -> None:
    """B38: a provider may claim anything."""
    ModelPrice.objects.create(
        endpoint=ModelEndpoint.objects.get(),
        model="claude-sonnet-4-5",
        **{name: Decimal("0.333333") for name in ("input", "cached_input", "cache_write", "output")},
    )
    record(user, used(MAX_COUNT, MAX_COUNT), used(7, 7))
    first, second = UsageRecord.objects.order_by("call_index")
    assert (first.input_tokens, first.cost) == (MAX_COUNT, Decimal("666666.000000000"))
    assert second.cost == Decimal("0.000004667")


def test_a_row_that_cannot_be_written_spoils_no_turn(user: User, caplog: pytest.LogCaptureFixture) -> None:
    execution_id = uuid4()
    with transaction.atomic():
        for _ in range(2):  # no call has two rows
            record_usage([used(3)], user_id=user.pk, agent_id=None, execution_id=execution_id)
        assert User.objects.filter(pk=user.pk).exists(), "the transaction goes on"
    assert UsageRecord.objects.count() == 1
    assert "could not be written down" in caplog.text


def test_a_failure_beside_the_database_is_logged(
    user: User, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(prices, "cost_of", fail)
    with transaction.atomic():
        record(user, used(3))
        assert not UsageRecord.objects.exists()
    assert "could not be written down" in caplog.text


def test_a_database_that_is_away_is_waited_for(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OperationalError

    monkeypatch.setattr(prices, "cost_of", fail)
    with pytest.raises(OperationalError):
        record(user, used(3))
