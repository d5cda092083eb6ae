"""Files over the real server: a body may be larger than a frame there, and nowhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.conversations.attachments.files import picture
from tests.site import Site

NOBODYS = "01890a5d-ac96-774b-bcce-b302099a8000"
MEGABYTE = 1024 * 1024


def client(site: Site, token: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=site.address, headers={"Authorization": f"Bearer {token}"}, timeout=60)


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_file_larger_than_a_frame_is_taken_and_comes_back(site: Site, token: str, chunked: bool) -> None:
    data = picture(2000, 1500, "JPEG", quality=100) + b"\0" * (2 * MEGABYTE)  # what stands after a JPEG is allowed

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), 50_000):
            yield data[at : at + 50_000]

    async with client(site, token) as http:
        sent = await http.post("/ai/attachments?name=a%20b.jpg", content=pieces() if chunked else data)
        assert sent.status_code == 201, sent.text
        served = await http.get(f"/ai/attachments/{sent.json()['attachmentId']}")
    assert served.content == data
    assert served.headers["Content-Type"] == "image/jpeg"
    assert served.headers["Content-Disposition"] == 'attachment; filename="a b.jpg"'
    assert served.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"


async def test_a_small_file_is_taken_too(site: Site, token: str) -> None:
    async with client(site, token) as http:
        sent = await http.post("/ai/attachments", content=b"Hello")
    assert (sent.status_code, sent.json()["size"], sent.json()["name"]) == (201, 5, "text.txt")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/ai/executions"),
        ("PUT", "/ai/attachments"),
        ("POST", "/ai/attachments/"),
        ("POST", "//ai/attachments"),
        ("PATCH", f"/ai/conversations/{NOBODYS}"),
        ("PUT", "/ai/conversations"),
        ("PUT", f"/ai/conversations/{NOBODYS}/"),
        ("POST", f"/ai/conversations/{NOBODYS}/fork"),
    ],
)
async def test_no_other_request_may_be_larger_than_a_frame(site: Site, token: str, method: str, path: str) -> None:
    async with client(site, token) as http:
        try:
            answer = await http.request(method, path, content=b"x" * (2 * MEGABYTE))
        except httpx.TransportError:
            return  # the connection was closed while the body was still being written
    assert answer.status_code == 413


def talk(messages: int, text: str) -> dict[str, Any]:
    """The context of a conversation in which each message is this text."""
    return {
        "messages": [
            {"id": f"m-{n}", "role": ("user", "assistant")[n % 2], "blocks": [{"type": "text", "text": text}]}
            for n in range(messages)
        ],
        "modelContext": {"checkpoint": None, "modelState": None, "usage": None},
    }


@pytest.mark.parametrize(("messages", "text"), [(5_000, "hey"), (300, "lorem, ip" * 555)])
async def test_a_long_conversation_is_made_read_and_saved_again(
    site: Site, token: str, messages: int, text: str
) -> None:
    """R127: what the server hands out can be put back."""
    async with client(site, token) as http:
        made = await http.post("/ai/conversations", json={"title": "Long", "context": talk(messages, text)})
        assert made.status_code == 200, made.text
        place = f"/ai/conversations/{made.json()['conversation']['conversationId']}"
        read = (await http.get(place)).json()
        assert read == made.json()
        context, revision = read["context"], read["conversation"]["revision"]
        assert len(context["messages"]) == messages
        context["messages"][0]["blocks"][0]["text"] = "Good day"
        saved = await http.put(place, json={"title": "Long", "revision": revision, "context": context})
        assert saved.status_code == 200, saved.text
        assert (await http.get(place)).json()["context"] == saved.json()["context"] == context


@pytest.mark.parametrize(("path", "most"), [("conversations", 64), ("attachments", 20)])
async def test_what_is_over_the_limit_is_refused_before_it_is_kept(
    site: Site, token: str, path: str, most: int
) -> None:
    async with client(site, token) as http:
        try:
            answer = await http.post(f"/ai/{path}", content=b"x" * (most * MEGABYTE + 1))
        except httpx.TransportError:
            return
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "PAYLOAD_TOO_LARGE")


async def test_a_stranger_uploads_nothing(site: Site) -> None:
    async with httpx.AsyncClient(base_url=site.address) as http:
        answer = await http.post("/ai/attachments", content=b"x" * (2 * MEGABYTE))
    assert answer.status_code == 401
