"""A key is good for one request of a person, on every wire, and stays used when its conversation is deleted."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from agent.runtime.exceptions import InvalidArgument
from agent.testing import says
from conversations import store
from conversations.api.conversations import head_of
from conversations.api.idempotency import done_once
from conversations.api.schemas import ConversationHead
from conversations.models import Conversation, Execution, User
from conversations.rights import retention
from tests.conversations.api.program import AGENT, Program, code, program, start_of
from tests.conversations.attachments.files import picture
from tests.conversations.attachments.test_keeping import at_once
from tests.conversations.store.writing import begin
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import socket_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

Request: TypeAlias = Callable[[Program, User, str], Awaitable[str]]


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug=AGENT, all_tools=True, is_default=True)
    return UserFactory()


async def posted(http: Program, path: str, body: dict[str, Any], key: str) -> str:
    """Return the code of what was refused; empty for what was taken."""
    answer = await http.client.post(
        path, body, content_type="application/json", headers={**http.headers, "Idempotency-Key": key}
    )
    return "" if answer.status_code < 400 else str(code(answer)[1])


async def start(http: Program, user: User, key: str) -> str:
    refused = await posted(http, "/ai/executions", start_of(), key)
    if not refused:
        run = await Execution.objects.aget(user=user, request_id=key)
        await http.read(str(run.pk), "?waitMs=10000")
    return refused


async def start_on_a_socket(http: Program, user: User, key: str) -> str:
    async with socket_of(http.host, user) as socket:
        ack = await socket.say("Hi", AGENT, id=key)
        if ack["type"] == "error":
            return str(ack["code"])
        await socket.end()
    return ""


async def create(http: Program, user: User, key: str) -> str:
    return await posted(http, "/ai/conversations", {}, key)


async def cancel(http: Program, user: User, key: str) -> str:
    run = await Execution.objects.alast()
    return await posted(http, f"/ai/executions/{run.pk if run else uuid4()}/cancel", {}, key)


@pytest.mark.parametrize("first", [start, start_on_a_socket])
@pytest.mark.parametrize("second", [create, cancel])
async def test_the_key_of_a_start_is_good_for_nothing_else(user: User, first: Request, second: Request) -> None:
    async with program(user, says("Hi")) as http:
        key = str(uuid4())
        assert await first(http, user, key) == ""
        assert await second(http, user, key) == "INVALID_ARGUMENT"
    assert await Conversation.objects.acount() == 1


@pytest.mark.parametrize("first", [create, cancel])
@pytest.mark.parametrize("second", [start, start_on_a_socket])
async def test_the_key_of_another_request_starts_nothing(user: User, first: Request, second: Request) -> None:
    async with program(user, says("Hi")) as http:
        await start(http, user, str(uuid4()))
        key = str(uuid4())
        assert await first(http, user, key) == ""
        assert await second(http, user, key) == "INVALID_ARGUMENT"
    assert await Execution.objects.acount() == 1


@pytest.mark.parametrize("first", [start, start_on_a_socket])
@pytest.mark.parametrize("second", [start, start_on_a_socket])
async def test_a_start_whose_conversation_was_deleted_is_not_made_again(
    user: User, first: Request, second: Request
) -> None:
    async with program(user, says("Hi")) as http:
        key = str(uuid4())
        assert await first(http, user, key) == ""
        talk = await Conversation.objects.aget()
        await sync_to_async(store.delete_conversation)(user, talk.pk)
        assert await second(http, user, key) == "CONVERSATION_NOT_FOUND"
        assert await create(http, user, key) == "INVALID_ARGUMENT"
    assert not await Conversation.objects.aexists()


async def test_a_start_with_a_picture_is_not_made_again_either(user: User) -> None:
    async with program(user, says("Hi")) as http:
        key, body = str(uuid4()), start_of()
        source = {"type": "base64", "mediaType": "image/png", "data": b64encode(picture()).decode()}
        body["input"].append({"type": "image", "source": source})
        assert await posted(http, "/ai/executions", body, key) == ""
        run = await Execution.objects.aget()
        await http.read(str(run.pk), "?waitMs=10000")
        await sync_to_async(store.delete_conversation)(user, run.conversation_id)
        assert await posted(http, "/ai/executions", body, key) == "CONVERSATION_NOT_FOUND"


async def test_a_refused_start_gives_its_key_back(user: User) -> None:
    async with program(user, says("Hi")) as http:
        key = str(uuid4())
        assert await posted(http, "/ai/executions", start_of(agent="later"), key) == "AGENT_NOT_FOUND"
        assert await create(http, user, key) == ""


@pytest.mark.parametrize("round", range(5))
async def test_a_start_and_another_request_at_once_are_one_request(user: User, round: int) -> None:
    """Whichever comes second is refused, though neither saw the other when it began."""
    key = uuid4()

    def make() -> ConversationHead:
        return head_of(store.create_conversation(user))

    results = await sync_to_async(at_once)(
        lambda: begin(user, "Hi", agent=AGENT, request_id=key), lambda: done_once(user, key, "another", make)
    )
    assert sum(isinstance(result, InvalidArgument) for result in results) == 1, results
    assert await Conversation.objects.acount() == 1


async def test_a_key_is_free_when_its_day_is_over(user: User) -> None:
    async with program(user, says("Hi"), says("Hi")) as http:
        key = str(uuid4())
        assert await start(http, user, key) == ""
        talk = await Conversation.objects.aget()
        await sync_to_async(store.delete_conversation)(user, talk.pk)
        later = timezone.now() + retention.ANSWERS_KEPT + timedelta(seconds=1)
        await sync_to_async(lambda: list(retention.Pruning(later).steps()))()
        assert await start(http, user, key) == ""
