"""Search over HTTP."""

from __future__ import annotations

from typing import Annotated

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from ninja import Query as Parameter
from ninja import Router

from agent.runtime.values import Text
from conversations.api import schemas
from conversations.api.auth import READ, credential
from conversations.api.parsing import Moment
from conversations.api.serving import json_answer
from conversations.search import Filters, Query, search

router = Router(tags=["search"])


@router.get(
    "",
    auth=READ,
    response={200: schemas.SearchResult, **schemas.REFUSED},
    by_alias=True,
    summary="Search your conversations, newest first",
)
async def search_conversations(
    request: HttpRequest,
    q: Text,
    limit: Annotated[int, Parameter(ge=1, le=100)] = 20,
    cursor: Annotated[str | None, Parameter(pattern=r"^([0-9]{1,18}|[1-8][0-9]{18})$")] = None,
    agent: Annotated[Text | None, Parameter(max_length=64)] = None,
    tag: Annotated[Text | None, Parameter(max_length=50)] = None,
    pinned: bool | None = None,
    archived: bool | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> HttpResponse:
    """Finds messages of people and models, in any branch, and titles. Temporary conversations are not found.

    The last word of `q` may be the beginning of one; "words in quotes" stand together. `since` and `until` are times of
    the messages; `nextCursor` of an answer is the `cursor` of the next page.
    """
    filters = Filters(agent=agent, since=since, until=until, pinned=pinned, archived=archived, tag=tag)
    user, before = credential(request).user, None if cursor is None else int(cursor)

    def find() -> schemas.SearchResult:
        return schemas.SearchResult.of(search(user, Query.parse(q), filters, before=before, limit=limit))

    return json_answer(await sync_to_async(find)())
