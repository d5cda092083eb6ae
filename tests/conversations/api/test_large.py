"""Whole conversations that are large: read one at a time, so that nobody can fill a process's memory."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import orjson
import pytest

from conversations.api.whole import LARGE
from conversations.models import User
from tests.conversations.api.program import AGENT, Program, code, program
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug=AGENT, is_default=True)
    return UserFactory()


def context(letters: int) -> dict[str, Any]:
    text = {"type": "text", "text": "x" * letters}
    messages = [{"id": "m-1", "role": "user", "blocks": [text]}]
    return {"messages": messages, "modelContext": {"checkpoint": None, "modelState": None, "usage": None}}


async def send(http: Program, method: str, path: str, body: dict[str, Any], **headers: str) -> Any:
    return await getattr(http.client, method)(
        f"/ai/conversations{path}",
        orjson.dumps(body),
        content_type="application/json",
        headers=http.headers | headers,
    )


async def test_a_second_large_body_of_a_person_has_to_wait(user: User) -> None:
    key = str(uuid4())
    async with program(user) as http:
        assert http.host is not None
        small, large = {"context": context(10)}, {"context": context(LARGE)}
        with http.host.large_bodies.room(user.pk):
            refused = await send(http, "post", "", large, **{"Idempotency-Key": key})
            assert code(refused) == (429, "RATE_LIMITED")
            assert int(refused["Retry-After"]) > 0
            assert (await send(http, "post", "", small)).status_code == 200
        made = await send(http, "post", "", large, **{"Idempotency-Key": key})
        assert made.status_code == 200
        again = await send(http, "post", "", large, **{"Idempotency-Key": key})
        assert again.content == made.content
        row = made.json()["conversation"]
        body = {"title": "Mine", "revision": row["revision"], "context": context(LARGE + 1)}
        with http.host.large_bodies.room(user.pk):
            assert code(await send(http, "put", f"/{row['conversationId']}", body)) == (429, "RATE_LIMITED")
        assert (await send(http, "put", f"/{row['conversationId']}", body)).status_code == 200
        assert code(await send(http, "put", f"/{row['conversationId']}", body)) == (409, "CONVERSATION_CONFLICT")
        with http.host.large_bodies.room(user.pk):
            pass
