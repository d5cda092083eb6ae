from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from allauth.account.models import EmailAddress
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from pytest_django import Settings

from agent.models import AgentProfile, ModelEndpoint, ToolRecord, reveal
from agent.testing import ScriptedAnswer, ScriptedProvider
from conversations.models import OneTimeLink, User

pytestmark = pytest.mark.django_db


def bootstrap(**options: object) -> str:
    out = io.StringIO()
    call_command("bootstrap", stdout=out, **options)
    return out.getvalue()


def test_a_fresh_site_gets_people_an_agent_and_a_way_in() -> None:
    said = bootstrap(demo=True)
    passwords = re.findall(r"(\S+@localhost), password (\S+)", said)
    assert [email for email, _ in passwords] == ["admin@localhost", "demo@localhost"]
    for email, password in passwords:
        assert authenticate(None, email=email, password=password) == User.objects.get(email=email)
    assert User.objects.get(is_superuser=True).username == "admin"
    assert EmailAddress.objects.filter(verified=True, primary=True).count() == 2
    demo = AgentProfile.objects.get()
    assert (demo.slug, demo.endpoint.protocol, demo.is_default) == ("demo", "demo", True)
    assert len(demo.suggested_prompts) == 3
    assert demo.tool_names() == list(ToolRecord.objects.values_list("name", flat=True).order_by("name"))
    (token,) = re.findall(r"http://127\.0\.0\.1:8000/link/([^/\s]+)/", said)
    link = OneTimeLink.find(token)
    assert link is not None
    assert link.user.username == "demo"


def test_a_second_run_changes_nothing_and_shows_no_password() -> None:
    bootstrap(demo=True)
    User.objects.filter(username="admin").update(email="boss@example.org")
    before = list(User.objects.order_by("pk").values()), list(AgentProfile.objects.values())
    said = bootstrap(demo=True)
    assert "password" not in said
    assert "/link/" in said, "there is a new way in each time"
    assert before == (list(User.objects.order_by("pk").values()), list(AgentProfile.objects.values()))


def test_the_demo_stays_out_of_production(settings: Settings) -> None:
    settings.PAR = settings.PAR.model_copy(update={"environment": "production"})
    with pytest.raises(CommandError, match="development"):
        bootstrap(demo=True)
    assert not User.objects.exists()
    said = bootstrap(email="root@example.org")
    assert "root@example.org, password " in said
    assert "/link/" not in said
    assert User.objects.get().is_superuser
    assert not AgentProfile.objects.exists()


def test_a_key_in_the_environment_brings_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_MODEL", "m-1")
    assert "sk-1" not in bootstrap()
    row = AgentProfile.objects.get(slug="openai")
    assert (row.model, row.endpoint.base_url, reveal(row.endpoint, "api_key")) == (
        "m-1",
        "http://127.0.0.1:9/v1",
        "sk-1",
    )
    assert row.tool_names() == list(ToolRecord.objects.values_list("name", flat=True).order_by("name"))
    before = ModelEndpoint.objects.get().api_key
    bootstrap()
    assert ModelEndpoint.objects.get().api_key == before
    monkeypatch.setenv("OPENAI_API_KEY", "sk-2")
    monkeypatch.setenv("OPENAI_MODEL", "m-2")
    bootstrap()
    row = AgentProfile.objects.get(slug="openai")
    assert (row.model, reveal(row.endpoint, "api_key")) == ("m-2", "sk-2")


async def test_a_local_ollama_server_brings_an_agent_by_itself(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.PAR = settings.PAR.model_copy(update={"allow_private_models": True})
    found = [{"version": "0.9"}, {"models": [{"name": "small"}, {"name": "large"}]}] * 2
    answers = [ScriptedAnswer(json.dumps(each).encode()) for each in found]
    async with ScriptedProvider(*answers) as server:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{server.port}")
        said = await sync_to_async(bootstrap)()
        again = await sync_to_async(bootstrap)()
    assert "Found Ollama on this machine; the agent 'Ollama' uses large." in said
    assert "Found" not in again
    row = await AgentProfile.objects.select_related("endpoint").aget(slug="ollama")
    assert (row.model, row.endpoint.protocol, row.endpoint.allow_private) == ("large", "ollama-chat", True)


def test_without_an_ollama_server_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    assert "Ollama" not in bootstrap()


def test_a_database_that_cannot_be_used_is_told_in_words(tmp_path: Path) -> None:
    place = {"PATH": "/usr/bin", "PAR_ENV_FILE": "", "PAR_ENVIRONMENT": "development", "PAR_DATA_DIR": str(tmp_path)}
    for address, told in (("sqlite:////nowhere/at/all", "unable to open database file"), ("", "--migrate makes it so")):
        done = subprocess.run(
            [sys.executable, "manage.py", "bootstrap"],
            cwd=settings.BASE_DIR,
            env=place | {"DATABASE_URL": address},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert told in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("email", ["notanemail", "", "a@b@c", "joe@example.org\nx"])
def test_an_address_that_is_none_is_refused_in_words(email: str) -> None:
    with pytest.raises(CommandError, match="is no e-mail address"):
        bootstrap(email=email)
    assert not User.objects.exists()
