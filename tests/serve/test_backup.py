"""The day on which everything is gone: a backup that was made while people chatted brings it back."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.site import Site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("backed-up"), pace=0.01) as made:
        yield made


pytestmark = pytest.mark.usefixtures("sqlite")


@pytest.fixture
def sqlite(site: Site) -> None:
    if not site.sqlite:
        pytest.skip("backups of a PostgreSQL are pg_dump's")


def call(site: Site, token: str, path: str, **options: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.request(options.pop("method", "GET"), site.address + path, headers=headers, timeout=60, **options)
    assert answer.status_code < 300, answer.text
    return answer.json()


def start(site: Site, token: str, text: str) -> dict[str, str]:
    body = {"agent": "demo", "input": [{"type": "text", "text": text}]}
    started: dict[str, str] = call(site, token, "/ai/executions", method="POST", json=body)
    return started


def everything(site: Site, token: str) -> list[Any]:
    listed = call(site, token, "/ai/conversations")["conversations"]
    return [call(site, token, f"/ai/conversations/{row['conversationId']}") for row in listed]


def attachment(site: Site) -> Path:
    path = site.place / "attachments" / "ab" / "cd" / ("abcd" * 16)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_a_site_is_backed_up_while_it_serves_destroyed_and_restored(site: Site, tmp_path: Path) -> None:
    token = site.token()
    done = start(site, token, "What is 6 * 7?")
    call(site, token, f"/ai/executions/{done['executionId']}?waitMs=30000")
    attachment(site).write_bytes(b"a picture")
    before = everything(site, token)
    assert "42" in json.dumps(before)
    running = start(site, token, "Tell me a long story")

    told = site.run("backup", str(tmp_path))
    assert told.returncode == 0, told.stderr
    assert "THE KEYS ARE NOT IN IT" in told.stderr
    (backup,) = tmp_path.glob("par-*.tar")
    assert "the database and 1 attachments" in told.stdout
    with tarfile.open(backup) as tar:
        assert not [name for name in tar.getnames() if "key" in name]
    assert call(site, token, f"/ai/executions/{running['executionId']}")["status"] == "running"
    assert list(tmp_path.iterdir()) == [backup]

    served = site.run("restore", str(backup), "--force")
    assert served.returncode != 0
    assert "a server uses this database" in served.stderr

    site.kill()
    for name in ("par.sqlite3", "par.sqlite3-wal", "par.sqlite3-shm"):
        (site.place / name).unlink(missing_ok=True)
    (site.place / "par.sqlite3-wal").write_bytes(b"left by the crash")
    shutil.rmtree(site.place / "attachments")

    restored = site.run("restore", str(backup))
    assert restored.returncode == 0, restored.stderr
    assert "is in place and up to date" in restored.stdout
    assert "LACKS" not in restored.stderr
    assert attachment(site).read_bytes() == b"a picture"
    site.start()
    after = {each["conversation"]["conversationId"]: each for each in everything(site, token)}
    for each in before:
        assert after[each["conversation"]["conversationId"]] == each
    lost = call(site, token, f"/ai/executions/{running['executionId']}")
    assert lost["error"]["code"] == "EXECUTION_LOST"
    again = start(site, token, "Calculate 20 + 22")
    assert "42" in json.dumps(call(site, token, f"/ai/executions/{again['executionId']}?waitMs=30000"))
    site.stop()


def test_a_backup_of_an_earlier_release_is_brought_up_to_date(site: Site, tmp_path: Path) -> None:
    """With keys that are not those of the backup, which is said loudly."""
    site.stop()
    site.manage("migrate", "conversations", "0003", "-v0")
    site.manage("backup", str(tmp_path / "earlier.tar"))
    (site.place / "keys").unlink()
    told = site.run("restore", str(tmp_path / "earlier.tar"), "--force")
    assert told.returncode == 0, told.stderr
    assert "PAR_SECRET_KEYS LACKS THE KEYS" in told.stderr
    assert f"What was there is kept: {site.place}/par.sqlite3.before-restore-" in told.stdout
    site.start()
