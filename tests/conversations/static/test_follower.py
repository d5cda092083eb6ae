"""The page keeps up with a conversation whatever the server answers; clock and connection are the test's own."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import conversations

MODULES = Path(conversations.__file__).parent / "static" / "par"

# Answers each request in turn, an ack where no code is left; a timer runs as soon as everything else has been done.
PLAYER = """
import { readFileSync } from "node:fs";
import { Follower } from "./follower.js";
const codes = JSON.parse(readFileSync(0, "utf8"));
const told = [];
let due = null;
globalThis.setTimeout = (work, pause) => (told.push(["pause", pause]), (due = work));
globalThis.clearTimeout = () => (due = null);
const connection = {
  async request(type, fields) {
    told.push([type, fields.conversationId]);
    const code = codes.shift();
    if (code) throw Object.assign(new Error(code), { code });
    return { version: 3 };
  },
};
const follower = new Follower(connection, "c", {
  onSubscribed: (ack) => told.push(["subscribed", ack.version]),
  onUnheard: (error) => told.push(["unheard", error.code]),
  onProblem: (error) => told.push(["problem", error.code]),
});
await follower.subscribe();
while (due) {
  const work = due;
  due = null;
  await work();
}
console.log(JSON.stringify(told));
"""


@pytest.fixture(scope="module")
def player(node: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("follower")
    for name in ("follower.js", "reducer.js"):
        shutil.copy(MODULES / name, place / name)
    (place / "package.json").write_text('{"type": "module"}')
    (place / "player.js").write_text(PLAYER)
    return place / "player.js"


def follow(player: Path, *codes: str) -> list[list[Any]]:
    """Follow a conversation whose subscriptions are refused with these codes, and return what happened."""
    done = subprocess.run(
        ["node", str(player)], input=json.dumps(codes), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    told: list[list[Any]] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("code", ["INTERNAL_ERROR", "NO_ANSWER", "RATE_LIMITED", "DRAINING"])
def test_a_subscription_that_failed_is_tried_again(player: Path, code: str) -> None:
    assert follow(player, code) == [
        ["subscribe", "c"],
        ["pause", 1000],
        ["unheard", code],
        ["subscribe", "c"],
        ["subscribed", 3],
    ]


def test_the_pauses_grow_and_have_an_end(player: Path) -> None:
    told = follow(player, *["INTERNAL_ERROR"] * 7)

    assert [value for what, value in told if what == "pause"] == [1000, 2000, 4000, 8000, 16_000, 20_000, 20_000]
    assert told[-1] == ["subscribed", 3]


@pytest.mark.parametrize("code", ["CONVERSATION_NOT_FOUND", "EXECUTION_NOT_FOUND", "FORBIDDEN", "AUTH_REQUIRED"])
def test_what_is_refused_for_good_is_told_and_not_tried_again(player: Path, code: str) -> None:
    assert follow(player, code) == [["subscribe", "c"], ["problem", code]]


def test_a_lost_connection_is_left_to_the_next_one(player: Path) -> None:
    assert follow(player, "NOT_CONNECTED") == [["subscribe", "c"]]
