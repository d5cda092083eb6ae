"""The settings module itself, read in processes of their own."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from par_project.database import database

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


def test_redis_serves_cache_and_channels(tmp_path: Path) -> None:
    found = read(["CACHES", "CHANNEL_LAYERS"], tmp_path, REDIS_URL="redis://127.0.0.1:6379/5")
    assert found["CACHES"]["default"]["BACKEND"].endswith("RedisCache")
    assert found["CHANNEL_LAYERS"]["default"]["BACKEND"].endswith("RedisPubSubChannelLayer")
    found = read(["CACHES", "CHANNEL_LAYERS"], tmp_path, REDIS_URL="")
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
