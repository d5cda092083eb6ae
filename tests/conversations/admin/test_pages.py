from __future__ import annotations

import re

import pytest
from allauth.account.models import EmailAddress
from django.test import Client

from agent.runtime.events import Completed
from agent.runtime.ids import uuid7
from agent.runtime.messages import (
    AgentMessage,
    ModelContext,
    ModelState,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from conversations import store
from conversations.models import ApiToken, Conversation, Execution, ExecutionStatus, OneTimeLink, Revision, User
from tests.factories import AdministratorFactory, AgentProfileFactory, ApiTokenFactory, UserFactory

pytestmark = pytest.mark.django_db

CALL = ToolCallBlock(call_id="call_1", name="look", input={"in": "数据 <b>"})
RESULT = ToolResultBlock(
    call_id="call_1", name="look", status="success", content=(TextBlock(text="found"),), execution="completed"
)


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(AdministratorFactory())
    return client


def page(client: Client, address: str) -> str:
    response = client.get(f"/admin/{address}")
    assert response.status_code == 200, (address, response)
    return response.content.decode()


def allow(client: Client, conversation: Conversation) -> None:
    """Give a reason to read a conversation."""
    address = f"/admin/conversations/conversation/{conversation.pk}/reason/"
    assert client.post(address, {"reason": "a support request"}).status_code == 302


def turn(user: User, text: str, conversation: Conversation | None = None) -> Revision:
    at = uuid7().hex
    asked = CALL.model_copy(update={"call_id": at})
    message = AgentMessage(id=f"m1-{at}", role="user", blocks=(TextBlock(text=text),))
    begun = store.begin_turn(
        user=user,
        request_id=uuid7(),
        digest="d",
        message=message,
        agent="demo",
        conversation_id=conversation.pk if conversation else None,
    )
    messages = (
        message,
        AgentMessage(id=f"m2-{at}", role="assistant", blocks=(ReasoningBlock(text="思考"), asked)),
        AgentMessage(id=f"m3-{at}", role="tool", blocks=(RESULT.model_copy(update={"call_id": at}),)),
        AgentMessage(id=f"m4-{at}", role="assistant", blocks=(TextBlock(text=f"answer to {text}"),)),
    )
    context = ModelContext(model_state=ModelState(format="x/1", data={"键": 1}))
    return store.save_turn(begun.execution, messages, context, Completed(stop_reason="end-turn"))


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug="demo")
    return UserFactory()


def test_a_revision_shows_the_full_context_with_every_character(admin: Client, user: User) -> None:
    first = turn(user, "第一个 <script>")
    second = turn(user, "zweite Äußerung", first.conversation)
    allow(admin, first.conversation)
    shown = page(admin, f"conversations/revision/{second.pk}/change/")
    for text in (
        "第一个 &lt;script&gt;",
        "zweite Äußerung",
        "answer to zweite",
        "思考",
        "found",
        "数据 &lt;b&gt;",
        "键",
    ):
        assert text in shown, text
    assert "第一个 <script>" not in shown


def test_a_revision_that_cannot_be_read_says_so(admin: Client, user: User) -> None:
    """R123."""
    row = turn(user, "x")
    Revision.objects.update(context=[{"broken": True}])
    allow(admin, row.conversation)
    assert "cannot be read" in page(admin, f"conversations/revision/{row.pk}/change/")


def test_history_can_be_read_and_not_be_changed(admin: Client, user: User) -> None:
    row = turn(user, "x")
    execution = Execution.objects.get()
    allow(admin, row.conversation)
    for name, pk in (("conversation", row.conversation_id), ("revision", row.pk), ("execution", execution.pk)):
        page(admin, f"conversations/{name}/")
        page(admin, f"conversations/{name}/{pk}/change/")
        assert admin.post(f"/admin/conversations/{name}/{pk}/change/", {"title": "y"}).status_code == 403
        assert admin.get(f"/admin/conversations/{name}/{pk}/delete/").status_code == 403
        assert admin.get(f"/admin/conversations/{name}/add/").status_code == 403
    page(admin, f"conversations/execution/?conversation={row.conversation_id}")


def test_a_person_with_conversations_is_not_deleted_and_the_page_says_what_to_do(admin: Client, user: User) -> None:
    turn(user, "x")
    address = f"conversations/user/{user.pk}/"
    shown = page(admin, f"{address}change/")
    assert f"{address}delete/" not in shown
    assert "take away “Active” instead" in shown
    assert admin.post(f"/admin/{address}delete/", {"post": "yes"}).status_code == 403
    other = UserFactory()
    assert f"user/{other.pk}/delete/" in page(admin, f"conversations/user/{other.pk}/change/")
    admin.post(f"/admin/conversations/user/{other.pk}/delete/", {"post": "yes"})
    assert User.objects.filter(pk=user.pk).exists()
    assert not User.objects.filter(pk=other.pk).exists()


def test_an_execution_shows_the_message_that_was_being_written(admin: Client, user: User) -> None:
    message = AgentMessage(id="m", role="user", blocks=(TextBlock(text="x"),))
    execution = store.begin_turn(user=user, request_id=uuid7(), digest="d", message=message, agent="demo").execution
    blocks = [
        {"type": "reasoning", "text": "思考 <i>"},
        {"type": "text", "text": "half an answer"},
        {"type": "tool-call", "callId": "call_9", "name": "look", "text": '{"in": "quarter'},
    ]
    store.finish_failed(
        execution,
        status=ExecutionStatus.CANCELLED,
        messages=(message,),
        partial={"messageId": "m2", "blocks": blocks},
        model_context=None,
    )
    allow(admin, execution.conversation)
    shown = page(admin, f"conversations/execution/{execution.pk}/change/")
    for text in (
        "思考 &lt;i&gt;",
        "half an answer",
        "was about to call look (call_9)",
        "{&quot;in&quot;: &quot;quarter",
    ):
        assert text in shown, text


def test_a_failed_execution_shows_what_was_said(admin: Client, user: User) -> None:
    message = AgentMessage(id="m", role="user", blocks=(TextBlock(text="问题"),))
    execution = store.begin_turn(user=user, request_id=uuid7(), digest="d", message=message, agent="demo").execution
    half = AgentMessage(id="m2", role="assistant", blocks=(TextBlock(text="半个"),))
    store.finish_failed(
        execution,
        status=ExecutionStatus.FAILED,
        messages=(message, half),
        model_context=None,
        error_code="MODEL_FAILED",
        error_message="refused",
    )
    allow(admin, execution.conversation)
    shown = page(admin, f"conversations/execution/{execution.pk}/change/")
    for text in ("问题", "半个", "MODEL_FAILED", "refused"):
        assert text in shown


def test_a_token_made_here_is_shown_once_and_works(admin: Client, user: User) -> None:
    form = {"user": str(user.pk), "name": "script", "scopes": ["read"], "expires_at_0": "", "expires_at_1": ""}
    response = admin.post("/admin/conversations/apitoken/add/", form, follow=True)
    (plain,) = set(re.findall(r"par_[\w-]{40,}", response.content.decode()))
    row = ApiToken.find(plain)
    assert row is not None
    assert (row.user, row.name, row.scopes) == (user, "script", ["read"])
    shown = page(admin, f"conversations/apitoken/{row.pk}/change/") + page(admin, "conversations/apitoken/")
    assert plain not in shown
    assert row.digest not in shown
    assert admin.post(f"/admin/conversations/apitoken/{row.pk}/change/", {"name": "x"}).status_code == 403


def test_only_staff_gets_a_token_that_administers(admin: Client, user: User) -> None:
    form = {"user": str(user.pk), "name": "script", "scopes": ["admin"], "expires_at_0": "", "expires_at_1": ""}
    response = admin.post("/admin/conversations/apitoken/add/", form)
    assert "Only staff can have" in response.content.decode()
    assert not ApiToken.objects.exists()
    User.objects.filter(pk=user.pk).update(is_staff=True)
    assert admin.post("/admin/conversations/apitoken/add/", form).status_code == 302
    assert ApiToken.objects.get().scopes == ["admin"]


def test_tokens_are_revoked_from_the_list(admin: Client) -> None:
    row = ApiTokenFactory()
    admin.post("/admin/conversations/apitoken/", {"action": "revoke", "_selected_action": [str(row.pk)]})
    assert ApiToken.find(row.plain) is None


def test_a_person_made_here_can_sign_in(admin: Client, client: Client) -> None:
    password = "a quiet river 42"
    form = {"username": "mary", "email": "Mary@Example.org", "password1": password, "password2": password}
    response = admin.post("/admin/conversations/user/add/", form | {"usable_password": "true"})
    assert response.status_code == 302, response.content.decode()
    assert EmailAddress.objects.get(user__username="mary").verified
    client.logout()
    response = client.post("/accounts/login/", {"login": "mary@example.org", "password": password})
    assert response.status_code == 302
    assert client.session["_auth_user_id"] == str(User.objects.get(username="mary").pk)


def test_every_list_opens_and_links_are_not_there(admin: Client) -> None:
    OneTimeLink.issue(UserFactory())
    index = page(admin, "")
    assert "Runs now" in index
    for address in re.findall(r'href="/admin/(\w+/\w+/)"', index):
        page(admin, address)
    assert "onetimelink" not in index


def test_the_admin_is_for_staff(client: Client) -> None:
    client.force_login(UserFactory())
    assert client.get("/admin/").status_code in (302, 403)
    client.logout()
    response = client.get("/admin/", follow=True)
    assert response.redirect_chain[-1][0].startswith("/accounts/login/")
