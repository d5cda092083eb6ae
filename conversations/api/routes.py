"""The HTTP API below the base path (R144 ff., the part that exists)."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from agent.models import AgentProfile
from conversations.api.admin import router as administration
from conversations.api.attachments import router as attachments
from conversations.api.auth import READ, credential
from conversations.api.conversations import router as conversations
from conversations.api.errors import install
from conversations.api.examples import EXAMPLES
from conversations.api.executions import router as executions
from conversations.api.moving import router as moving
from conversations.api.parsing import JsonParser
from conversations.api.results import router as results
from conversations.api.revisions import router as revisions
from conversations.api.schemas import REFUSED, AgentList, AgentRow
from conversations.api.search import router as search
from conversations.api.shares import of_conversation as conversation_shares
from conversations.api.shares import router as shares
from conversations.api.tickets import router as tickets
from conversations.api.usage import router as usage
from conversations.models import User


class DocumentedAPI(NinjaAPI):
    """An API whose schemas come with examples."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        for name, example in EXAMPLES.items():
            schema["components"]["schemas"][name]["examples"] = [example]
        return schema


api = DocumentedAPI(title="PAR", version="1", urls_namespace="par-api", docs_url=None, auth=READ, parser=JsonParser())
install(api)
api.add_router("/admin", administration)
api.add_router("/conversations", conversations)
api.add_router("/conversations", revisions)
api.add_router("/conversations", conversation_shares)
api.add_router("/shares", shares)
api.add_router("/executions", executions)
api.add_router("/search", search)
api.add_router("/usage", usage)
api.add_router("/attachments", attachments)
api.add_router("", results)
api.add_router("/tickets", tickets)
api.add_router("", moving)


def caller(request: HttpRequest) -> User:
    return credential(request).user


@api.get("/agents", response={200: AgentList, **REFUSED}, by_alias=True, summary="Agents that you may use")
async def list_agents(request: HttpRequest) -> AgentList:
    return await sync_to_async(_agents)(caller(request))


def _agents(user: User) -> AgentList:
    return AgentList(agents=tuple(map(AgentRow.of, AgentProfile.objects.visible_to(user))))
