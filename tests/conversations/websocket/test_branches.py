"""Editing, answering again and going on elsewhere, over the websocket."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from agent.testing import ScriptedModel, fails, says
from conversations import store
from conversations.exceptions import ConversationConflict
from conversations.models import Conversation, Execution, Revision, User
from conversations.unsaved import unsaved_turns
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import hosted, socket_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]
AGENT = "helper"


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug=AGENT)
    return UserFactory()


@sync_to_async
def texts() -> list[str]:
    row = Conversation.objects.select_related("head").get()
    return [message.text for message in store.load_context(row, row.head).messages]


@sync_to_async
def message_ids() -> list[str]:
    row = Conversation.objects.select_related("head").get()
    return [message.id for message in store.load_context(row, row.head).messages]


async def test_an_edit_and_a_second_answer_see_only_what_came_before(user: User) -> None:
    model = ScriptedModel(says("a1"), says("a2"), says("A2"), says("again"))
    async with hosted(model) as host, socket_of(host, user) as socket:
        ack = await socket.say("q1", AGENT)
        await socket.end()
        id = ack["conversationId"]
        await socket.say("q2", AGENT, conversationId=id, baseRevision=1)
        await socket.end()
        question, answer = (await message_ids())[2:]
        await socket.say("Q2", AGENT, conversationId=id, baseRevision=2, editMessageId=question)
        saved = await socket.until("revision-saved")
        assert saved["version"] == 3
        await socket.end()
        assert await texts() == ["q1", "a1", "Q2", "A2"]
        old = await sync_to_async(Revision.objects.get)(number=2)
        wanted = {"regenerateMessageId": answer, "fromRevisionId": str(old.public_id)}
        again = await socket.command(type="start", agent=AGENT, conversationId=id, **wanted)
        assert again["created"]
        await socket.end()
    assert await texts() == ["q1", "a1", "q2", "again"]
    assert [[m.text for m in request.messages if m.role != "system"] for request in model.requests[2:]] == [
        ["q1", "a1", "Q2"],
        ["q1", "a1", "q2"],
    ]


async def test_a_stopped_edit_stands_where_it_was_begun_and_can_be_kept(user: User) -> None:
    async with hosted(ScriptedModel(says("a1"), says("a2"), fails("no"), says("a3"))) as host:
        async with socket_of(host, user) as socket:
            id = (await socket.say("q1", AGENT))["conversationId"]
            await socket.end()
            await socket.say("q2", AGENT, conversationId=id)
            await socket.end()
            question = (await message_ids())[2]
            await socket.say("Q2", AGENT, conversationId=id, editMessageId=question)
            assert (await socket.end())["type"] == "execution-failed"

            @sync_to_async
            def shown() -> list[Any]:
                row = Conversation.objects.select_related("head").get()
                return unsaved_turns(row, store.load_path(row, row.head))

            (turn,) = await shown()
            assert turn.after == (await message_ids())[1]
            await socket.say("q3", AGENT, conversationId=id)
            await socket.end()
        run = await sync_to_async(Execution.objects.get)(status="failed")
        adopt = sync_to_async(store.adopt_recovered)
        with pytest.raises(ConversationConflict):
            await adopt(user, run.pk)
        kept = await adopt(user, run.pk, as_branch=True)
        assert kept.created
    assert await texts() == ["q1", "a1", "Q2"]


@pytest.mark.parametrize(
    "odd",
    [
        {"editMessageId": "m"},
        {"conversationId": None, "regenerateMessageId": "m"},
        {"fromRevisionId": "nonsense"},
        {"temporary": 1},
    ],
)
async def test_a_start_that_does_not_fit_together_is_refused(user: User, odd: dict[str, Any]) -> None:
    async with hosted(ScriptedModel()) as host, socket_of(host, user) as socket:
        answer = await socket.say("q1", AGENT, **odd)
    assert (answer["type"], answer["code"]) == ("error", "INVALID_ARGUMENT")
    assert not await Execution.objects.aexists()


async def test_a_temporary_conversation_is_marked(user: User) -> None:
    async with hosted(ScriptedModel(says("a"))) as host, socket_of(host, user) as socket:
        await socket.say("q", AGENT, temporary=True)
        await socket.end()
    assert (await Conversation.objects.aget()).temporary
