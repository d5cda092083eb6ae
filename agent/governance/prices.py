"""What model calls cost: an operator's own prices first, then the public list prices."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from decimal import Decimal
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price

from agent.models import ModelEndpoint, ModelPrice, UsageRecord
from agent.providers.metering import CallUsage
from agent.runtime.messages import Usage
from agent.runtime.model import UsageDetails

logger = logging.getLogger(__name__)

# A cost has so many places, and less than so many dollars.
SMALLEST, TOO_MUCH = Decimal("1e-9"), Decimal(1_000_000_000)

PRICED_AS = {"openai-chat": "openai", "openai-responses": "openai", "anthropic-messages": "anthropic"}


def cost_of(call: CallUsage, endpoint: ModelEndpoint, price: ModelPrice | None) -> Decimal | None:
    """Return the cost of a call in US dollars, None where nobody knows it."""
    if call.usage is None:
        return None
    own = price.cost(call.usage, call.details) if price is not None else None
    cost = own if own is not None else _list_price(call.usage, call.details, call.model, endpoint)
    if cost is None or not 0 <= cost < TOO_MUCH:
        return None  # what no call can cost is as good as unknown
    return cost.quantize(SMALLEST)


def _list_price(usage: Usage, details: UsageDetails, model: str, endpoint: ModelEndpoint) -> Decimal | None:
    tokens = PricedUsage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=details.cached_tokens or None,
        cache_write_tokens=details.cache_write_tokens or None,
        cache_write_1h_tokens=details.cache_write_hour_tokens or None,
        output_tokens=usage.output_tokens,
    )
    try:
        if endpoint.base_url:
            return calc_price(tokens, model, provider_api_url=endpoint.base_url).total_price
        provider = PRICED_AS.get(endpoint.protocol)
        return None if provider is None else calc_price(tokens, model, provider_id=provider).total_price
    except (LookupError, ValueError, ArithmeticError):
        return None  # not in the list, or counts that do not add up


def record_usage(calls: Sequence[CallUsage], *, user_id: int, agent_id: UUID | None, execution_id: UUID) -> None:
    """Write down the calls of one run with what they cost; the turn is stored even if that fails."""
    if not calls:
        return
    try:
        with transaction.atomic():
            _write(calls, user_id, agent_id, execution_id)
    except (OperationalError, InterfaceError):
        raise  # the database is away, and the turn waits for it
    except Exception:
        logger.exception("what the model calls of execution %s used could not be written down", execution_id)


def _write(calls: Sequence[CallUsage], user_id: int, agent_id: UUID | None, execution_id: UUID) -> None:
    endpoints = ModelEndpoint.objects.in_bulk({call.endpoint for call in calls}, field_name="slug")
    prices = _prices(endpoints.values())
    UsageRecord.objects.bulk_create(
        UsageRecord(
            user_id=user_id,
            agent_id=agent_id,
            endpoint=endpoint,
            model=call.model,
            execution_id=execution_id,
            call_index=index,
            input_tokens=call.usage.input_tokens if call.usage else None,
            cached_tokens=call.details.cached_tokens,
            cache_write_tokens=call.details.cache_write_tokens,
            cache_write_hour_tokens=call.details.cache_write_hour_tokens,
            output_tokens=call.usage.output_tokens if call.usage else None,
            reasoning_tokens=call.details.reasoning_tokens,
            cost=cost_of(call, endpoint, prices.get((endpoint.pk, call.model))) if endpoint is not None else None,
        )
        for index, call in enumerate(calls, start=1)
        for endpoint in [endpoints.get(call.endpoint)]
    )


def _prices(endpoints: Iterable[ModelEndpoint]) -> dict[tuple[UUID, str], ModelPrice]:
    rows = ModelPrice.objects.filter(endpoint__in=list(endpoints))
    return {(row.endpoint_id, row.model): row for row in rows}
