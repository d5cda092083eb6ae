"""Every operation of the OpenAPI document, asked for what is somebody else's: it answers as if that were not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from asgiref.sync import sync_to_async

from conversations.api import api
from tests.conversations.api.program import HostedClient
from tests.conversations.attachments.files import picture, stored_in
from tests.conversations.belongings import (
    CLIENT,
    PICTURE,
    STARTS,
    Person,
    changed,
    everything,
    filled,
    kinds_in,
    mixtures,
    two_people,
    unknown,
    without,
)
from tests.live import token_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

DOCUMENT: dict[str, Any] = orjson.loads(orjson.dumps(api.get_openapi_schema(), option=orjson.OPT_NON_STR_KEYS))

CONTEXT = {
    "messages": [{"id": "m-1", "role": "user", "blocks": [PICTURE]}],
    "modelContext": {"checkpoint": None, "modelState": None, "usage": None},
}
# What each parameter is sent as; None leaves it out. One that is not here is new: say whether it names something.
PARAMETERS = {
    "conversation_id": "{conversation}",
    "revision_id": "{revision}",
    "against": "{revision}",
    "execution_id": "{execution}",
    "seenInterrupt": "{interrupt}",
    "call_id": "{call}",
    "attachment_id": "{attachment}",
    "share_id": "{share}",
    "agent": "{agent}",
    "Idempotency-Key": "{key}",
    "clientId": CLIENT,
    "reason": "The owner asked for help.",
    "q": "said",
    "name": "a.png",
    "branch": "false",
    **dict.fromkeys(("limit", "cursor", "before", "tag", "pinned", "archived", "since", "until", "waitMs", "format")),
    "Last-Event-ID": None,
}
BODIES: dict[str, tuple[Any, ...]] = {
    "NewConversation": ({"agent": "{agent}", "context": CONTEXT}, {"context": CONTEXT}),
    "SaveBody": ({"title": "Mine", "revision": 1, "context": CONTEXT},),
    "PatchBody": ({"title": "Mine"},),
    "RestoreBody": ({"revisionId": "{revision}"},),
    "ForkBody": ({"revisionId": "{revision}"}, {"scope": "all"}),
    "ResetBody": ({"revision": 1},),
    "LabelBody": ({"label": "mine"},),
    "ShareBody": ({"revisionId": "{revision}"},),
    "SharePatch": ({"revisionId": "{revision}"}, {"expiresAt": None}),
    "StartBody": STARTS,
    "RespondBody": ({"interruptId": "{interrupt}", "value": True},),
    "ToolResultBody": ({"callId": "{call}", "result": 1},),
}
UPLOADS = {"/ai/attachments": picture(), "/ai/imports": b"[]"}
# Which run an operation is for; the others take one that is over.
ROLES = {"respond": "asked", "cancel": "asked", "tool-results": "called", "adopt": "stopped"}
METHODS = ("get", "put", "patch", "post", "delete")


class Asked(NamedTuple):
    """A request as a template; `content_type` is empty where there is no body."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    content_type: str


def requests_of(method: str, path: str) -> Iterator[Asked]:
    """Yield the requests that an operation is asked; fails for one with something that nobody has filled in yet."""
    operation = DOCUMENT["paths"][path][method]
    places: dict[str, dict[str, str]] = {"path": {}, "query": {}, "header": {}}
    for parameter in operation.get("parameters", ()):
        name = parameter["name"]
        assert name in PARAMETERS, f"say in PARAMETERS what {name!r} of {method} {path} names"
        if (value := PARAMETERS[name]) is not None:
            places[parameter["in"]][name] = value
    for name, value in places["path"].items():
        path = path.replace(f"{{{name}}}", value)
    for content_type, body in _bodies_of(operation, path):
        yield Asked(path, places["query"], places["header"], body, content_type)


def _bodies_of(operation: Any, path: str) -> Iterator[tuple[str, Any]]:
    content = operation.get("requestBody", {}).get("content")
    if not content:
        yield "", None
    elif "application/json" in content and path not in UPLOADS:
        schema = content["application/json"]["schema"]
        name = (schema.get("$ref") or schema["anyOf"][0]["$ref"]).rsplit("/", 1)[1]
        assert name in BODIES, f"say in BODIES what {name} names"
        mentioned = orjson.dumps(BODIES[name]).decode()
        for each in _names_of_ids(name, set()):
            assert f'"{each}":' in mentioned, f"say in BODIES what {each!r} of {name} names"
        for body in BODIES[name]:
            yield "application/json", body
    else:
        yield next(iter(content)), UPLOADS[path]


def _names_of_ids(name: str, seen: set[str]) -> set[str]:
    """Return the members of a body that name something; the messages of a context name only one another."""
    if name == "Context" or name in seen:
        return set()
    seen.add(name)
    found: set[str] = set()
    schema = DOCUMENT["components"]["schemas"][name]
    for member, value in schema.get("properties", {}).items():
        text = orjson.dumps(value).decode()
        if member.endswith(("Id", "Ids")) or '"uuid"' in text:
            found.add(member)
        for other in text.split('"#/components/schemas/')[1:]:
            found |= _names_of_ids(other.split('"')[0], seen)
    return found


def requests() -> list[tuple[str, str, Asked]]:
    return [
        (method, path, asked)
        for path, operations in DOCUMENT["paths"].items()
        for method in operations
        for asked in requests_of(method, path)
    ]


def role_of(method: str, path: str) -> str:
    return ROLES.get(path.rsplit("/", maxsplit=1)[-1], "done") if method == "post" else "done"


class Client:
    """A program of one person."""

    def __init__(self, host: Any, token: str) -> None:
        self.client = HostedClient(host)
        self.token = token

    async def __call__(self, method: str, asked: Asked) -> tuple[int, str]:
        sent: dict[str, Any] = {}
        if asked.body is not None:
            raw = asked.body if isinstance(asked.body, bytes) else orjson.dumps(asked.body)
            sent = {"data": raw, "content_type": asked.content_type}
        answer = await self.client.generic(
            method.upper(),
            asked.path,
            headers={"Authorization": f"Bearer {self.token}", **asked.headers},
            query_params=asked.query,
            **sent,
        )
        if not answer.streaming:
            return answer.status_code, answer.content.decode("utf-8", "replace")
        pieces = [bytes(piece) async for piece in answer.streaming_content]
        return answer.status_code, b"".join(pieces).decode("utf-8", "replace")


def with_ids(asked: Asked, ids: Any) -> Asked:
    if isinstance(asked.body, bytes):
        return Asked(*filled([asked.path, asked.query, asked.headers], ids), asked.body, asked.content_type)
    return Asked(*filled(list(asked), ids))


def kinds_of(asked: Asked) -> set[str]:
    return kinds_in(list(asked[:3] if isinstance(asked.body, bytes) else asked))


async def test_what_is_somebody_elses_is_as_if_it_were_not(tmp_path: Path) -> None:
    """B77, R125: status and words are those for ids that nothing has, and nothing changes."""
    found: list[object] = []
    with stored_in(tmp_path):
        async with two_people() as (host, owner, stranger):
            send = Client(host, await token_of(stranger.user))
            before = await sync_to_async(everything)()
            for method, path, asked in requests():
                for real, fresh in mixtures(kinds_of(asked), stranger, owner, role_of(method, path)):
                    got = await send(method, with_ids(asked, real))
                    wanted = await send(method, with_ids(asked, fresh))
                    assert got[0] != 429, got
                    if (got[0], without(got[1], real)) != (wanted[0], without(wanted[1], fresh)):
                        found.append((method, with_ids(asked, real), got, wanted))
                if rows := await sync_to_async(changed)(before):
                    found.append((method, asked, rows))
                    before = await sync_to_async(everything)()
            assert found == [], "\n".join(map(repr, found))
            await _carried_out(send, owner, stranger)


def _turn(each: tuple[str, str, Asked]) -> tuple[int, bool, int]:
    """Return when a request is sent: reading comes first, and last goes the conversation to which all belongs."""
    method, path, _ = each
    return METHODS.index(method), method == "delete" and path.startswith("/ai/conversations"), -len(path)


async def _carried_out(send: Client, owner: Person, stranger: Person) -> None:
    """Send each request for what is one's own: or else the walk would prove nothing."""
    for method, path, asked in sorted(requests(), key=_turn):
        ids = stranger.of(role_of(method, path), *kinds_of(asked)) | unknown(["key"])
        status, body = await send(method, with_ids(asked, ids))
        assert status < 300 or status == 409 or path.startswith("/ai/admin/"), (method, asked, status, body)
        assert not any(name in body for name in owner.names()), (method, asked, body)
