"""Search over HTTP."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from ninja import Query as Parameter
from ninja import Router
from pydantic import Field, StringConstraints

from agent.runtime.values import Text
from conversations.api import schemas
from conversations.api.auth import SessionOrBearer, credential
from conversations.models import User
from conversations.search import Filters, Query, search

READ = SessionOrBearer("read")
REFUSED = {frozenset({400, 401, 403, 429}): schemas.ErrorBody}

Name = Annotated[Text, StringConstraints(max_length=100)]
Place = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$|^[1-8][0-9]{18}$")]

router = Router(tags=["search"])


@router.get(
    "",
    auth=READ,
    response={200: schemas.SearchResult, **REFUSED},
    by_alias=True,
    summary="Search your conversations, newest first",
)
async def search_conversations(
    request: HttpRequest,
    q: Annotated[Text, Parameter(description="Words and “phrases”; the last word may be the beginning of one.")],
    agent: Annotated[Name | None, Parameter(description="Its slug.")] = None,
    since: Annotated[date | None, Parameter(description="The first day, in UTC.")] = None,
    until: Annotated[date | None, Parameter(description="The last day, in UTC.")] = None,
    pinned: bool | None = None,
    archived: bool | None = None,
    tag: Name | None = None,
    cursor: Annotated[Place | None, Parameter(description="`nextCursor` of the page before.")] = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
) -> schemas.SearchResult:
    """Finds messages of people and models, in any branch, and titles. Temporary conversations are not found."""
    filters = Filters(agent=agent, since=since, until=until, pinned=pinned, archived=archived, tag=tag)
    before = None if cursor is None else int(cursor)
    return await sync_to_async(_search)(credential(request).user, q, filters, before, limit)


def _search(user: User, text: str, filters: Filters, before: int | None, limit: int) -> schemas.SearchResult:
    return schemas.SearchResult.of(search(user, Query.parse(text), filters, before=before, limit=limit))
