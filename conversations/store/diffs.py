"""What differs between two contexts of a conversation."""

from __future__ import annotations

from dataclasses import dataclass

from agent.runtime.messages import AgentMessage, Context


@dataclass(frozen=True, slots=True)
class Difference:
    """`common` messages begin both contexts; then one goes on with what is `removed`, the other with what is `added`.

    `common_end` messages end both.
    """

    common: int
    common_end: int
    removed: tuple[AgentMessage, ...]
    added: tuple[AgentMessage, ...]
    model_state_changed: bool


def difference(before: Context, after: Context) -> Difference:
    """Compare two contexts message by message."""
    old, new = before.messages, after.messages
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    left = shorter - start
    end = next((at for at in range(left) if old[-1 - at] != new[-1 - at]), left)
    return Difference(
        start,
        end,
        old[start : len(old) - end],
        new[start : len(new) - end],
        before.model_context.model_state != after.model_context.model_state,
    )
