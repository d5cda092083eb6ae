"""What the caller has used: model calls, tokens and cost, by day and by agent."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

from asgiref.sync import sync_to_async
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.http import HttpRequest
from django.utils import timezone
from ninja import Query, Router
from pydantic import AwareDatetime

from agent.models import UsageRecord
from agent.runtime.exceptions import InvalidArgument
from agent.runtime.messages import Value
from conversations.api import schemas
from conversations.api.auth import READ, credential
from conversations.models import Execution, User

REFUSED = {frozenset({400, 401, 403, 429}): schemas.ErrorBody}
USUAL, LONGEST = timedelta(days=30), timedelta(days=366)
_YEARS = range(2000, 2200)

router = Router(tags=["usage"])


class Amount(Value):
    """Model calls and what they took; `cost` is in US dollars and leaves out the `unpriced_calls`.

    `cached_tokens` are part of the input, `reasoning_tokens` of the output.
    """

    model_calls: int
    unpriced_calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost: Decimal


class UsedInDay(Amount):
    """What was used in one day of UTC."""

    day: date


class UsedByAgent(Amount):
    """What was used with one agent; null for agents that there are no more."""

    agent: str | None


class Used(Value):
    """What the caller has used from `since` until before `until`.

    `executions` and `conversations` are those of the time that still exist.
    """

    since: datetime
    until: datetime
    executions: int
    conversations: int
    total: Amount
    by_day: tuple[UsedInDay, ...]
    by_agent: tuple[UsedByAgent, ...]


@router.get(
    "",
    auth=READ,
    response={200: Used, **REFUSED},
    by_alias=True,
    summary="What you have used, by day and agent",
)
async def get_usage(
    request: HttpRequest,
    since: Annotated[AwareDatetime | None, Query(description="The first moment; 30 days before `until`.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="The moment after the last one; now.")] = None,
) -> Used:
    """At most 366 days; the days are those of UTC. A call whose provider counted no tokens counts as a call only."""
    end = until or timezone.now()
    start = since or _checked(end) - USUAL
    return await sync_to_async(_used)(credential(request).user, *_period(start, end))


def _period(since: datetime, until: datetime) -> tuple[datetime, datetime]:
    since, until = _checked(since), _checked(until)
    if not timedelta() <= until - since <= LONGEST:
        raise InvalidArgument(f"`until` is not before `since`, and at most {LONGEST.days} days after it")
    return since, until


def _checked(moment: datetime) -> datetime:
    if moment.year not in _YEARS:
        raise InvalidArgument(f"{moment.isoformat()!r} is too far away")
    return moment.astimezone(UTC)


def _used(user: User, since: datetime, until: datetime) -> Used:
    period = Q(created_at__gte=since, created_at__lt=until)
    calls = UsageRecord.objects.filter(period, user=user).order_by()
    by_day: Iterable[dict[str, Any]] = _summed(calls.annotate(day=TruncDate("created_at", tzinfo=UTC)), "day")
    by_agent: Iterable[dict[str, Any]] = _summed(calls.annotate(slug=F("agent__slug")), "slug")
    runs = Execution.objects.made_here().filter(period, user=user).order_by()
    counted = runs.aggregate(executions=Count("pk"), conversations=Count("conversation", distinct=True))
    return Used(
        since=since,
        until=until,
        total=_amount(calls.aggregate(**_sums())),
        by_day=tuple(UsedInDay(day=row.pop("day"), **_amount(row).model_dump()) for row in by_day),
        by_agent=tuple(UsedByAgent(agent=row.pop("slug"), **_amount(row).model_dump()) for row in by_agent),
        **counted,
    )


def _summed(calls: QuerySet[UsageRecord], by: str) -> Any:
    return calls.values(by).annotate(**_sums()).order_by(F(by).asc(nulls_last=True))


def _sums() -> dict[str, Any]:
    return {
        "model_calls": Count("pk"),
        "unpriced_calls": Count("pk", filter=Q(cost=None)),
        "input": Sum("input_tokens", default=0),
        "cached": Sum("cached_tokens", default=0),
        "output": Sum("output_tokens", default=0),
        "reasoning": Sum("reasoning_tokens", default=0),
        "price": Sum("cost", default=Decimal(0)),
    }


def _amount(row: dict[str, Any]) -> Amount:
    return Amount(
        model_calls=row["model_calls"],
        unpriced_calls=row["unpriced_calls"],
        input_tokens=row["input"],
        cached_tokens=row["cached"],
        output_tokens=row["output"],
        reasoning_tokens=row["reasoning"],
        cost=row["price"],
    )
