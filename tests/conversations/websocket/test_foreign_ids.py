"""Every command of the protocol, sent for what is somebody else's: it is answered as if that were not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from asgiref.sync import sync_to_async

from conversations.hosting.host import ExecutionHost
from conversations.websocket.protocol import Command
from tests.conversations.attachments.files import stored_in
from tests.conversations.belongings import (
    CLIENT,
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
from tests.live import Socket, socket_of

pytestmark = pytest.mark.django_db(transaction=True)

KINDS: dict[str, type[Any]] = {
    each.model_fields["type"].annotation.__args__[0]: each for each in get_args(get_args(Command)[0])
}
# In the order in which one's own are carried out.
COMMANDS: dict[str, tuple[dict[str, Any], ...]] = {
    "ping": ({},),
    "subscribe": (
        {"conversationId": "{conversation}", "clientId": CLIENT},
        {"executionId": "{execution}", "clientId": CLIENT},
    ),
    "unsubscribe": ({"conversationId": "{conversation}"},),
    "reject": ({"executionId": "{execution}", "interruptId": "{interrupt}"},),
    "approve": ({"executionId": "{execution}", "interruptId": "{interrupt}"},),
    "tool-result": ({"executionId": "{execution}", "callId": "{call}", "result": 1},),
    "cancel": ({"executionId": "{execution}"},),
    "start": tuple(start | {"id": "{key}"} for start in STARTS),
}
# Which run a command is for; the others take one that is over.
ROLES = {"approve": "asked", "reject": "asked", "tool-result": "called", "cancel": "asked"}


def test_the_walk_knows_every_command_and_all_that_it_may_name() -> None:
    assert COMMANDS.keys() == KINDS.keys()
    for name, command in KINDS.items():
        sent = orjson.dumps(COMMANDS[name]).decode()
        schema = orjson.dumps(command.model_json_schema(by_alias=True)).decode()
        for member in {each for each in schema.split('"') if each[1:].endswith("Id") and each.isidentifier()}:
            assert f'"{member}":' in sent, f"say in COMMANDS what {member!r} of {name!r} names"


def _each() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield each command with its name and the role of the run that it is for."""
    for name, commands in COMMANDS.items():
        for command in commands:
            yield name, command, ROLES.get(name, "done")


async def test_what_is_somebody_elses_is_as_if_it_were_not(tmp_path: Path) -> None:
    """B77: with their ids, with unknown ones, and beside one's own."""
    found: list[object] = []
    with stored_in(tmp_path):
        async with two_people() as (host, owner, stranger):
            before = await sync_to_async(everything)()
            async with socket_of(host, stranger.user) as socket:
                for name, command, role in _each():
                    for real, fresh in mixtures(kinds_in(command), stranger, owner, role):
                        got, wanted = [await _refused(socket, name, command, each) for each in (real, fresh)]
                        if got != wanted:
                            found.append((name, filled(command, real), got, wanted))
                    assert await sync_to_async(changed)(before) == {}, command
            assert found == []
            await _carried_out(host, owner, stranger)


async def _refused(socket: Socket, name: str, command: dict[str, Any], ids: Mapping[str, str]) -> str:
    """Send a command with these ids and return its answer without them."""
    socket.frames.clear()
    answer = await socket.command(type=name, **filled(command, ids))
    assert socket.frames == [answer], "nothing else may come of a refusal"
    assert answer.get("code") != "RATE_LIMITED"
    return without(orjson.dumps({**answer, "id": ""}).decode(), ids)


async def _carried_out(host: ExecutionHost, owner: Person, stranger: Person) -> None:
    """Send each command for what is one's own: or else the walk would prove nothing."""
    async with socket_of(host, stranger.user) as socket:
        for name, command, role in _each():
            ids = stranger.of(role, *kinds_in(command)) | unknown(["key"])
            answer = await socket.command(type=name, **filled(command, ids))
            assert answer["type"] == "ack" or answer["code"] == "INVALID_STATE", (command, answer)
        assert not any(name in orjson.dumps(socket.frames).decode() for name in owner.names())
