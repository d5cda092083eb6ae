"""The settings module itself, read in processes of their own."""

from __future__ import annotations

import base64
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from par_project.database import database, redis_url
from par_project.logs import NameTheSetting

ROOT = Path(__file__).resolve().parents[2]
KEY = base64.b64encode(b"k" * 32).decode()
OLD = base64.b64encode(b"o" * 32).decode()
PRODUCTION = {"PAR_SECRET_KEYS": f"{KEY},{OLD}", "PAR_ORIGINS": "https://ai.example.org,https://ai.example.org:8443"}


def read(names: list[str], tmp_path: Path, **environ: str) -> dict[str, Any]:
    """Return settings as a fresh process with only these variables has them."""
    code = "import json; from par_project import settings as s; print(json.dumps({n: getattr(s, n) for n in %r}))"
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    given = inherited | {"PAR_ENV_FILE": "", "PAR_DATA_DIR": str(tmp_path)} | environ
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code % names],
        cwd=ROOT,
        env=given,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def test_production_is_the_default_and_is_closed(tmp_path: Path) -> None:
    found = read(["DEBUG", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "ALLOWED_HOSTS"], tmp_path)
    assert found == {"DEBUG": False, "SESSION_COOKIE_SECURE": True, "CSRF_COOKIE_SECURE": True, "ALLOWED_HOSTS": []}
    assert list(tmp_path.iterdir()) == [], "production makes no keys"


def test_hosts_and_trust_follow_from_the_origins(tmp_path: Path) -> None:
    found = read(["ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS"], tmp_path, **PRODUCTION)
    assert found["ALLOWED_HOSTS"] == ["ai.example.org"]
    assert found["CSRF_TRUSTED_ORIGINS"] == ["https://ai.example.org", "https://ai.example.org:8443"]


def test_sessions_outlive_a_change_of_keys(tmp_path: Path) -> None:
    names = ["SECRET_KEY", "SECRET_KEY_FALLBACKS"]
    before = read(names, tmp_path, **PRODUCTION | {"PAR_SECRET_KEYS": OLD})
    after = read(names, tmp_path, **PRODUCTION)
    assert after["SECRET_KEY"] != before["SECRET_KEY"]
    assert after["SECRET_KEY_FALLBACKS"] == [before["SECRET_KEY"]]
    assert KEY not in str(after)


def test_development_keeps_its_key(tmp_path: Path) -> None:
    first = read(["SECRET_KEY"], tmp_path, PAR_ENVIRONMENT="development")
    assert (tmp_path / "keys").exists()
    assert read(["SECRET_KEY"], tmp_path, PAR_ENVIRONMENT="development") == first


def test_a_file_of_variables_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("PAR_ENVIRONMENT=development\nPORT=9000\n")
    given = {"PAR_ENV_FILE": str(file)}
    assert read(["CSRF_TRUSTED_ORIGINS"], tmp_path, **given)["CSRF_TRUSTED_ORIGINS"][0] == "http://127.0.0.1:9000"
    assert read(["DEBUG"], tmp_path, **given, PAR_ENVIRONMENT="production") == {"DEBUG": False}


def test_proxies_are_believed_only_when_named(tmp_path: Path) -> None:
    names = ["NINJA_NUM_PROXIES", "ALLAUTH_TRUSTED_PROXY_COUNT"]
    assert set(read(names, tmp_path).values()) == {0}
    assert set(read(names, tmp_path, PAR_TRUSTED_PROXIES="2").values()) == {2}
    assert read(["SECURE_PROXY_SSL_HEADER"], tmp_path, PAR_TRUSTED_PROXIES="1")


def test_redis_serves_the_cache(tmp_path: Path) -> None:
    found = read(["CACHES"], tmp_path, REDIS_URL="redis://127.0.0.1:6379/5")
    assert found["CACHES"]["default"]["BACKEND"].endswith("RedisCache")
    found = read(["CACHES"], tmp_path, REDIS_URL="")
    assert found["CACHES"]["default"]["BACKEND"].endswith("LocMemCache")


def test_without_a_url_the_database_is_a_file_in_the_data_directory(tmp_path: Path) -> None:
    for url in (None, ""):
        found = database(url, tmp_path)
        assert found["NAME"] == str(tmp_path / "par.sqlite3")
        assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
        assert (found["CONN_MAX_AGE"], found["ATOMIC_REQUESTS"]) == (0, False)


@pytest.mark.parametrize("url", ["postgres://joe:pw@db.example:5433/par", "postgresql://joe:pw@db.example:5433/par"])
def test_a_server_gets_a_pool(url: str, tmp_path: Path) -> None:
    found = database(url, tmp_path)
    assert (found["HOST"], found["PORT"], found["NAME"], found["USER"]) == ("db.example", 5433, "par", "joe")
    assert found["OPTIONS"]["pool"]["max_size"] == 8
    assert (found["CONN_HEALTH_CHECKS"], found["CONN_MAX_AGE"]) == (True, 0)


def test_absolute_and_relative_sqlite_files(tmp_path: Path) -> None:
    assert database("sqlite:////var/lib/par.db", tmp_path)["NAME"] == "/var/lib/par.db"
    assert database("sqlite:///par.db?timeout=5", tmp_path)["OPTIONS"]["timeout"] == 5


@pytest.mark.parametrize(
    "url",
    ["nonsense", "mysql://u:geheim@h/x", "postgres://u:geheim@h:abc/x", "postgres://u:ge/heim@h/x", "postgres://h"],
)
def test_what_is_no_database_is_refused_without_its_password(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="DATABASE_URL is no address of a database") as caught:
        database(url, tmp_path)
    assert "geheim" not in str(caught.value)
    assert "'ge'" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("url", ["foo", "http://h", "redis://", "redis://:geheim@h:abc/0", "rediss://h:99999"])
def test_what_is_no_redis_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match="REDIS_URL is no address of Redis") as caught:
        redis_url(url)
    assert "geheim" not in str(caught.value)
    assert redis_url("rediss://joe:pw@h:6380/1") == "rediss://joe:pw@h:6380/1"
    assert redis_url("unix:///run/redis.sock?db=1")


def manage(tmp_path: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": "/usr/bin", "PAR_ENV_FILE": "", "PAR_DATA_DIR": str(tmp_path / "a" / "data")} | environ
    return subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=ROOT, env=given, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("command", [["check"], ["migrate"], ["bootstrap", "--migrate"], ["serve"]])
def test_addresses_that_are_none_stop_every_command_in_words(command: list[str], tmp_path: Path) -> None:
    bad = {"PAR_ENVIRONMENT": "development", "DATABASE_URL": "nonsense", "REDIS_URL": "foo"}
    done = manage(tmp_path, *command, **bad)
    assert done.returncode != 0
    assert "(agent.E001) DATABASE_URL is no address" in done.stderr
    assert "(agent.E001) REDIS_URL is no address" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.sqlite3")), "no other database takes its place"


def test_production_makes_its_data_directory_before_its_first_database(tmp_path: Path) -> None:
    done = manage(tmp_path, "bootstrap", "--migrate", **PRODUCTION)
    assert done.returncode == 0, done.stderr
    place = tmp_path / "a" / "data"
    assert (place / "par.sqlite3").is_file()
    assert place.stat().st_mode & 0o777 == 0o700


def test_an_unknown_host_is_logged_in_the_words_of_our_setting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    logger = logging.getLogger("django.security.DisallowedHost")
    assert any(isinstance(found, NameTheSetting) for found in logger.filters)
    response = Client(headers={"host": "evil.example"}).get("/accounts/login/")
    assert response.status_code == 400
    (record,) = [record for record in caplog.records if record.name == logger.name]
    assert "PAR_ORIGINS" in record.getMessage()
    assert "ALLOWED_HOSTS" not in record.getMessage()
