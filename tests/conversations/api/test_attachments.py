"""Files over HTTP: taken, served to their owner only, and never as a page."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.test import AsyncClient, override_settings

from agent.testing import says
from conversations.api import schemas
from conversations.attachments.storage import place_of, storage
from conversations.models import Attachment, StoredFile, User
from tests.conversations.api.program import AGENT, Program, code, program
from tests.conversations.attachments.files import pdf, picture, stored_in
from tests.factories import AgentProfileFactory, UserFactory
from tests.live import token_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

ATTACHMENTS = "/ai/attachments"


@pytest.fixture(autouse=True)
def _storage(tmp_path: Path) -> Any:
    with stored_in(tmp_path):
        yield


@pytest.fixture
def user() -> User:
    AgentProfileFactory(slug=AGENT)
    return UserFactory()


async def upload(http: Program, data: bytes, name: str = "", **headers: str) -> Any:
    return await http.client.post(
        f"{ATTACHMENTS}?name={name}",
        data,
        content_type=headers.pop("content_type", "application/octet-stream"),
        headers=http.headers | headers,
    )


async def content(http: Program, id: str, **headers: str) -> Any:
    answer = await http.client.get(f"{ATTACHMENTS}/{id}", headers=http.headers | headers)
    if answer.streaming:
        answer.whole = b"".join([piece async for piece in answer.streaming_content])
    return answer


async def test_a_file_comes_back_as_it_was_sent(user: User) -> None:
    data = picture()
    async with program(user) as http:
        answer = await upload(http, data, "a%20photo.png")
        row = answer.json()
        assert answer.status_code == 201
        schemas.AttachmentRow.from_wire(row)
        assert (row["name"], row["mediaType"], row["size"]) == ("a photo.png", "image/png", len(data))
        assert (row["width"], row["height"], row["pages"]) == (40, 30, None)
        served = await content(http, row["attachmentId"])
    assert served.whole == data
    assert served["Content-Length"] == str(len(data))


@pytest.mark.parametrize("type", ["application/x-www-form-urlencoded", "image/png", "text/html", ""])
async def test_what_a_sender_says_of_a_file_does_not_count(user: User, type: str) -> None:
    """curl --data-binary calls every file a form."""
    async with program(user) as http:
        row = (await upload(http, b"a=b&c=d", "x.png", content_type=type)).json()
    assert row["mediaType"] == "text/plain"


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (picture(), "image/png"),
        (picture(format="WEBP"), "image/webp"),
        (b"<svg onload='x()' xmlns='http://www.w3.org/2000/svg'/>", "application/octet-stream"),
        (b"<!doctype html><script>x()</script>", "application/octet-stream"),
        (pdf("x"), "application/octet-stream"),
    ],
)
async def test_no_browser_takes_a_file_for_a_page(user: User, data: bytes, shown: str) -> None:
    """B75."""
    async with program(user) as http:
        id = (await upload(http, data, "a%22%0d%0ab.html")).json()["attachmentId"]
        served = await content(http, id)
    assert served["Content-Type"] == shown
    assert served["Content-Disposition"] == 'attachment; filename="a\\"b.html"'
    assert served["X-Content-Type-Options"] == "nosniff"
    assert served["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert served["Cache-Control"] == "private, no-cache"


async def test_who_has_a_file_is_not_sent_it_again(user: User) -> None:
    async with program(user) as http:
        id = (await upload(http, b"Hello", "%E5%A0%B1%E5%91%8A.txt")).json()["attachmentId"]
        first = await content(http, id)
        again = await content(http, id, **{"If-None-Match": first["ETag"]})
        other = await content(http, id, **{"If-None-Match": '"other"'})
    assert first["Content-Disposition"] == "attachment; filename*=utf-8''%E5%A0%B1%E5%91%8A.txt"
    assert (again.status_code, again.content) == (304, b"")
    assert other.whole == b"Hello"


async def test_somebody_elses_file_is_as_unknown_as_none(user: User) -> None:
    stranger = await sync_to_async(UserFactory)()
    async with program(user) as http:
        id = (await upload(http, b"Hello")).json()["attachmentId"]
        theirs = Program(http.host, await token_of(stranger))
        for wanted in (id, str(uuid4())):
            answers = [await content(theirs, wanted)]
            answers.append(await http.client.delete(f"{ATTACHMENTS}/{wanted}", headers=theirs.headers))
            start = {"agent": AGENT, "input": [{"type": "attachment", "attachmentId": wanted}]}
            answers.append(await theirs.post("", start))
            source = {"type": "url", "url": f"attachment:{wanted}"}
            answers.append(await theirs.post("", {"agent": AGENT, "input": [{"type": "image", "source": source}]}))
            for answer in answers:
                assert code(answer) == (404, "ATTACHMENT_NOT_FOUND")
                assert answer.json()["error"]["message"] == f"there is no attachment '{wanted}'"
        assert (await http.client.get(f"{ATTACHMENTS}/{id}")).status_code == 401
        reading = {"Authorization": f"Bearer {await token_of(user, 'read')}"}
        refused = await http.client.post(ATTACHMENTS, b"x", content_type="text/plain", headers=reading)
        assert code(refused) == (403, "FORBIDDEN")


async def test_an_upload_is_made_once_under_a_key(user: User) -> None:
    key = {"Idempotency-Key": str(uuid4())}
    async with program(user) as http:
        first, again = (await upload(http, b"Hello", "a.txt", **key) for _ in range(2)), None
        answers = [answer async for answer in first]
        assert [answer.status_code for answer in answers] == [201, 201]
        assert answers[0].json() == answers[1].json()
        again = await upload(http, b"Other", "a.txt", **key)
    assert code(again) == (400, "INVALID_ARGUMENT")
    assert await Attachment.objects.acount() == await StoredFile.objects.acount() == 1


@pytest.mark.parametrize(
    ("data", "headers", "expected"),
    [
        (b"", {}, (422, "ATTACHMENT_UNFIT")),
        (b"\x7fELF\0", {}, (422, "ATTACHMENT_UNFIT")),
        (b"x" * 2049, {}, (413, "PAYLOAD_TOO_LARGE")),
        (b"--x\r\n\r\n--x--", {"content_type": "multipart/form-data; boundary=x"}, (415, "UNSUPPORTED_MEDIA_TYPE")),
        (b"x", {"Idempotency-Key": "no UUID"}, (400, "INVALID_ARGUMENT")),
        (b"x", {"Authorization": "Bearer none"}, (401, "AUTH_REQUIRED")),
    ],
)
async def test_what_is_refused_leaves_nothing(user: User, data: bytes, headers: Any, expected: tuple[int, str]) -> None:
    par = settings.PAR.model_copy(update={"max_attachment_bytes": 2048})
    with override_settings(PAR=par):
        async with program(user) as http:
            answer = await upload(http, data, **headers)
    assert code(answer) == expected
    assert await StoredFile.objects.acount() == 0
    assert not storage().exists("") or not list(Path(storage().path("")).rglob("*"))


async def test_a_session_needs_its_csrf_token(user: User) -> None:
    client = AsyncClient(enforce_csrf_checks=True)
    await client.aforce_login(user)
    assert code(await client.post(ATTACHMENTS, b"x", content_type="text/plain")) == (403, "FORBIDDEN")


async def test_a_file_is_deleted_unless_a_conversation_has_it(user: User) -> None:
    async with program(user, says("I see.")) as http:
        used, unused = [(await upload(http, data)).json()["attachmentId"] for data in (b"used", b"unused")]
        started = (
            await http.post("", {"agent": AGENT, "input": [{"type": "attachment", "attachmentId": used}]})
        ).json()
        await http.read(started["executionId"], "?waitMs=10000")
        answers = [
            await http.client.delete(f"{ATTACHMENTS}/{id}", headers=http.headers) for id in (used, unused, unused)
        ]
    assert [answer.status_code for answer in answers] == [409, 204, 404]


async def test_a_file_that_is_not_there_any_more_is_an_error_of_the_server(user: User) -> None:
    async with program(user) as http:
        id = (await upload(http, b"Hello")).json()["attachmentId"]
        row = await Attachment.objects.aget()
        await asyncio.to_thread(storage().delete, place_of(row.digest))
        answer = await content(http, id)
        assert code(answer) == (500, "ATTACHMENT_MISSING")
        assert answer["Content-Type"] == "application/json"
        assert "Content-Disposition" not in answer
        assert answer.json()["error"]["message"] == "the file 'text.txt' is not in the storage"


@pytest.mark.parametrize("damaged", [b"hELLO", b"Hell", b"Hello!", b"", None])
async def test_a_damaged_file_is_never_sent(user: User, tmp_path: Path, damaged: bytes | None) -> None:
    """Nor is one that cannot be read; None stands for a directory in its place."""
    async with program(user) as http:
        id = (await upload(http, b"Hello")).json()["attachmentId"]
        row = await Attachment.objects.aget()
        file = tmp_path / place_of(row.digest)
        file.unlink()
        file.mkdir() if damaged is None else file.write_bytes(damaged)
        assert code(await content(http, id)) == (500, "ATTACHMENT_MISSING")
