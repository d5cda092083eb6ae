"""What is done with odd input over HTTP: the rows of the table in docs/http.md."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.conf import settings
from django.test import Client

from conversations.models import ApiToken, Conversation, User
from tests.conversations.store.writing import AGENT, turn
from tests.factories import AgentProfileFactory, UserFactory

pytestmark = pytest.mark.django_db(transaction=True)

HUGE = 10 * 1024 * 1024
REFUSED = (400, "INVALID_ARGUMENT")


class Program:
    """A client that sends the bytes that it is given."""

    def __init__(self, user: User) -> None:
        _, self._token = ApiToken.issue(user, "test", scopes=("read", "write"))

    def __call__(self, method: str, path: str, body: bytes = b"", kind: str = "application/json", **more: str) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", **more}
        return Client().generic(method, f"/ai{path}", body, kind, headers=headers)


@pytest.fixture
def talk() -> Conversation:
    AgentProfileFactory(slug=AGENT, is_default=True)
    return turn(UserFactory(), "Hello", "Good day").conversation


@pytest.fixture
def send(talk: Conversation) -> Program:
    return Program(talk.owner)


def refusal(answer: Any) -> tuple[int, str]:
    error = answer.json()["error"]
    assert error["message"]
    return answer.status_code, error["code"]


def context(data: str) -> bytes:
    """A context in which a tool was called with this JSON."""
    call = b'{"type":"tool-call","callId":"c","name":"t","input":{"x":%s}}' % data.encode()
    result = b'{"type":"tool-result","callId":"c","name":"t","status":"success","execution":"completed","content":[]}'
    return b"".join(
        (
            b'{"messages":[{"id":"u","role":"user","blocks":[{"type":"text","text":"a\\u0000b"}]},',
            b'{"id":"a","role":"assistant","blocks":[%s]},{"id":"t","role":"tool","blocks":[%s]}],' % (call, result),
            b'"modelContext":{"checkpoint":null,"modelState":null,"usage":null}}',
        )
    )


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (r'"a\u0000b"', "a\ufffdb"),
        (r'{"k\u0000":1}', {"k\ufffd": 1}),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", float(2**64)),
        ("-9223372036854775808", -(2**63)),
        ("1" + "0" * 300, 1e300),
        ('{"a":1,"a":2}', {"a": 2}),
        ("[" * 90 + "]" * 90, None),
    ],
)
def test_free_data_is_kept_by_one_rule(talk: Conversation, send: Program, data: str, kept: Any) -> None:
    """B69, B71: NUL becomes U+FFFD, a number is a double beyond 64 bits, the last of two names counts."""
    body = b'{"title":"a\\u0000b","revision":1,"context":%s}' % context(data)
    answer = send("PUT", f"/conversations/{talk.pk}", body)
    assert answer.status_code == 200, answer.content
    again = send("GET", f"/conversations/{talk.pk}").json()
    assert again == answer.json()
    assert again["conversation"]["title"] == "a\ufffdb"
    said, asked, _ = again["context"]["messages"]
    assert said["blocks"][0]["text"] == "a\ufffdb"
    if kept is not None:
        assert asked["blocks"][0]["input"]["x"] == kept


@pytest.mark.parametrize(
    "data",
    [r'"\ud800"', r'"\udc00\ud800"', "NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400]
    + ["[" * depth + "]" * depth for depth in (101, 1000, 1100, 9_000, 100_000)]
    + ['{"x":' * depth + "1" + "}" * depth for depth in (101, 900, 9_000, 100_000)]
    + ["[" + "0," * 1_000_001 + "0]"],
)
def test_data_that_cannot_be_kept_is_refused(talk: Conversation, send: Program, data: str) -> None:
    """B69, B71, B73."""
    body = b'{"title":"t","revision":1,"context":%s}' % context(data)
    assert refusal(send("PUT", f"/conversations/{talk.pk}", body)) == REFUSED
    talk.refresh_from_db()
    assert talk.version == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xef\xbb\xbf{}",
        b'{"title":"\xff"}',
        b'{"title":"\xed\xa0\x80"}',
        '{"title":"ä"}'.encode("utf-16"),
        b'{"revision":9007199254740992}',
        b'{"revision":9223372036854775808}',
        b'{"revision":18446744073709551616}',
        b'{"revision":1.0}',
        b'{"revision":"1"}',
        b'{"revision":true}',
        b'{"surprise":1}',
        orjson.dumps({"title": "x" * 257}),
        orjson.dumps({"title": " "}),
        orjson.dumps({"tags": ["x" * 51]}),
        orjson.dumps({"tags": ["x"] * 21}),
        b'{"tags":[' + b"0," * 20_001 + b"0]}",
    ],
)
def test_a_body_that_is_not_as_it_should_be_is_refused(talk: Conversation, send: Program, body: bytes) -> None:
    assert refusal(send("PATCH", f"/conversations/{talk.pk}", body)) == REFUSED
    talk.refresh_from_db()
    assert talk.version == 1


@pytest.mark.parametrize("body", [b'{"title":"one","title":"two"}', b'{"pinned":1,"pinned":false,"title":"two"}'])
def test_the_last_of_two_members_with_one_name_counts(talk: Conversation, send: Program, body: bytes) -> None:
    assert send("PATCH", f"/conversations/{talk.pk}", body).json()["conversation"]["title"] == "two"


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_another_type_of_content_is_refused(talk: Conversation, send: Program, kind: str) -> None:
    assert refusal(send("PATCH", f"/conversations/{talk.pk}", b"{}", kind)) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_message_of_ten_megabytes_is_refused(talk: Conversation, send: Program) -> None:
    assert settings.PAR.max_frame_bytes < HUGE
    body = b'{"title":"%s"}' % (b"x" * HUGE)
    assert refusal(send("PATCH", f"/conversations/{talk.pk}", body)) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(
    "path",
    [
        "/conversations/not-an-id",
        "/conversations/" + "x" * 5_000,
        "/conversations?cursor=" + "x" * 5_000,
        "/conversations?agent=" + "x" * 65,
        "/conversations?tag=" + "x" * 51,
        "/conversations?limit=99999999999999999999",
        "/conversations?limit=1e999",
        "/conversations?since=0001-01-01T00:00:00%2B14:00",
        "/conversations?until=9999-12-31T23:59:59-14:00",
        "/search?q=said&since=0001-01-01T00:00:00%2B14:00",
        "/search?q=said&until=1e20",
        "/search?q=said&cursor=9999999999999999999",
        "/search?q=" + "x" * 501,
        "/search?q=a%00b",
        "/usage?since=2026-01-01T00:00:00",
        "/usage?since=0001-01-01T00:00:00%2B14:00",
        "/conversations?cursor=%00",
        "/executions/%00",
    ],
)
def test_an_address_that_cannot_be_used_is_refused(send: Program, path: str) -> None:
    """B69: NUL in an address never comes as far as the database."""
    assert refusal(send("GET", path)) == REFUSED


def test_what_an_address_may_say_though_it_is_odd(send: Program) -> None:
    for path in ("/conversations?since=2026-01-01T00:00:00", "/search?q=a&until=2026-01-01T00:00:00"):
        assert send("GET", path).status_code == 200, path
    assert send("GET", "/conversations?surprise=1").status_code == 200


def test_an_address_of_bytes_that_are_no_text_finds_nothing(talk: Conversation, send: Program) -> None:
    for path in (
        f"/conversations/{talk.pk}/tool-results/%ff%ed%a0%80",
        f"/conversations/{talk.pk}/tool-results/" + "x" * 9_000,
    ):
        assert refusal(send("GET", path)) == (404, "NOT_FOUND")
    assert send("GET", "/search?q=%ff%ed%a0%80a").status_code == 200


@pytest.mark.parametrize("key", ["not an id", "x" * 9_000])
def test_a_key_that_is_no_id_is_refused(send: Program, key: str) -> None:
    assert refusal(send("POST", "/conversations", b"{}", **{"Idempotency-Key": key})) == REFUSED


def test_a_label_has_an_end(talk: Conversation, send: Program) -> None:
    assert talk.head is not None
    path = f"/conversations/{talk.pk}/revisions/{talk.head.public_id}"
    assert refusal(send("PATCH", path, orjson.dumps({"label": "x" * 101}))) == REFUSED
    assert send("PATCH", path, b'{"label":"a\\u0000"}').json()["revision"]["label"] == "a\ufffd"
