"""The HTTP API below the base path (R144 ff., the part that exists)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest
from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from agent.models import AgentProfile
from conversations import store
from conversations.api.auth import SessionOrBearer, credential
from conversations.api.errors import install
from conversations.api.examples import EXAMPLES
from conversations.api.executions import router as executions
from conversations.api.parsing import JsonParser
from conversations.api.schemas import AgentList, AgentRow, ConversationList, ConversationRow, ConversationSnapshot
from conversations.api.tickets import router as tickets
from conversations.models import Conversation, User

READ = SessionOrBearer("read")


class DocumentedAPI(NinjaAPI):
    """An API whose schemas come with examples."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        for name, example in EXAMPLES.items():
            schema["components"]["schemas"][name]["examples"] = [example]
        return schema


api = DocumentedAPI(title="PAR", version="1", urls_namespace="par-api", docs_url=None, auth=READ, parser=JsonParser())
install(api)
api.add_router("/executions", executions)
api.add_router("/tickets", tickets)


def caller(request: HttpRequest) -> User:
    return credential(request).user


@api.get("/agents", response=AgentList, by_alias=True, summary="Agents that you may use")
async def list_agents(request: HttpRequest) -> AgentList:
    return await sync_to_async(_agents)(caller(request))


@api.get("/conversations", response=ConversationList, by_alias=True, summary="Your conversations, newest first")
async def list_conversations(request: HttpRequest) -> ConversationList:
    return await sync_to_async(_conversations)(caller(request))


@api.get(
    "/conversations/{conversation_id}",
    response=ConversationSnapshot,
    by_alias=True,
    summary="One of your conversations with all its messages",
)
async def get_conversation(request: HttpRequest, conversation_id: UUID) -> ConversationSnapshot:
    return await sync_to_async(_snapshot)(caller(request), conversation_id)


def _agents(user: User) -> AgentList:
    return AgentList(agents=tuple(map(AgentRow.of, AgentProfile.objects.visible_to(user))))


def _conversations(user: User) -> ConversationList:
    rows = Conversation.objects.filter(owner=user).select_related("agent")[: settings.PAR.conversation_list_limit]
    return ConversationList(conversations=tuple(map(ConversationRow.of, rows)))


def _snapshot(user: User, conversation_id: UUID) -> ConversationSnapshot:
    conversation = store.owned_conversation(user, conversation_id)
    context = store.load_context(conversation, conversation.head)
    return ConversationSnapshot(
        conversation=ConversationRow.of(conversation),
        messages=tuple(message.to_wire() for message in context.messages),
    )
