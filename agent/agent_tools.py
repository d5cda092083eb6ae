"""The tools that ship: the time, arithmetic, and a postcard that asks first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import Field

from agent.runtime.tools import Tool
from agent.tools import ToolContext, ToolError, tool
from agent.tools.arithmetic import evaluate


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise ToolError(f"There is no time zone {name[:80]!r}; use an IANA name such as 'Europe/Berlin'.") from error


def current_time_tool(now: Callable[[], datetime]) -> Tool:
    """Return the tool `local.current_time`, telling the time by `now`."""

    @tool(read_only=True)
    def current_time(zone: str = "UTC") -> str:
        """Tell the current date and time.

        Args:
            zone: An IANA time zone such as "Europe/Berlin" or "UTC".
        """
        moment = now().astimezone(_zone(zone))
        return f"{moment:%A, %d %B %Y, %H:%M:%S} in {zone} ({moment.isoformat(timespec='seconds')})"

    return current_time


current_time = current_time_tool(lambda: datetime.now(UTC))


@tool(read_only=True)
def calculate(expression: str) -> str:
    """Work out an arithmetic expression.

    Args:
        expression: Numbers with + - * / // % ** and parentheses, the constants pi, e, tau, and the functions abs,
            round, min, max, sqrt, floor, ceil, exp, log, log10, sin, cos, tan.
    """
    return evaluate(expression)


@tool(require_confirmation=True)
async def send_postcard(
    to: Annotated[str, Field(min_length=1, max_length=200)],
    text: Annotated[str, Field(min_length=1, max_length=2_000)],
    context: ToolContext,
) -> str:
    """Send a postcard to somebody. A person is asked before it goes out.

    Args:
        to: Who gets it.
        text: What it says.
    """
    context.progress("Writing the address…")
    return f"The postcard to {to} is on its way (this is a demo: nothing was really sent)."
