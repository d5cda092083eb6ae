"""People who have one of everything, and requests that name what is theirs.

A request is a template: JSON in which `{conversation}`, `{revision}` and so on stand for ids.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any
from uuid import uuid4

import orjson
from asgiref.sync import sync_to_async
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Group
from django.test import override_settings

from agent.runtime.events import Cancelled
from agent.runtime.ids import uuid7
from agent.runtime.messages import AgentMessage, ModelContext, TextBlock, ToolCallBlock, tool_result
from agent.testing import ScriptedModel, calls, says
from conversations import sharing, store
from conversations.attachments import keep, read_file
from conversations.hosting.host import ExecutionHost
from conversations.models import Execution, ExecutionStatus, IdempotentRequest, User
from tests.conversations.attachments.files import picture
from tests.conversations.store.writing import DONE, begin, said, state
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import hosted, socket_of

AGENT = "helper"
CLIENT = "page"  # everybody's: it says which of one's own pages is meant
UNHURRIED = {
    "requests_per_minute": 1_000_000,
    "commands_per_second": 10_000,
    "client_tool_timeout": 3600.0,
    "live_approval_timeout": 3600.0,
}
START = {"agent": AGENT, "input": [{"type": "text", "text": "Hello"}]}
AGAIN = {"agent": AGENT, "conversationId": "{conversation}"}
PICTURE = {"type": "image", "source": {"type": "url", "url": "attachment:{attachment}"}}
STARTS: tuple[dict[str, Any], ...] = (
    START | {"agent": "{agent}"},
    AGAIN | {"regenerateMessageId": "{message}"},
    START | {"conversationId": "{conversation}", "clientId": CLIENT},
    START | {"conversationId": "{conversation}", "fromRevisionId": "{revision}"},
    START | {"conversationId": "{conversation}", "editMessageId": "{message}"},
    START | {"conversationId": "{conversation}", "fromRevisionId": "{revision}", "editMessageId": "{message}"},
    AGAIN | {"fromRevisionId": "{revision}", "regenerateMessageId": "{message}"},
    START | {"input": [{"type": "attachment", "attachmentId": "{attachment}"}]},
    START | {"input": [PICTURE], "conversationId": "{conversation}", "fromRevisionId": "{revision}"},
)
READ = {"name": "clipboard.read", "description": "Clipboard.", "inputSchema": {"type": "object"}}
FRONT_END = [READ | {"annotations": {"readOnlyHint": True}}, READ | {"name": "clipboard.write"}]

_KIND = re.compile(r"\{([a-z]+)\}")
# Written by whoever asks, or by the clock.
_BESIDE = {"ApiToken", "AuditRecord", "HostProcess", "SocketTicket"}

Ids = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody and the ids of what they have: by kind, and by what is special about the one."""

    user: User
    ids: Mapping[str, Mapping[str, str]]

    def of(self, role: str, *kinds: str) -> dict[str, str]:
        """Return an id of each kind: the one in this role, or the first."""
        return {kind: self.ids[kind].get(role) or next(iter(self.ids[kind].values())) for kind in kinds}

    def names(self) -> set[str]:
        """Return all that nobody else may be told."""
        known = {id for kind, roles in self.ids.items() for id in roles.values() if kind != "agent"}
        return known | {self.user.email, f"said by {self.user.username}"}


def kinds_in(template: object) -> set[str]:
    """Return the kinds of ids that a request names."""
    return set(_KIND.findall(orjson.dumps(template).decode()))


def filled(template: object, ids: Ids) -> Any:
    """Return a request with its ids."""
    return orjson.loads(_KIND.sub(lambda found: ids[found[1]], orjson.dumps(template).decode()))


def without(text: str, ids: Ids) -> str:
    """Return an answer with the kind in place of each id, so that two answers can be compared."""
    for kind, id in ids.items():
        text = text.replace(id, f"<{kind}>")
    return text


def unknown(kinds: Collection[str]) -> dict[str, str]:
    """Return ids that nothing has."""
    prefix = {"call": "call-", "message": "message-", "interrupt": "interrupt-", "agent": "agent-"}
    return {kind: prefix.get(kind, "") + str(uuid4()) for kind in kinds}


def mixtures(kinds: Collection[str], mine: Person, theirs: Person, role: str) -> Iterator[tuple[Ids, Ids]]:
    """Return pairs of ids for a request of `mine`: with ids of `theirs` in some places, and with unknown ids there."""
    named = sorted(set(kinds) - {"key"})
    for count in range(1, len(named) + 1):
        for foreign in combinations(named, count):
            places = (*foreign, "key") if "key" in kinds else foreign
            own = mine.of(role, *(set(named) - set(foreign)))
            for turn in range(max(len(theirs.ids[kind]) for kind in places)):
                real = {kind: _turn(theirs.ids[kind], turn) for kind in places}
                yield {**own, **real}, {**own, **unknown(places)}


def _turn(roles: Mapping[str, str], turn: int) -> str:
    values = tuple(roles.values())
    return values[turn % len(values)]


def changed(before: Mapping[str, list[str]]) -> dict[str, set[str]]:
    """Return the rows that are others than before."""
    now = everything()
    return {name: set(now[name]) ^ set(before[name]) for name in now if now[name] != before[name]}


def everything() -> dict[str, list[str]]:
    """Return all that is stored of conversations and agents."""
    models = [model for name in ("conversations", "agent") for model in apps.get_app_config(name).get_models(True)]
    return {
        model.__name__: sorted(map(repr, model._base_manager.values_list()))
        for model in models
        if model.__name__ not in _BESIDE
    }


@asynccontextmanager
async def two_people() -> AsyncIterator[tuple[ExecutionHost, Person, Person]]:
    """A host, and two people with the same belongings: settled ones, a stopped run, and two runs that wait."""
    await sync_to_async(AgentProfileFactory)(slug=AGENT, all_tools=True)
    users = [await sync_to_async(UserFactory)() for _ in "ab"]
    calm = settings.PAR.model_copy(update=UNHURRIED)
    script = [step for _ in users for step in (calls(("clipboard.write", {})), calls(("clipboard.read", {})))]
    with override_settings(PAR=calm):
        async with hosted(ScriptedModel(*script, *(says("Done") for _ in range(16)))) as host:
            one, other = [await _somebody(host, user) for user in users]
            yield host, one, other


async def _somebody(host: ExecutionHost, user: User) -> Person:
    ids = await sync_to_async(_settle)(user)
    async with socket_of(host, user) as socket:
        for role, sign in (("asked", "interrupt-requested"), ("called", "client-tool-call")):
            ack = await socket.say(f"said by {user.username}", AGENT, clientId=CLIENT, clientTools=FRONT_END)
            assert ack["type"] == "ack", ack
            frame = await socket.until(sign)
            ids["conversation"][role], ids["execution"][role] = ack["conversationId"], ack["executionId"]
            ids["key"][role] = ack["id"]
            if role == "asked":
                ids["interrupt"] = {role: frame["interrupt"]["id"]}
            else:
                ids["call"][role] = frame["callId"]
    asked = Execution.objects.filter(pk=ids["execution"]["asked"], status=ExecutionStatus.WAITING_INPUT)
    await _until(asked.exists)
    return Person(user, ids)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not await sync_to_async(holds)():
            pass


def _settle(user: User) -> dict[str, dict[str, str]]:
    text = f"said by {user.username}"
    closed = AgentProfileFactory()
    group = Group.objects.create(name=f"friends of {user.username}")
    closed.groups.add(group)
    user.groups.add(group)
    execution = begin(user, text, agent=AGENT)
    call = ToolCallBlock(call_id=f"call-{uuid4()}", name="look", input={})
    result = tool_result(call, text, status="success", execution="completed")
    messages = (
        AgentMessage.from_wire(execution.input),
        said(text, "assistant").model_copy(update={"blocks": (TextBlock(text=text), call)}),
        AgentMessage(id=f"message-{uuid4()}", role="tool", blocks=(result,)),
        said(text, "assistant"),
    )
    revision = store.save_turn(execution, messages, state(text), DONE)
    talk = execution.conversation
    stopped = begin(user, text, agent=AGENT)
    store.finish_failed(
        stopped,
        status=ExecutionStatus.CANCELLED,
        messages=(AgentMessage.from_wire(stopped.input), said(text, "assistant")),
        model_context=ModelContext(model_state=None),
        outcome=Cancelled(reason="user"),
    )
    files = [keep(user, read_file(picture(width), f"{text}.png")) for width in (20, 30)]
    shown = begin(user, text, agent=AGENT)
    seen = AgentMessage.from_wire({**shown.input, "blocks": [PICTURE | _source(files[1].pk)]})
    second = store.save_turn(shown, (seen, said(text, "assistant")), state(text), DONE)
    share, _ = sharing.create_share(user, talk.pk)
    revoked, _ = sharing.create_share(user, talk.pk)
    sharing.revoke(revoked, user)
    request = IdempotentRequest.objects.create(user=user, key=uuid7(), digest="d")
    return {
        "agent": {"closed": closed.slug},
        "conversation": {"done": str(talk.pk), "stopped": str(stopped.conversation_id)},
        "revision": {"done": str(revision.public_id), "other": str(second.public_id)},
        "execution": {"done": str(execution.pk), "stopped": str(stopped.pk)},
        "message": {"asked": messages[0].id, "answered": messages[-1].id},
        "call": {"done": call.call_id},
        "attachment": {"unsent": str(files[0].pk), "sent": str(files[1].pk)},
        "share": {"live": str(share.pk), "revoked": str(revoked.pk)},
        "key": {"done": str(execution.request_id), "other": str(request.key)},
    }


def _source(id: object) -> dict[str, Any]:
    return {"source": {"type": "url", "url": f"attachment:{id}"}}
