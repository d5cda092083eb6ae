"""The model of a run: tried again, replaced, metered and priced; a change of model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings

from agent.models import AgentFallback, AgentProfile, AuditRecord, ModelEndpoint, ModelPrice, UsageRecord
from agent.providers.config import ModelConfig
from agent.runtime import Usage
from agent.runtime.model import BlockDelta, BlockStart, BlockStop, MessageStop, ModelRequest, StreamError, UsageDetails
from agent.testing import ScriptedModel, fails, says
from conversations.hosting.host import ExecutionHost
from conversations.models import Execution, User
from tests.agent.providers.reading import kept_state
from tests.factories import AgentProfileFactory, ModelEndpointFactory, UserFactory
from tests.live import hosted, settled, socket_of

pytestmark = pytest.mark.django_db(transaction=True)

AGENT = "assistant"


@pytest.fixture
def user(transactional_db: None) -> User:
    AgentProfileFactory(slug=AGENT)
    return UserFactory()


@asynccontextmanager
async def serving(**models: ScriptedModel) -> AsyncIterator[ExecutionHost]:
    """A host with a model for each name of a model."""
    host = ExecutionHost(settings.PAR, "test", lambda config: models[config.model])
    await host.start()
    try:
        yield host
    finally:
        await host.close()


async def rows(model: type[Any]) -> list[Any]:
    return await sync_to_async(lambda: list(model.objects.order_by("pk")))()


async def audited(host: ExecutionHost, event: str) -> list[dict[str, Any]]:
    await host.trail.flush()
    return [row.payload for row in await rows(AuditRecord) if row.event == event]


async def test_a_failed_call_is_made_again_where_the_agent_says_so(user: User) -> None:
    """P29."""
    policy = {"maxAttempts": 2, "backoff": {"type": "fixed", "delaySeconds": 0}}
    await sync_to_async(AgentProfile.objects.update)(retry_policy=policy)
    with ScriptedModel(fails(kind="overloaded", retryable=True), says("Hello")) as model:
        async with hosted(model) as host, socket_of(host, user) as socket:
            await socket.say("Hi", AGENT)
            assert (await socket.end())["type"] == "execution-completed"
            await settled(host)
            assert len(await audited(host, "provider-retry")) == 1


async def test_without_a_policy_nothing_is_made_again(user: User) -> None:
    """R6."""
    with ScriptedModel(fails(kind="overloaded", retryable=True)) as model:
        async with hosted(model) as host, socket_of(host, user) as socket:
            await socket.say("Hi", AGENT)
            failed = await socket.end()
    assert (failed["errorCode"], failed["retryable"]) == ("MODEL_FAILED", True)


async def test_another_model_takes_over_and_the_audit_log_tells(user: User) -> None:
    """P37."""

    def prepare() -> None:
        agent = AgentProfile.objects.get()
        AgentFallback.objects.create(agent=agent, endpoint=ModelEndpointFactory(slug="second"), model="backup")
        off = ModelEndpointFactory(slug="off", enabled=False)
        AgentFallback.objects.create(agent=agent, endpoint=off, model="never")

    await sync_to_async(prepare)()
    with ScriptedModel(fails(kind="timeout")) as own, ScriptedModel(says("Hello")) as backup:
        async with serving(demo=own, backup=backup) as host, socket_of(host, user) as socket:
            ack = await socket.say("Hi", AGENT)
            assert (await socket.end())["type"] == "execution-completed"
            assert socket.text(ack["executionId"]) == "Hello"
            await settled(host)
            assert len(await audited(host, "provider-fallback-attempted")) == 1


def call(*, text: str = "Hi", details: UsageDetails | None = None) -> list[Any]:
    usage = Usage(input_tokens=1_000, output_tokens=100, total_tokens=1_100)
    delta = BlockDelta(0, "text", text)
    return [BlockStart(0, "text"), delta, BlockStop(0), MessageStop("end-turn", usage, None, details)]


async def test_each_call_is_written_down_with_its_cost(user: User) -> None:
    """P14: cached and written input have prices of their own."""

    def price() -> None:
        endpoint = AgentProfile.objects.get().endpoint
        prices = {"input": "10", "cached_input": "1", "cache_write": "20", "output": "50"}
        ModelPrice.objects.create(endpoint=endpoint, model="demo", **{k: Decimal(v) for k, v in prices.items()})

    await sync_to_async(price)()
    details = UsageDetails(cached_tokens=600, cache_write_tokens=300, reasoning_tokens=40)
    async with hosted(ScriptedModel(call(details=details), call())) as host, socket_of(host, user) as socket:
        ack = await socket.say("Hi", AGENT)
        await socket.end()
        await socket.say("Hi", AGENT, conversationId=ack["conversationId"])
        await socket.end()
        await settled(host)
    first, second = await rows(UsageRecord)
    assert str(first.execution_id) == ack["executionId"]
    assert (first.user_id, first.call_index, first.reasoning_tokens) == (user.pk, 1, 40)
    assert first.cost == Decimal("0.0126")  # 100 plain, 600 cached, 300 written, 100 out
    assert second.cost == Decimal("0.015")


async def test_what_a_failed_run_used_is_written_down_too_and_unknown_prices_are_null(user: User) -> None:
    asks = [BlockStart(0, "tool-call", "c", "no.such"), BlockDelta(0, "tool-call", "{}"), BlockStop(0)]
    model = ScriptedModel([*asks, replace(call()[-1], stop_reason="tool-use")])
    async with hosted(model) as host, socket_of(host, user) as socket:
        await socket.say("Hi", AGENT, limits={"maxModelCalls": 1})
        assert (await socket.end())["type"] == "execution-failed"
        await settled(host)
    (row,) = await rows(UsageRecord)
    assert (row.input_tokens, row.output_tokens, row.cost) == (1_000, 100, None)


@pytest.mark.parametrize(
    ("changed", "values"),
    [
        (ModelEndpoint, {"protocol": "openai-chat"}),
        (ModelEndpoint, {"base_url": "https://other.test"}),
        (AgentProfile, {"model": "another"}),
    ],
)
async def test_a_change_of_the_model_resets_the_model_state_and_says_so(
    user: User, changed: Any, values: dict[str, str]
) -> None:
    """R27, E36: never silently; another model or server of the same protocol is another model too."""
    await sync_to_async(ModelEndpoint.objects.update)(protocol="anthropic-messages")
    state = kept_state(ModelConfig("anthropic-messages", "demo"), callIds={"a": "b"})
    with ScriptedModel(says("One", model_state=state), says("Two", model_state=state), says("Three")) as model:
        async with hosted(model) as host, socket_of(host, user) as socket:
            ack = await socket.say("Hi", AGENT)
            await socket.end()
            same = await socket.say("Hi", AGENT, conversationId=ack["conversationId"])
            await socket.end()
            await sync_to_async(changed.objects.update)(**values)
            id = str(uuid4())
            other = await socket.say("Hi", AGENT, conversationId=ack["conversationId"], id=id)
            await socket.end()
            assert await socket.say("Hi", AGENT, conversationId=ack["conversationId"], id=id) == {
                **other,
                "created": False,
            }
            await settled(host)
            assert len(await audited(host, "model-state-reset")) == 1
    assert "modelStateReset" not in same
    assert other["modelStateReset"] is True
    assert [request.model_state for request in model.requests] == [None, state, None]


async def test_an_unseen_error_of_the_fallback_is_the_one_that_is_told(user: User) -> None:
    await sync_to_async(
        lambda: AgentFallback.objects.create(
            agent=AgentProfile.objects.get(), endpoint=ModelEndpointFactory(), model="b"
        )
    )()
    lost = [StreamError("the second failed", kind="connection-lost", retryable=True)]
    with ScriptedModel(fails(kind="timeout")) as own, ScriptedModel(lost) as backup:
        async with serving(demo=own, b=backup) as host, socket_of(host, user) as socket:
            await socket.say("Hi", AGENT)
            assert (await socket.end())["errorMessage"] == "the second failed"


async def test_a_volatile_prompt_is_asked_for_as_one(user: User) -> None:
    """P24, P170."""
    model = ScriptedModel(says("One"), says("Two"))
    async with hosted(model) as host, socket_of(host, user) as socket:
        for zone in ("stable", "volatile"):
            await sync_to_async(AgentProfile.objects.update)(prompt_zone=zone)
            await socket.say("Hi", AGENT)
            await socket.end()
    assert [request.volatile_prompt for request in model.requests] == [False, True]


async def test_a_cache_mark_that_the_provider_does_not_know_is_noted(user: User) -> None:
    """P170."""
    await sync_to_async(AgentProfile.objects.update)(cache_ttl="five_min")
    async with hosted(ScriptedModel(says("One"))) as host, socket_of(host, user) as socket:
        await socket.say("Hi", AGENT)
        await socket.end()
        await settled(host)
        (noted,) = await audited(host, "cache-mark-dropped")
    assert noted["dropReason"] == "unsupported_by_provider"


def counted(*events: Any) -> Callable[[ModelRequest], Any]:
    """A step whose provider refuses a tool, and counts its input at once."""

    def step(request: ModelRequest) -> Any:
        assert request.listener is not None
        request.listener.left_out(["odd"])
        request.listener.used(Usage(input_tokens=7, output_tokens=1, total_tokens=8), None)
        return events

    return step


async def test_a_stopped_call_has_its_costs_and_a_tool_left_out_is_noted_once(user: User) -> None:
    """P14: what the provider counted before the stop is in the books."""
    asks = [BlockStart(0, "tool-call", "c", "no.such"), BlockDelta(0, "tool-call", "{}"), BlockStop(0)]
    half = [BlockStart(0, "text"), BlockDelta(0, "text", "Half")]
    model = ScriptedModel(counted(*asks, MessageStop("tool-use")), counted(half, asyncio.Event()))
    async with hosted(model) as host, socket_of(host, user) as socket:
        ack = await socket.say("Hi", AGENT)
        await socket.until("block-delta")
        await socket.command(type="cancel", executionId=ack["executionId"])
        await socket.end()
        await settled(host)
        assert [noted["toolName"] for noted in await audited(host, "tool-left-out")] == ["odd"]
    assert [(row.call_index, row.input_tokens) for row in await rows(UsageRecord)] == [(1, 7), (2, 7)]
    (execution,) = await rows(Execution)
    assert execution.usage["inputTokens"] == 14


async def test_the_usage_of_a_run_has_the_calls_that_were_made_again(user: User) -> None:
    policy = {"maxAttempts": 2, "backoff": {"type": "fixed", "delaySeconds": 0}}
    await sync_to_async(AgentProfile.objects.update)(retry_policy=policy)
    usage = Usage(input_tokens=1_000, output_tokens=0, total_tokens=1_000)
    failed = StreamError("too busy", kind="overloaded", retryable=True, usage=usage)
    async with hosted(ScriptedModel([failed], call())) as host, socket_of(host, user) as socket:
        await socket.say("Hi", AGENT)
        await socket.end()
        await settled(host)
    (execution,) = await rows(Execution)
    assert execution.usage == {"inputTokens": 2_000, "outputTokens": 100, "totalTokens": 2_100}
