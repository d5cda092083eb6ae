"""Tickets: how a page of another site opens a socket, since a browser cannot send a header with one."""

from __future__ import annotations

from datetime import datetime

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from agent.runtime.messages import Value
from conversations.api.auth import credential
from conversations.models import SocketTicket

router = Router()


class Ticket(Value):
    """Opens one socket until `expires_at`; cannot be shown again."""

    ticket: str
    expires_at: datetime


@router.post("", response={201: Ticket}, by_alias=True, summary="A ticket that opens one socket within 30 seconds")
async def make_ticket(request: HttpRequest, response: HttpResponse) -> Status[Ticket]:
    caller = credential(request)
    issue = sync_to_async(SocketTicket.issue)
    row, plain = await issue(caller.user, token_id=caller.token_id, session_key=caller.session_key)
    response["Cache-Control"] = "no-store"
    return Status(201, Ticket(ticket=plain, expires_at=row.expires))
