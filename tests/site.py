"""The site as an operator starts it: `manage.py bootstrap --migrate --demo`, `serve`."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, TracebackType
from typing import Any, Self, cast
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

ROOT = Path(__file__).resolve().parents[1]
COMMAND_WITHIN = 180.0
STOP_WITHIN = 60.0
FOREIGN = ("PAR_", "DJANGO_", "OPENAI_", "DATABASE_URL", "REDIS_URL")


class Site:
    """A server process on a free port with a database of its own; a context manager.

    The database is on the server that DATABASE_URL names, or SQLite in `place`. `drain` is in seconds; without `start`
    only commands are run, without `prepared` the database is as empty as an operator finds it. `options` are further
    ones of `serve`, `settings` environment variables. One that is `probed` can tell what it holds.
    """

    def __init__(
        self,
        place: Path,
        *,
        pace: float,
        drain: float = 0,
        start: bool = True,
        prepared: bool = True,
        options: Sequence[str] = (),
        probed: bool = False,
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.place = place
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.socket_address = f"ws://127.0.0.1:{self.port}/ai/ws"
        self._starts = start
        self._prepared = prepared
        self._program = ("-m", "tests.serve.probe") if probed else ("manage.py",)
        self._options = ("--port", str(self.port), "--drain", str(drain), *options)
        self._probe_file = place / "probe.json"
        self._database = _Database.wanted()
        self._environment = {
            **_environment(place, self._database),
            "PAR_DEMO_PACE": str(pace),
            "PORT": str(self.port),
            "PROBE_FILE": str(self._probe_file),
            **settings,
        }
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._prepare()
        if self._starts:
            self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._database is not None:
            self._database.drop()

    def _prepare(self) -> None:
        if self._prepared:
            _TEMPLATE.copy_to(self.place, self._database)
        elif self._database is not None:
            self._database.create()

    @property
    def sqlite(self) -> bool:
        return self._database is None

    @property
    def database_url(self) -> str:
        """The address of the site's database on a database server."""
        assert self._database is not None
        return self._database.url

    @property
    def process(self) -> subprocess.Popen[str]:
        """The server process."""
        assert self._process is not None, "the server is not running"
        return self._process

    def run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a management command to its end."""
        return _run(self._environment, *arguments, given=given)

    def manage(self, *arguments: str, given: str = "") -> str:
        """Run a management command that must succeed and return what it printed."""
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shell(self, code: str) -> str:
        """Run Python with the site's settings and return what it printed."""
        return self.manage("shell", "--no-imports", "-c", code)

    def start(self) -> None:
        """Start the server and wait until it says that it listens."""
        self.launch()
        line = self.first_line()
        if self.address not in line:
            self.stop()
            pytest.fail(f"the server did not start: {line}{self.log()}")

    def launch(self) -> None:
        """Start the server and do not wait for it."""
        self._forget()
        with (self.place / "serve.log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._program, "serve", *self._options],
                cwd=ROOT,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def first_line(self) -> str:
        """Wait for what the server prints when it listens; empty if it ends before."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def kill(self) -> None:
        """End the server without any warning, as a crash does."""
        self.process.kill()
        self.process.wait(STOP_WITHIN)

    def stop(self) -> None:
        """End the server as an operator does, and wait for it."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(STOP_WITHIN)
        self._forget()

    def _forget(self) -> None:
        if self._process is not None:
            assert self._process.poll() is not None, "the server still runs"
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def log(self) -> str:
        """Return what the server wrote so far."""
        return (self.place / "serve.log").read_text()

    def memory(self) -> float:
        """Return the memory of the server in MiB."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found.group(1)) / 1024

    def cpu(self) -> float:
        """Return the seconds that the server has computed, threads included."""
        return time.clock_gettime(~self.process.pid << 3 | 2)  # clock_getcpuclockid(3)

    def handles(self) -> int:
        """Return the number of files and sockets that the server holds open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def probe(self) -> dict[str, Any]:
        """Return what a probed server holds: see `tests/serve/probe.py`."""
        self._probe_file.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + STOP_WITHIN
        while not self._probe_file.exists():
            assert time.monotonic() < deadline, "the server does not answer its probe"
            time.sleep(0.01)
        return dict(json.loads(self._probe_file.read_text()))

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Run SQL on the database of the site and return its rows, if it has any."""
        if self._database is not None:
            return self._database.query(statement)
        with closing(sqlite3.connect(self.place / "par.sqlite3", timeout=20, isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let nobody start a run meanwhile: what writes to the database waits."""
        if self._database is not None:
            with self._database.held():
                yield
            return
        with closing(sqlite3.connect(self.place / "par.sqlite3", timeout=20, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.rollback()

    def sign_in_link(self) -> str:
        """Return a fresh one-time link for the demo user."""
        found = re.search(r"http\S+/link/\S+", self.manage("bootstrap", "--demo"))
        assert found is not None
        return found.group()

    def token(self, who: str = "demo@localhost") -> str:
        """Return a new bearer token."""
        return self.manage("create_token", who).split()[-1]


class _Database:
    """A database of one site on the PostgreSQL server of the test run."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._name = f"par_site_{uuid4().hex[:12]}"
        self.url = urlsplit(server)._replace(path=f"/{self._name}").geturl()

    @classmethod
    def wanted(cls) -> Self | None:
        server = os.environ.get("DATABASE_URL", "")
        return cls(server) if server.startswith(("postgres://", "postgresql://")) else None

    def create(self, template: _Database | None = None) -> None:
        copied = f' TEMPLATE "{template._name}"' if template else ""
        self._execute(f'CREATE DATABASE "{self._name}"{copied}')

    def drop(self) -> None:
        self._execute(f'DROP DATABASE "{self._name}" WITH (FORCE)')

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(cast(Any, statement))
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def held(self) -> Iterator[None]:
        import psycopg

        with psycopg.connect(self.url) as connection:
            connection.execute("LOCK TABLE conversations_conversation, conversations_execution IN EXCLUSIVE MODE")
            yield

    def _execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(statement)


class _Template:
    """A site that was prepared once; the others begin as copies of it."""

    def __init__(self) -> None:
        self._place: TemporaryDirectory[str] | None = None
        self._database: _Database | None = None

    def copy_to(self, place: Path, database: _Database | None) -> None:
        if self._place is None:
            self._place = TemporaryDirectory(prefix="par-site-")
            self._make(Path(self._place.name))
        shutil.copytree(self._place.name, place, dirs_exist_ok=True)
        if database is not None:
            database.create(self._database)

    def _make(self, place: Path) -> None:
        self._database = _Database.wanted()
        if self._database is not None:
            self._database.create()
            atexit.register(self._database.drop)
        done = _run(_environment(place, self._database), "bootstrap", "--migrate", "--demo")
        assert done.returncode == 0, done.stderr


_TEMPLATE = _Template()


def _environment(place: Path, database: _Database | None) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {
        **inherited,
        "PAR_ENV_FILE": "",
        "PAR_ENVIRONMENT": "development",
        "PAR_DATA_DIR": str(place),
        "PYTHONWARNINGS": "default",
        **({"DATABASE_URL": database.url} if database else {}),
    }


def _run(environment: Mapping[str, str], *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=COMMAND_WITHIN,
        check=False,
    )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
