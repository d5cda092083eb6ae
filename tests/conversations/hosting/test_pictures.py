"""Pictures by address, before a run starts."""

from __future__ import annotations

from base64 import b64decode
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async

from agent.providers.net import Fetcher, FetchLimits
from agent.runtime.exceptions import InvalidArgument
from agent.testing import ScriptedAnswer, ScriptedProvider
from conversations.bodies import StartBody
from conversations.hosting import pictures
from tests.agent.providers.pictures import PNG
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import hosted, socket_of


def asking(*urls: str) -> StartBody:
    input: list[dict[str, Any]] = [{"type": "image", "source": {"type": "url", "url": url}} for url in urls]
    return StartBody.from_wire({"agent": "a", "input": input})


async def test_all_pictures_of_a_start_have_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small request must not store a hundred megabytes."""
    picture = b64decode(PNG)
    monkeypatch.setattr(pictures, "MOST_TOGETHER", len(picture) * 2)
    async with (
        ScriptedProvider(ScriptedAnswer(picture), repeat=True) as server,
        Fetcher(FetchLimits(ports=None), allow_private=True) as fetcher,
    ):
        assert len(await pictures.fetch_pictures(asking(server.url, server.url), fetcher)) == 2
        with pytest.raises(InvalidArgument, match="together"):
            await pictures.fetch_pictures(asking(*[server.url] * 3), fetcher)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("agent", "more", "code"),
    [
        ("nobody", {}, "AGENT_NOT_FOUND"),
        ("assistant", {"conversationId": str(uuid4())}, "CONVERSATION_NOT_FOUND"),
    ],
)
async def test_nothing_is_fetched_for_a_start_that_is_refused(agent: str, more: dict[str, Any], code: str) -> None:
    user = await sync_to_async(UserFactory)()
    await sync_to_async(AgentProfileFactory)(slug="assistant")
    picture = {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1:9/a.png"}}
    async with hosted() as host, socket_of(host, user) as socket:
        refused = await socket.command(type="start", agent=agent, input=[picture], **more)
    assert refused["code"] == code
