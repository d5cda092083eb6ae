"""A site of the release before is brought up to date: everything that people had is there, unchanged.

tests/fixtures/README.md says how its database was made.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from html import escape
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.site import Site

FIXTURES = Path(__file__).parents[1] / "fixtures"
KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
BEFORE = (("agent", "0004"), ("conversations", "0003"))
OTHERS = (("account",), ("mfa",), ("admin",), ("sessions",))
MIGRATE = "from django.core.management import call_command\nfor each in {}: call_command('migrate', *each, verbosity=0)"
# What `migrate` itself writes is not brought along to a database server.
OWN = ("django_content_type", "auth_permission", "django_migrations", "sqlite_sequence")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
KNOWN: dict[str, Any] = json.loads((FIXTURES / "release-0.1.json").read_text())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site of the release before, brought up to date as docs/upgrading.md says."""
    place = tmp_path_factory.mktemp("upgraded")
    with Site(place, pace=0, start=False, prepared=False, settings={"PAR_SECRET_KEYS": KEY}) as made:
        if made.sqlite:
            load(place / "par.sqlite3")
        else:
            made.shell(MIGRATE.format((*BEFORE, *OTHERS)))
            copy(place / "before.sqlite3", made.database_url)
        refused = made.run("serve", "--port", "0")
        assert refused.returncode != 0
        assert "migrations are not applied" in refused.stderr
        made.manage("bootstrap", "--migrate")
        made.start()
        yield made


def load(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript((FIXTURES / "release-0.1.sql").read_text())


def copy(path: Path, url: str) -> None:
    """Write the rows of the release before into PostgreSQL; as text they fit its own types."""
    import psycopg
    from psycopg import sql

    load(path)
    with closing(sqlite3.connect(path)) as old, psycopg.connect(url, cursor_factory=psycopg.ClientCursor) as new:
        tables = [row[0] for row in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        new.execute("SET CONSTRAINTS ALL DEFERRED")
        for table in sorted(set(tables) - set(OWN)):
            rows = old.execute(f'SELECT * FROM "{table}"')
            names = sql.SQL(", ").join(sql.Identifier(column[0]) for column in rows.description)
            marks = sql.SQL(", ").join([sql.Placeholder()] * len(rows.description))
            insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(sql.Identifier(table), names, marks)
            for row in rows.fetchall():
                new.execute(insert, [None if value is None else str(value) for value in row])
        for table, column, sequence in new.execute(
            "SELECT table_name, column_name, pg_get_serial_sequence(quote_ident(table_name), column_name) "
            "FROM information_schema.columns WHERE table_schema = 'public' AND is_identity = 'YES'"
        ).fetchall():
            new.execute(
                sql.SQL("SELECT setval({}, coalesce((SELECT max({}) FROM {}), 0) + 1, false)").format(
                    sql.Literal(sequence), sql.Identifier(column), sql.Identifier(table)
                )
            )


def call(site: Site, who: str, path: str, **options: Any) -> Any:
    headers = {"Authorization": f"Bearer {KNOWN[who]['token']}"}
    answer = httpx.request(options.pop("method", "GET"), site.address + path, headers=headers, timeout=60, **options)
    assert answer.status_code < 300, (path, answer.text)
    return answer.json()


def fits(now: Any, then: Any) -> None:
    """Fail unless everything that was there is there; members that are new are none of its business."""
    if isinstance(then, dict):
        assert isinstance(now, dict)
        for name, value in then.items():
            fits(now[name], value)
    elif isinstance(then, list):
        assert len(now) == len(then)
        for new, old in zip(now, then, strict=True):
            fits(new, old)
    elif isinstance(then, str) and MOMENT.fullmatch(then):
        assert now.startswith(then[:-1])  # told more exactly since
    else:
        assert now == then


def conversations() -> list[Any]:
    return [
        pytest.param(who, each, id=f"{who}-{at}")
        for who in KNOWN
        for at, each in enumerate(KNOWN[who]["conversations"])
    ]


@pytest.mark.parametrize("who", KNOWN)
def test_each_conversation_is_listed_as_it_was(site: Site, who: str) -> None:
    listed = call(site, who, "/ai/conversations")["conversations"]
    fits(listed, [each["conversation"] for each in KNOWN[who]["conversations"]])


@pytest.mark.parametrize(("who", "then"), conversations())
def test_each_conversation_reads_as_it_did(site: Site, who: str, then: Any) -> None:
    now = call(site, who, f"/ai/conversations/{then['conversation']['conversationId']}")
    fits(now["conversation"], then["conversation"])
    fits(now["context"]["messages"], then["messages"])


@pytest.mark.parametrize("who", KNOWN)
def test_each_run_ended_as_it_did(site: Site, who: str) -> None:
    for then in KNOWN[who]["executions"]:
        fits(call(site, who, f"/ai/executions/{then['executionId']}"), then)


@pytest.fixture(scope="module")
def signed_in(site: Site) -> Iterator[httpx.Client]:
    """The browser in which somebody was signed in before the upgrade."""
    with httpx.Client(base_url=site.address, cookies={"sessionid": KNOWN["ada"]["session"]}, timeout=60) as client:
        yield client


def test_the_pages_show_what_was_said(site: Site, signed_in: httpx.Client) -> None:
    for each in KNOWN["ada"]["conversations"]:
        page = signed_in.get(f"/c/{each['conversation']['conversationId']}/")
        assert page.status_code == 200
        assert escape(each["conversation"]["title"]) in page.text
        for message in each["messages"]:
            if message["role"] == "user":
                assert escape(message["blocks"][0]["text"], quote=False) in page.text
    stopped = KNOWN["ada"]["conversations"][0]["conversation"]["conversationId"]
    assert "not part of the conversation" in signed_in.get(f"/c/{stopped}/").text


def test_a_session_from_before_is_on_the_page_of_sessions(signed_in: httpx.Client) -> None:
    page = signed_in.get("/account/data/").text
    assert "this one" in page
    assert "Since before browsers were noted here" in page


def test_the_old_conversations_go_on(site: Site) -> None:
    """Also the one whose turn was stopped, and with the numbers that clients know."""
    for at, each in enumerate(KNOWN["ada"]["conversations"]):
        row = each["conversation"]
        body = {
            "agent": "demo",
            "input": [{"type": "text", "text": "Calculate 20 + 22"}],
            "conversationId": row["conversationId"],
            "baseRevision": row["revision"],
        }
        run = call(site, "ada", "/ai/executions", method="POST", json=body)["executionId"]
        ended = call(site, "ada", f"/ai/executions/{run}?waitMs=30000")
        assert ended["status"] == "completed", ended
        assert "42" in ended["messages"][-1]["blocks"][0]["text"], at


def test_a_stopped_turn_from_before_can_be_continued_from(site: Site) -> None:
    (lost,) = [
        each for each in KNOWN["brook"]["executions"] if each["error"] and each["error"]["code"] == "EXECUTION_LOST"
    ]
    adopted = call(site, "brook", f"/ai/executions/{lost['executionId']}/adopt", method="POST")
    now = call(site, "brook", f"/ai/conversations/{adopted['conversation']['conversationId']}")
    fits(now["context"]["messages"][: len(lost["messages"])], lost["messages"])


def test_secrets_and_records_are_still_there(site: Site) -> None:
    told = site.shell(
        "from agent.models import *\n"
        "print(reveal(ModelEndpoint.objects.get(slug='away'), 'api_key'))\n"
        "print(AuditRecord.objects.filter(id__lte=55).count(), UsageRecord.objects.filter(id__lte=13).count())\n"
        "print(sorted(set(AuditRecord.objects.filter(id__lte=55).values_list('user__username', flat=True))))\n"
    )
    assert told.splitlines() == ["sk-of-the-release-before", "55 13", "['ada', 'brook']"]


def test_the_dump_is_the_one_that_the_page_of_fixtures_tells_of() -> None:
    text = (FIXTURES / "release-0.1.sql").read_text()
    for app, migration in BEFORE:
        assert re.search(rf"'{app}','{migration}_\w+'", text)
    assert "5b60983" in (FIXTURES / "README.md").read_text()
