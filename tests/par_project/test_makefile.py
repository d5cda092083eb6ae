"""What `make` hands to the commands."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of the Makefile with an environment that is installed and prints what it is asked to do."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("uv.lock", "pyproject.toml", ".env", ".venv/bin/python", ".venv/bin/uv", ".venv/.stamp"):
        file = tmp_path / name
        file.write_text('#!/bin/sh\necho "$* PORT=${PORT-none}"\n')
        file.chmod(0o755)
        os.utime(file, (1_000, 1_000))
    return tmp_path


def make(place: Path, *arguments: str) -> str:
    given = {"PATH": os.environ["PATH"]}
    done = subprocess.run(["make", *arguments], cwd=place, env=given, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_port_is_that_of_the_command_line_or_left_to_the_settings(place: Path) -> None:
    assert make(place, "run").splitlines()[-1] == "manage.py serve --host 127.0.0.1 --drain 0 PORT=none"
    assert make(place, "run", "PORT=9000").splitlines()[-1].endswith("PORT=9000")


def test_installing_is_announced_when_it_happens(place: Path) -> None:
    assert "Installing" not in make(place, "install")
    os.utime(place / "uv.lock", (2_000, 2_000))
    assert make(place, "install").splitlines()[0] == "Installing into .venv …"
