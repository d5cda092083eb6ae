"""What must hold for stored revisions, said once for those who load them and those who look for damage (R123)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias

from agent.runtime.messages import AgentMessage, ModelContext, ToolCallBlock, ToolResultBlock
from conversations.exceptions import CorruptRevision

# An id on the way from the beginning to a tip, and what it is the id of.
Mark: TypeAlias = tuple[Literal["message", "call", "result"], str]


def stored_messages(stored: object, number: int) -> tuple[AgentMessage, ...]:
    """Return the messages that the context of revision `number` holds; raises `CorruptRevision`."""
    try:
        if not isinstance(stored, list):  # an empty object or text would pass for no messages
            raise TypeError("a context is a list")
        return tuple(map(AgentMessage.from_wire, stored))
    except (RecursionError, TypeError, ValueError) as error:
        raise CorruptRevision(f"the messages of revision {number} cannot be read") from error


def stored_model_context(state: object, rest: Any, number: int) -> ModelContext:
    """Return the model context of revision `number`, kept in two columns; raises `CorruptRevision`."""
    try:
        return ModelContext.from_wire({**rest, "modelState": state})
    except (RecursionError, TypeError, ValueError) as error:
        raise CorruptRevision(f"the model context of revision {number} cannot be read") from error


def marks(messages: Iterable[AgentMessage]) -> Iterator[Mark]:
    """Yield the ids of messages, calls and results in order."""
    for message in messages:
        yield "message", message.id
        for block in message.blocks:
            if isinstance(block, ToolCallBlock):
                yield "call", block.call_id
            elif isinstance(block, ToolResultBlock):
                yield "result", block.call_id


def flaw(mark: Mark, before: set[Mark]) -> str | None:
    """Return what is wrong with an id after those `before` it on its path, None where nothing is."""
    kind, id = mark
    if mark in before:
        return f"has a second {kind} with the id {id[:64]!r}"
    if kind == "result" and ("call", id) not in before:
        return f"has a result without its call {id[:64]!r}"
    return None


def check_path(steps: Iterable[tuple[int, Iterable[AgentMessage]]]) -> None:
    """Raise `CorruptRevision` for an id that repeats on a path, or a result without its call.

    `steps` are the numbers of its revisions and the messages that each of them brings, in order.
    """
    before: set[Mark] = set()
    for number, messages in steps:
        for mark in marks(messages):
            if wrong := flaw(mark, before):
                raise CorruptRevision(f"revision {number} {wrong}")
            before.add(mark)
