"""The site as an operator starts it: `manage.py migrate`, `bootstrap --demo`, `serve`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

ROOT = Path(__file__).resolve().parents[1]
COMMAND_WITHIN = 60.0
STOP_WITHIN = 30.0
FOREIGN = ("PAR_", "DJANGO_", "OPENAI_", "DATABASE_URL", "REDIS_URL")


class Site:
    """A server process on a free port with a database of its own; a context manager.

    The database is on the server that DATABASE_URL names, or SQLite in `place`. `drain` is in seconds; without `start`
    only commands are run.
    """

    def __init__(self, place: Path, *, pace: float, drain: float = 0, start: bool = True) -> None:
        self.place = place
        self.port = _free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._drain = drain
        self._starts = start
        self._database = _Database.wanted()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        self._environment = {
            **inherited,
            "PAR_ENV_FILE": "",
            "PAR_ENVIRONMENT": "development",
            "PAR_DATA_DIR": str(place),
            "PAR_DEMO_PACE": str(pace),
            "PORT": str(self.port),
            "PYTHONWARNINGS": "default",
            **({"DATABASE_URL": self._database.url} if self._database else {}),
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
        if self._database is not None:
            self._database.create()
            self.manage("migrate", "-v0")
            self.manage("bootstrap", "--demo")
            return
        template = Path(_TEMPLATE.name)
        if not any(template.iterdir()):
            place, self._environment["PAR_DATA_DIR"] = self._environment["PAR_DATA_DIR"], str(template)
            self.manage("migrate", "-v0")
            self.manage("bootstrap", "--demo")
            self._environment["PAR_DATA_DIR"] = place
        shutil.copytree(template, self.place, dirs_exist_ok=True)

    @property
    def sqlite(self) -> bool:
        return self._database is None

    @property
    def process(self) -> subprocess.Popen[str]:
        """The server process."""
        assert self._process is not None, "the server is not running"
        return self._process

    def run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a management command to its end."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self._environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=COMMAND_WITHIN,
            check=False,
        )

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
        self._forget()
        with (self.place / "serve.log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "manage.py", "serve", "--port", str(self.port), "--drain", str(self._drain)],
                cwd=ROOT,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if self.address not in line:
            self.stop()
            pytest.fail(f"the server did not start: {line}{self.log()}")

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

    def create(self) -> None:
        self._execute(f'CREATE DATABASE "{self._name}"')

    def drop(self) -> None:
        self._execute(f'DROP DATABASE "{self._name}" WITH (FORCE)')

    def _execute(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(statement)


# A site that was prepared once; the others on SQLite begin as copies of it.
_TEMPLATE = TemporaryDirectory(prefix="par-site-")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
