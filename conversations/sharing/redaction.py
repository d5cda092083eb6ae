"""What of a conversation may be seen by others. Page, title and copy all go through `shared_messages`.

What is kept is listed, and nothing else passes: what a person and the agent said to one another, pictures, and of a
tool call its name and how it ended. Ids are new ones, for an imported message has that of another place; a picture that
is an attachment keeps its own, under which `shared_picture` finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.runtime.messages import (
    AgentMessage,
    Base64Source,
    Block,
    ImageBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from conversations.attachments import picture_of

PICTURE = "[picture]"  # one by address: the address may hold a key
FILE = "[file]"


def shared_messages(messages: Iterable[AgentMessage]) -> tuple[AgentMessage, ...]:
    """Return what others may see of these messages, valid as a context; messages of which nothing is left are gone."""
    calls: dict[str, str] = {}
    shared: list[AgentMessage] = []
    for message in messages:
        if message.role != "system" and (blocks := tuple(_shared(message.blocks, calls))):
            shared.append(AgentMessage(id=f"shared-{len(shared) + 1}", role=message.role, blocks=blocks))
    return tuple(shared)


def is_file(text: str) -> bool:
    """Return whether a text is a quoted file, or was meant to be one: no other begins like that."""
    return text.lstrip().startswith("<attachment id=")


def said_messages(shared: Iterable[AgentMessage]) -> tuple[AgentMessage, ...]:
    """Return shared messages without their tool calls: what another person's conversation may begin with."""
    said: list[AgentMessage] = []
    for message in shared:
        blocks = tuple(each for each in message.blocks if not isinstance(each, ToolCallBlock | ToolResultBlock))
        if blocks:
            said.append(message.model_copy(update={"blocks": blocks}))
    return tuple(said)


def _shared(blocks: Iterable[Block], calls: dict[str, str]) -> Iterator[Block]:
    """Yield what is kept of some blocks; `calls` are the new ids of calls by the old ones."""
    for block in blocks:
        match block:
            case TextBlock():
                yield TextBlock(text=FILE if is_file(block.text) else block.text)
            case ImageBlock():
                known = isinstance(block.source, Base64Source) or picture_of(block) is not None
                yield block if known else TextBlock(text=PICTURE)
            case ToolCallBlock():
                calls[block.call_id] = call_id = f"shared-call-{len(calls) + 1}"
                yield ToolCallBlock(call_id=call_id, name=block.name, input={})
            case ToolResultBlock() if block.call_id in calls:
                yield ToolResultBlock(
                    call_id=calls[block.call_id],
                    name=block.name,
                    status=block.status,
                    content=(),
                    execution=block.execution,
                )
            case _:
                pass  # reasoning, and whatever there will be
