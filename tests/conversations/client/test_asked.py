"""What a run asks of the program: tools that fail, and approvals."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.client import ApprovalRequested, AsyncRun, ParError, Tool
from conversations.client.asked import OnApproval, decide, outcome_of
from conversations.client.effects import Called
from conversations.client.transcript import Transcript

INTERRUPT = {"id": "i", "tool": {"name": "pay"}, "arguments": {"sum": 3}}


class Commands:
    """Takes the commands of a run, or refuses them."""

    def __init__(self, refusal: ParError | None = None) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self._refusal = refusal

    async def command(self, type: str, **members: Any) -> dict[str, Any]:
        if self._refusal is not None:
            raise self._refusal
        self.sent.append((type, {name: value for name, value in members.items() if value is not None}))
        return {}


def asking(commands: Commands) -> tuple[AsyncRun, ApprovalRequested]:
    transcript = Transcript("e", "c")
    events = transcript.event({"type": "interrupt-requested", "seq": 1, "interrupt": INTERRUPT, "callId": "1"})
    assert events is not None and isinstance(events[0], ApprovalRequested)
    return AsyncRun(commands, transcript), events[0]


def fails(asked: ApprovalRequested) -> bool:
    raise RuntimeError("the terminal is gone")


async def agrees(asked: ApprovalRequested) -> bool:
    return asked.arguments["sum"] < 5


NAMES = {"executionId": "e", "interruptId": "i"}


@pytest.mark.parametrize(
    ("handler", "sent"),
    [
        (agrees, ("approve", NAMES)),
        (lambda asked: {"sum": 1}, ("approve", NAMES | {"arguments": {"sum": 1}})),
        (lambda asked: {}, ("approve", NAMES | {"arguments": {}})),
        (lambda asked: False, ("reject", NAMES)),
        (lambda asked: None, ("reject", NAMES)),
        (lambda asked: 1, ("reject", NAMES)),
        (lambda asked: "Too much.", ("reject", NAMES | {"reason": "Too much."})),
        (fails, ("reject", NAMES | {"reason": "The person could not be asked."})),
    ],
)
async def test_only_true_or_arguments_approve(handler: OnApproval, sent: tuple[str, dict[str, Any]]) -> None:
    commands = Commands()
    await decide(*asking(commands), handler)
    assert commands.sent == [sent]


async def test_an_answer_that_comes_too_late_harms_nobody() -> None:
    await decide(*asking(Commands(ParError("INVALID_STATE", "answered already"))), agrees)
    commands = Commands()
    run, asked = asking(commands)
    run._transcript.event({"type": "interrupt-resolved", "seq": 2, "interruptId": "i", "decision": "rejected"})
    await decide(run, asked, agrees)
    assert commands.sent == []
    with pytest.raises(ParError, match="no interrupt is pending"):
        await run.approve()


def divide(by: int) -> float:
    return 1 / by


@pytest.mark.parametrize(
    ("tool", "arguments", "result"),
    [
        (Tool("divide", "Divides.", {}, divide), {"by": 2}, (0.5, False)),
        (Tool("divide", "Divides.", {}, divide), {"by": 0}, ("ZeroDivisionError: division by zero", True)),
        (None, {}, ("there is no tool 'divide' here", True)),
    ],
)
async def test_what_a_tool_returns_or_raises_is_its_result(
    tool: Tool | None, arguments: dict[str, Any], result: tuple[Any, bool]
) -> None:
    assert await outcome_of(tool, Called("e", "c", "divide", arguments)) == result
