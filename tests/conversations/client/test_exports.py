"""The client as a package: cheap to import, the same for tasks and threads, documented."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import conversations.client
from conversations.client import AsyncClient, AsyncRun, Client, Event, Run

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "client.md").read_text()
LISTING = (
    "import sys, json, conversations.client; print(json.dumps(sorted({n.partition('.')[0] for n in sys.modules})))"
)


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


def test_a_plain_script_imports_the_client_and_nothing_of_the_site() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LISTING],
        cwd=ROOT, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    loaded = set(json.loads(done.stdout))
    assert loaded - sys.stdlib_module_names - {"__main__"} <= {"conversations", "orjson", "websockets", "_orjson"} | {
        name for name in loaded if name.startswith(("_", "distutils", "sitecustomize"))
    }


def test_what_is_exported_is_sorted_and_there() -> None:
    names = conversations.client.__all__
    assert names == sorted(names, key=lambda name: (name[0].islower(), name))
    assert all(hasattr(conversations.client, name) for name in names)


def test_both_clients_and_both_runs_have_the_same_names_and_parameters() -> None:
    assert public(Client) == public(AsyncClient) - {"timeout"}
    ours = {"feed", "fail", "take", "wait", "check", "value"}  # what the clients use
    assert public(Run) == public(AsyncRun) - ours
    for name in ("__init__", "start", "run", "follow", "command"):
        one, other = inspect.signature(getattr(Client, name)), inspect.signature(getattr(AsyncClient, name))
        assert list(one.parameters.values()) == list(other.parameters.values()), name


def test_the_page_names_each_event_and_each_setting() -> None:
    for event in get_args(Event):
        assert f"`{event.__name__}`" in PAGE
    for name in list(inspect.signature(Client).parameters):
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_does_not_show_its_token(kind: type[Client | AsyncClient]) -> None:
    assert repr(kind("https://ai.example.org", "par_secret")) == f"<{kind.__name__} wss://ai.example.org/ai/ws>"
