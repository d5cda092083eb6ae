"""The site as an operator starts it: `manage.py migrate`, `bootstrap --demo`, `serve`."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

ROOT = Path(__file__).resolve().parents[2]
START_WITHIN = 60.0
STOP_WITHIN = 30.0
FOREIGN = ("PAR_", "DJANGO_", "OPENAI_", "DATABASE_URL", "REDIS_URL")


class Site:
    """A server process on a free port with a SQLite database of its own; a context manager."""

    def __init__(self, place: Path, *, pace: float) -> None:
        self.place = place
        self.port = _free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        self._environment = {
            **inherited,
            "PAR_ENV_FILE": "",
            "PAR_ENVIRONMENT": "development",
            "PAR_DATA_DIR": str(place),
            "PAR_DEMO_PACE": str(pace),
            "PORT": str(self.port),
            "PYTHONWARNINGS": "default",
        }
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.manage("migrate", "-v0")
        self.manage("bootstrap", "--demo")
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def manage(self, *arguments: str, given: str = "") -> str:
        """Run a management command and return what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self._environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=START_WITHIN,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shell(self, code: str) -> str:
        """Run Python with the site's settings and return what it printed."""
        return self.manage("shell", "--no-imports", "-c", code)

    def start(self) -> None:
        """Start the server and wait until it says that it listens."""
        with (self.place / "serve.log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "manage.py", "serve", "--port", str(self.port), "--drain", "0"],
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
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(STOP_WITHIN)
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


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
