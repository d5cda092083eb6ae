"""Tool results as readers of a run are sent them: a long one is cut, to its beginning and its end.

What is stored and what the model sees stay whole. A block that was cut says so in its text and by the member `omitted`,
the number of characters that are left out; it is no `ToolResultBlock` any more and cannot be taken for one.
"""

from __future__ import annotations

from typing import Any

from agent.runtime.messages import AgentMessage

MOST_SHOWN = 16_000  # characters of one result
_TAIL = 4_000


def shown(message: AgentMessage, execution_id: str) -> dict[str, Any]:
    """Return the wire form of a message for the readers of a run."""
    return shown_wire(message.to_wire(), execution_id)


def shown_wire(message: dict[str, Any], execution_id: str) -> dict[str, Any]:
    """Return the wire form of a stored message for the readers of a run; the same object where nothing is cut."""
    if message["role"] != "tool":
        return message
    blocks = [_cut(block, f"executions/{execution_id}") for block in message["blocks"]]
    return message if blocks == list(message["blocks"]) else {**message, "blocks": blocks}


def excerpt(text: str, place: str = "") -> tuple[str, int]:
    """Return a text and the number of characters that are left out of it; what stays says so, and where the whole is.

    An empty `place` is none.
    """
    omitted = len(text) - MOST_SHOWN
    if omitted <= 0:
        return text, 0
    where = f"; the whole is at {place}" if place else ""
    notice = f"\n\n[{omitted:,} characters are left out here{where}]\n\n"
    return text[: MOST_SHOWN - _TAIL] + notice + text[-_TAIL:], omitted


def _cut(block: dict[str, Any], place: str) -> dict[str, Any]:
    if block["type"] != "tool-result" or sum(len(part["text"]) for part in block["content"]) <= MOST_SHOWN:
        return block
    whole = "\n\n".join(part["text"] for part in block["content"])
    text, omitted = excerpt(whole, f"{place}/tool-results/{block['callId']}")
    return {**block, "content": [{"type": "text", "text": text}], "omitted": omitted}
