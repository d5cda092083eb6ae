"""Runs over HTTP: started, read, followed, answered, stopped and continued from."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any
from uuid import UUID, uuid4

import orjson
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from ninja import Body, Header, Query, Router, Status

from conversations import store
from conversations.api import execution_schemas, schemas
from conversations.api.auth import READ, WRITE, credential
from conversations.api.events import EventStream
from conversations.api.idempotency import IdempotencyKey, claimed
from conversations.api.parsing import from_wire
from conversations.api.serving import cut_off_of, host_of, release_thread
from conversations.bodies import RespondBody, StartBody, ToolResultBody
from conversations.exceptions import Unauthorized
from conversations.hosting.past import state_of
from conversations.hosting.record import read_execution
from conversations.hosting.setup import Begun, StartRequest

REFUSED = schemas.REFUSED
LONGEST_WAIT = 30_000
EVENTS = {
    "responses": {
        200: {
            "description": "One event for each frame of the websocket; `data` is the frame.",
            "content": {
                "text/event-stream": {"schema": {"type": "string"}, "example": execution_schemas.EVENT_EXAMPLE}
            },
        },
        204: {"description": "The run has ended, and `Last-Event-ID` is its last event."},
    }
}

router = Router(tags=["executions"])


@router.post(
    "",
    auth=WRITE,
    response={202: execution_schemas.Started, **REFUSED},
    by_alias=True,
    summary="Start a run",
)
async def start_execution(
    request: HttpRequest,
    body: Annotated[StartBody, from_wire(StartBody), Body()],
    idempotency_key: IdempotencyKey = None,
) -> Status[execution_schemas.Started]:
    """Answers as soon as the start is stored. With the same `Idempotency-Key` it may be sent again."""

    def announce(begun: Begun) -> None:
        """Nobody follows the run yet."""

    wanted = StartRequest(idempotency_key or uuid4(), body)
    begun = await host_of(request).start_run(credential(request).user, wanted, announce)
    return Status(
        202,
        execution_schemas.Started(
            execution_id=UUID(begun.execution_id),
            conversation_id=UUID(begun.conversation_id),
            created=begun.created,
            model_state_reset=begun.state_dropped,
        ),
    )


@router.get(
    "/{execution_id}",
    auth=READ,
    response={200: execution_schemas.ExecutionRow, **REFUSED},
    by_alias=True,
    summary="A run as it is, or as soon as it has ended or needs a person",
)
async def get_execution(
    request: HttpRequest,
    execution_id: UUID,
    wait_ms: Annotated[int, Query(alias="waitMs", ge=0, le=LONGEST_WAIT)] = 0,
    seen_interrupt: Annotated[str | None, Query(alias="seenInterrupt", max_length=64)] = None,
) -> HttpResponse:
    """With `waitMs` the answer may take so long. `seenInterrupt` is the id of an interrupt not to be told of again."""
    release_thread()
    host, caller = host_of(request), credential(request)
    wait, place = wait_ms / 1000, host.places.held(caller.user.pk) if wait_ms else nullcontext()
    with place:
        record = await read_execution(host, caller.user, execution_id, wait=wait, seen_interrupt=seen_interrupt)
    if wait_ms and not await host.executor.run(caller.holds):
        raise Unauthorized("sign in again")
    return _json(record.to_wire())


@router.get(
    "/{execution_id}/events",
    auth=READ,
    response=REFUSED,
    openapi_extra=EVENTS,
    summary="A run as server-sent events",
)
async def follow_execution(
    request: HttpRequest,
    execution_id: UUID,
    client_id: Annotated[str | None, Query(alias="clientId", min_length=1, max_length=128)] = None,
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID", pattern=r"^\d{1,15}$")] = None,
) -> HttpResponseBase:
    """Begins with a snapshot, unless `Last-Event-ID` is the run's last event. With `clientId` its calls come, too."""
    host, caller = host_of(request), credential(request)
    if client_id is not None:
        caller.demand("write")
    seen = None if last_event_id is None else int(last_event_id)
    found = await host.find_execution(caller.user, execution_id)
    if found.state is not None and found.state.ended and found.state.seq == seen:
        return HttpResponse(status=204)
    stream = EventStream(host, caller, execution_id, seen, client_id, cut_off_of(request))
    return StreamingHttpResponse(
        stream.events(),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


@router.post(
    "/{execution_id}/cancel",
    auth=WRITE,
    response={200: execution_schemas.Stopped, **REFUSED},
    by_alias=True,
    summary="Stop a run, as often as you like",
)
async def cancel_execution(
    request: HttpRequest, execution_id: UUID, idempotency_key: IdempotencyKey = None
) -> execution_schemas.Stopped:
    async with claimed(request, idempotency_key):
        status = await host_of(request).cancel(credential(request).user, execution_id)
    return execution_schemas.Stopped(execution_id=execution_id, status=status)


@router.post(
    "/{execution_id}/respond",
    auth=WRITE,
    response={200: execution_schemas.Responded, **REFUSED},
    by_alias=True,
    summary="Allow or refuse the tool call that a run waits for",
)
async def respond_to_interrupt(
    request: HttpRequest,
    execution_id: UUID,
    body: Annotated[RespondBody, from_wire(RespondBody), Body()],
    idempotency_key: IdempotencyKey = None,
) -> execution_schemas.Responded:
    """The first answer wins; the same again changes nothing."""
    async with claimed(request, idempotency_key):
        await host_of(request).decide(credential(request).user, execution_id, body.interrupt_id, body.decision())
    return execution_schemas.Responded(execution_id=execution_id, interrupt_id=body.interrupt_id)


@router.post(
    "/{execution_id}/tool-results",
    auth=WRITE,
    response={200: execution_schemas.ResultTaken, **REFUSED},
    by_alias=True,
    summary="Answer the call of a front-end tool",
)
async def answer_client_call(
    request: HttpRequest,
    execution_id: UUID,
    body: Annotated[ToolResultBody, from_wire(ToolResultBody), Body()],
    idempotency_key: IdempotencyKey = None,
) -> execution_schemas.ResultTaken:
    """The first result counts; the same again changes nothing."""
    async with claimed(request, idempotency_key):
        await host_of(request).answer_client_call(credential(request).user, execution_id, body)
    return execution_schemas.ResultTaken(execution_id=execution_id, call_id=body.call_id)


@router.post(
    "/{execution_id}/adopt",
    auth=WRITE,
    response={200: schemas.ConversationHead, **REFUSED},
    by_alias=True,
    summary="Continue from here: make what a stopped or failed run said part of its conversation",
)
async def adopt_execution(
    request: HttpRequest, execution_id: UUID, branch: bool = False, idempotency_key: IdempotencyKey = None
) -> schemas.ConversationHead:
    """Doing it again gives the same answer: `revision` is the one that the run became, wherever it stands by now.

    With `branch` it becomes a branch where the conversation has gone on since.
    """
    host, user = host_of(request), credential(request).user
    async with claimed(request, idempotency_key):
        adopted = await host.executor.run(lambda: store.adopt_recovered(user, execution_id, as_branch=branch))
    if adopted.created:
        host.hub.tell(state_of(adopted.execution))
    row = schemas.ConversationRow.of(adopted.execution.conversation)
    return schemas.ConversationHead(conversation=row.model_copy(update={"revision": adopted.number}))


def _json(value: Any) -> HttpResponse:
    return HttpResponse(orjson.dumps(value, option=orjson.OPT_UTC_Z), content_type="application/json")
