"""Tickets: how a page of another site opens a socket, since a browser cannot send a header with one."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest, HttpResponse
from ninja import Router

from agent.runtime.messages import Value
from conversations.api.auth import credential
from conversations.api.idempotency import IdempotencyKey, once
from conversations.api.schemas import REFUSED
from conversations.models import SocketTicket

router = Router()


class Ticket(Value):
    """Opens one socket until `expires_at`; cannot be shown again."""

    ticket: str
    expires_at: datetime


@router.post(
    "", response={201: Ticket, **REFUSED}, by_alias=True, summary="A ticket that opens one socket within 30 seconds"
)
async def make_ticket(request: HttpRequest, idempotency_key: IdempotencyKey = None) -> HttpResponse:
    caller = credential(request)

    def make() -> Ticket:
        row, plain = SocketTicket.issue(caller.user, token_id=caller.token_id, session_key=caller.session_key)
        return Ticket(ticket=plain, expires_at=row.expires)

    response = await once(request, idempotency_key, make, status=201)
    response["Cache-Control"] = "no-store"
    return response
