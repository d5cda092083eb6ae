"""Export and import over HTTP: rights, forms, limits and the shape of what comes back."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.core.cache import cache
from django.test import Client

from conversations.api.moving import _pieces
from conversations.models import ApiToken, Conversation, Revision, User
from tests.conversations.moving.files import chatgpt, zipped
from tests.factories import AgentProfileFactory, ConversationFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

FILE = json.dumps([chatgpt({"u": (None, "user", "Hi"), "a": ("u", "assistant", "Good day. 您好")})]).encode()


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug="helper", is_default=True)
    return UserFactory()


@pytest.fixture
def conversation(user: User) -> Conversation:
    row = ConversationFactory(owner=user, title="Straße 数据")
    said = {"id": "m-1", "role": "user", "blocks": [{"type": "text", "text": "Hello"}]}
    row.head = Revision.objects.create(conversation=row, number=1, context=[said])
    row.save()
    return row


def headers(user: User, *scopes: str) -> dict[str, str]:
    _, token = ApiToken.issue(user, "test", scopes=scopes or ("read", "write"))
    return {"Authorization": f"Bearer {token}"}


def get(user: User, path: str, *scopes: str) -> Any:
    return Client().get(path, headers=headers(user, *scopes))


def post(user: User, data: bytes, *scopes: str, query: str = "", **more: str) -> Any:
    given = headers(user, *scopes) | more
    return Client().post(f"/ai/imports{query}", data, content_type="application/octet-stream", headers=given)


def body(answer: Any) -> bytes:
    async def gathered() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    return async_to_sync(gathered)()


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize(
    ("form", "media_type", "begins"),
    [
        ("json", "application/json", b'{"format":"par-conversations","version":1'),
        ("markdown", "text/markdown; charset=utf-8", "# Straße 数据".encode()),
        ("html", "text/html; charset=utf-8", b"<!DOCTYPE html>"),
    ],
)
def test_a_conversation_is_a_file_in_three_forms(
    conversation: Conversation, form: str, media_type: str, begins: bytes
) -> None:
    answer = get(conversation.owner, f"/ai/conversations/{conversation.pk}/export?format={form}", "read")
    assert (answer.status_code, answer["Content-Type"], answer["Cache-Control"]) == (200, media_type, "no-store")
    assert body(answer).startswith(begins)
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "filename*=utf-8''Stra%C3%9Fe%20%E6%95%B0%E6%8D%AE." in answer["Content-Disposition"]
    assert answer["Content-Disposition"].startswith("inline" if form == "html" else "attachment")


def test_a_page_is_shown_with_a_policy_of_its_own(conversation: Conversation) -> None:
    answer = get(conversation.owner, f"/ai/conversations/{conversation.pk}/export?format=html")
    policy = answer["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "sandbox" in policy and "script-src" not in policy


@pytest.mark.parametrize(("form", "media_type"), [("json", "application/json"), ("html", "application/zip")])
def test_all_conversations_are_one_file(conversation: Conversation, form: str, media_type: str) -> None:
    ConversationFactory(owner=UserFactory(), title="theirs")
    answer = get(conversation.owner, f"/ai/export?format={form}", "read")
    assert (answer.status_code, answer["Content-Type"]) == (200, media_type)
    data = body(answer)
    if form == "json":
        (found,) = json.loads(data)["conversations"]
        assert found["conversationId"] == str(conversation.pk)
    else:
        (name,) = zipfile.ZipFile(io.BytesIO(data)).namelist()
        assert "Straße 数据" in name


def test_somebody_elses_conversation_looks_like_none(conversation: Conversation) -> None:
    other = UserFactory()
    answers = [get(other, f"/ai/conversations/{pk}/export") for pk in (conversation.pk, uuid4())]
    assert [code(answer) for answer in answers] == [(404, "CONVERSATION_NOT_FOUND")] * 2


def test_a_damaged_conversation_is_an_error_with_its_status(conversation: Conversation) -> None:
    """R123."""
    Revision.objects.update(context=[{"id": 1}])
    for form in ("json", "markdown", "html"):
        answer = get(conversation.owner, f"/ai/conversations/{conversation.pk}/export?format={form}")
        assert code(answer) == (500, "REVISION_CORRUPT")


def test_an_unknown_form_is_refused(conversation: Conversation) -> None:
    assert code(get(conversation.owner, "/ai/export?format=pdf")) == (400, "INVALID_ARGUMENT")


def test_scopes_count(user: User) -> None:
    assert code(get(user, "/ai/export", "write")) == (403, "FORBIDDEN")
    assert code(post(user, FILE, "read")) == (403, "FORBIDDEN")
    assert code(Client().post("/ai/imports", FILE, content_type="application/json")) == (401, "AUTH_REQUIRED")


def test_a_file_is_taken_in(user: User) -> None:
    answer = post(user, FILE)
    row = Conversation.objects.get(owner=user)
    assert answer.status_code == 200
    assert answer.json() == {
        "created": 1,
        "updated": 0,
        "unchanged": 0,
        "empty": 0,
        "conversations": [str(row.pk)],
        "modelStatesDropped": 0,
    }
    assert post(user, zipped(conversations=FILE)).json()["unchanged"] == 1
    shown = get(user, f"/ai/conversations/{row.pk}").json()
    assert json.dumps(shown, ensure_ascii=False).count("Good day. 您好") == 1


def test_an_agent_can_be_named(user: User) -> None:
    chosen = AgentProfileFactory(slug="other")
    assert code(post(user, FILE, query="?agent=nobody")) == (404, "AGENT_NOT_FOUND")
    assert post(user, FILE, query="?agent=other").json()["created"] == 1
    assert Conversation.objects.get().agent == chosen


def test_a_bad_file_is_refused_with_the_place(user: User) -> None:
    answer = post(user, FILE[:-1] + b",{}]")
    assert code(answer) == (400, "IMPORT_INVALID")
    assert answer.json()["error"]["message"] == "$[1]: this is no conversation of PAR, ChatGPT or Claude"
    for data in (b"", b"\0", b"null", b"[" * 100_000, FILE[:-1]):
        assert code(post(user, data)) == (400, "IMPORT_INVALID")
    assert not Conversation.objects.exists()


def test_a_large_file_is_refused(user: User, settings: Any) -> None:
    settings.PAR = settings.PAR.model_copy(update={"max_import_bytes": len(FILE)})
    assert post(user, FILE).status_code == 200
    assert code(post(user, FILE + b" ")) == (413, "PAYLOAD_TOO_LARGE")


def test_the_same_key_gives_the_first_answer(user: User) -> None:
    key = {"Idempotency-Key": str(uuid4())}
    first = post(user, FILE, **key)
    again = post(user, FILE, **key)
    assert (first.json(), first.json()["created"]) == (again.json(), 1)
    other = json.dumps([chatgpt({"u": (None, "user", "Else")}, id="c-2")]).encode()
    assert code(post(user, other, **key)) == (400, "INVALID_ARGUMENT")
    assert code(post(user, FILE, query="?agent=helper", **key)) == (400, "INVALID_ARGUMENT")
    assert Conversation.objects.count() == 1


def test_one_file_of_a_person_is_read_at_a_time(user: User) -> None:
    cache.add(f"import:{user.pk}", True, 60)
    answer = post(user, FILE)
    assert code(answer) == (429, "RATE_LIMITED")
    assert answer["Retry-After"]
    assert post(UserFactory(), FILE).status_code == 200
    cache.delete(f"import:{user.pk}")
    assert code(post(user, b"x")) == (400, "IMPORT_INVALID")
    assert post(user, FILE).status_code == 200, "a refusal leaves nothing behind"


def test_a_page_of_another_site_imports_nothing(user: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    answer = client.post("/ai/imports", FILE, content_type="text/plain")
    assert code(answer) == (403, "FORBIDDEN")


def test_a_stream_ends_where_its_pieces_do() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"b"
        yield b"c"

    async def gather(first: bytes | None) -> list[bytes]:
        return [piece async for piece in _pieces(first, pieces())]

    assert async_to_sync(gather)(b"a") == [b"a", b"b", b"c"]
    assert async_to_sync(gather)(None) == []


def test_the_page_offers_both_ways(user: User) -> None:
    client = Client()
    assert client.get("/account/import/").status_code == 302
    client.force_login(user)
    page = client.get("/account/import/").content.decode()
    assert 'href="/ai/export?format=json"' in page
    assert 'data-largest="67108864"' in page
