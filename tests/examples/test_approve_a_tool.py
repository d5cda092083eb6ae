"""The example that asks in the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Runs a module as its main module and says at the end what was loaded.
LISTING = """
import json, runpy, sys
runpy.run_module("examples.approve_a_tool", run_name="__main__")
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def run(*arguments: str, stdin: str) -> str:
    """Run Python at the root of the repository, with nothing of this process's settings, and return what it wrote."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=ROOT, env=environment, input=stdin, capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(("stdin", "sent"), [("y\n", True), ("n\n", False), ("", False)])
def test_the_postcard_is_sent_only_if_a_person_says_so(stdin: str, sent: bool) -> None:
    said = run("-m", "examples.approve_a_tool", stdin=stdin)
    assert "local.send_postcard {'to': 'Ada'" in said
    assert ("The postcard to Ada is in the mail." in said) is sent
    assert ("no postcard was sent" in said) is not sent
    assert said.splitlines()[-1] == "completed"


def test_the_example_loads_no_django() -> None:
    """A plain script can use runtime, providers and tools without the site."""
    loaded = set(json.loads(run("-c", LISTING, stdin="y\n").splitlines()[-1]))
    assert "agent" in loaded
    assert not loaded & {"django", "channels", "daphne", "twisted", "ninja", "allauth", "unfold", "conversations"}
