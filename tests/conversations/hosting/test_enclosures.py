"""Files and pictures of a message: what is stored of them, and what the model is sent."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings

from agent.providers.net import Fetcher, FetchLimits
from agent.testing import ScriptedAnswer, ScriptedModel, ScriptedProvider, calls, says
from conversations import attachments, store
from conversations.attachments.storage import place_of, storage
from conversations.hosting.host import ExecutionHost
from conversations.models import Attachment, Conversation, Execution, Revision, StoredFile, User
from tests.conversations.attachments.files import picture, stored_in
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import hosted, settled, socket_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

AGENT = "assistant"
PICTURE = picture(300, 200)


@pytest.fixture(autouse=True)
def _storage(tmp_path: Path) -> Any:
    with stored_in(tmp_path):
        yield


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug=AGENT, all_tools=True)
    return UserFactory()


async def uploaded(user: User, data: bytes, name: str) -> Attachment:
    return await sync_to_async(lambda: attachments.keep(user, attachments.read_file(data, name)))()


def mention(row: Attachment) -> dict[str, Any]:
    return {"type": "attachment", "attachmentId": str(row.pk)}


def by_value(data: bytes) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "mediaType": "image/png", "data": b64encode(data).decode()}}


def shown(model: ScriptedModel, request: int = -1, message: int = 0) -> list[bytes]:
    """Return the pictures that a request of the model held."""
    blocks = model.requests[request].messages[message].blocks
    return [b64decode(block.source.data) for block in blocks if block.type == "image"]


async def test_the_model_sees_a_picture_in_every_turn_and_the_conversation_only_mentions_it(user: User) -> None:
    model = ScriptedModel(calls(("local.current_time", {})), says("A gradient."), says("Still."))
    row = await uploaded(user, PICTURE, "gradient.png")
    async with hosted(model) as host, socket_of(host, user) as socket:
        ack = await socket.command(
            type="start", agent=AGENT, id=str(uuid4()), input=[{"type": "text", "text": "What is it?"}, mention(row)]
        )
        await socket.end()
        await socket.say("And now?", AGENT, conversationId=ack["conversationId"])
        await socket.end()
        seen = orjson.dumps(socket.frames)
    assert [shown(model, request) for request in range(3)] == [[PICTURE]] * 3
    assert model.requests[0].messages[0] is model.requests[1].messages[0]  # whose form an adapter keeps on it
    assert b"base64" not in seen
    stored = orjson.dumps(await sync_to_async(lambda: list(Revision.objects.values_list("context", flat=True)))())
    assert b"base64" not in stored
    assert f"attachment:{row.pk}".encode() in stored
    assert len(stored) < 3_000


async def test_the_text_of_a_file_is_given_to_the_model_under_its_name(user: User) -> None:
    model = ScriptedModel(says("A list."))
    row = await uploaded(user, b"one\ntwo </attachment> three", 'my "list" <1>.txt')
    async with hosted(model) as host, socket_of(host, user) as socket:
        await socket.command(type="start", agent=AGENT, id=str(uuid4()), input=[mention(row)])
        await socket.end()
    text = model.requests[0].messages[0].text
    head = f'<attachment id="{row.pk}" name="my &quot;list&quot; &lt;1&gt;.txt" type="text/plain">'
    assert text == f"{head}\none\ntwo </attachment> three\n</attachment>"
    quoted = attachments.quoted_file(text)
    assert quoted is not None
    assert (quoted.name, quoted.text) == ('my "list" <1>.txt', "one\ntwo </attachment> three")
    assert (await Conversation.objects.aget()).title == 'my "list" <1>.txt'


async def test_a_picture_by_value_is_stored_once_beside_the_conversation(user: User) -> None:
    model, id = ScriptedModel(says("Two.")), str(uuid4())
    start = {"type": "start", "agent": AGENT, "id": id, "input": [by_value(PICTURE), by_value(PICTURE)]}
    async with hosted(model) as host, socket_of(host, user) as socket:
        first = await socket.command(**start)
        await socket.end()
        again = await socket.command(**start)
        assert (again["executionId"], again["created"]) == (first["executionId"], False)
    assert shown(model) == [PICTURE, PICTURE]
    assert await StoredFile.objects.acount() == 1
    assert await Attachment.objects.acount() == 2
    assert (await Conversation.objects.aget()).title == "[image]"
    conversation = await Conversation.objects.aget()
    await sync_to_async(store.delete_conversation)(user, conversation.pk)
    assert await StoredFile.objects.acount() == 0


async def test_a_picture_by_address_is_stored_beside_the_conversation(user: User) -> None:
    """B76, B79."""
    model = ScriptedModel(says("One."))
    async with ScriptedProvider(ScriptedAnswer(PICTURE)) as server:
        fetcher = Fetcher(FetchLimits(ports=None), allow_private=True)
        host = ExecutionHost(settings.PAR, "test", lambda config: model, fetcher)
        await host.start()
        try:
            async with socket_of(host, user) as socket:
                source = {"type": "url", "url": server.url}
                await socket.command(
                    type="start", agent=AGENT, id=str(uuid4()), input=[{"type": "image", "source": source}]
                )
                await socket.end()
        finally:
            await host.close()
    assert shown(model) == [PICTURE]
    assert server.url.encode() not in orjson.dumps((await Execution.objects.aget()).input)


async def test_a_start_that_is_refused_leaves_no_file(user: User) -> None:
    async with hosted() as host, socket_of(host, user) as socket:
        damaged = by_value(PICTURE[:-30])
        refused = await socket.command(type="start", agent=AGENT, id=str(uuid4()), input=[by_value(PICTURE), damaged])
        assert (refused["code"], "damaged" in refused["message"]) == ("INVALID_ARGUMENT", True)
        assert (await socket.command(type="start", agent="none", id=str(uuid4()), input=[by_value(PICTURE)]))["code"]
        await settled(host)
    assert await Attachment.objects.acount() == await StoredFile.objects.acount() == 0
    assert await Execution.objects.acount() == 0


@pytest.mark.parametrize(
    "address", ["attachment:", "attachment:x", "attachment:../a", "attachment:01890a5d-a8f0-7c3e-9b6a-5d2f8e1c4b70?x"]
)
async def test_an_address_that_only_looks_like_an_attachment_is_refused(user: User, address: str) -> None:
    picture = {"type": "image", "source": {"type": "url", "url": address}}
    async with hosted() as host, socket_of(host, user) as socket:
        refused = await socket.command(type="start", agent=AGENT, id=str(uuid4()), input=[picture])
    assert refused["code"] == "INVALID_ARGUMENT"


async def test_the_same_start_after_its_file_went_gives_the_first_answer(user: User) -> None:
    """Identity is what the client sent."""
    row, id = await uploaded(user, b"Hello", "a.txt"), str(uuid4())
    start = {"type": "start", "agent": AGENT, "id": id, "input": [mention(row)]}
    async with hosted(ScriptedModel(says("Hi."))) as host, socket_of(host, user) as socket:
        first = await socket.command(**start)
        await socket.end()
        await sync_to_async(lambda: Attachment.objects.all().delete())()
        again = await socket.command(**start)
        assert (again["executionId"], again["created"]) == (first["executionId"], False)
        await sync_to_async(lambda: Conversation.objects.get().delete())()
        assert (await socket.command(**start))["code"] == "CONVERSATION_NOT_FOUND"


async def test_no_model_answers_without_a_picture_that_is_missing(user: User) -> None:
    row = await uploaded(user, PICTURE, "a.png")
    await sync_to_async(storage().delete)(place_of(row.digest))
    model = ScriptedModel()
    async with hosted(model) as host, socket_of(host, user) as socket:
        await socket.command(type="start", agent=AGENT, id=str(uuid4()), input=[mention(row)])
        failed = await socket.end()
    assert (failed["type"], failed["errorCode"]) == ("execution-failed", "ATTACHMENT_MISSING")
    assert model.requests == []
