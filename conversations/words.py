"""Error codes in words for people; the page and its script share them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# A code that is not here speaks with its own message.
WORDS: Mapping[str, str] = MappingProxyType(
    {
        "MODEL_FAILED": "The model did not answer.",
        "MODEL_REFUSED": "The model refused to answer.",
        "MODEL_CONTENT_FILTERED": "The provider's content filter stopped the answer.",
        "MODEL_PROTOCOL_ERROR": "The model sent something that cannot be understood.",
        "TOOL_FAILED": "A tool failed.",
        "EXECUTION_LOST": "The server was interrupted while it worked on this.",
        "AGENT_EXECUTION_FAILED": "The run failed.",
        "INTERNAL_ERROR": "The server failed.",
        "DRAINING": "The server is being restarted. Send it again in a moment.",
        "RATE_LIMITED": "That was too fast. Try again in a moment.",
        "CONVERSATION_CONFLICT": "The conversation has gone on elsewhere. Reload the page and send your message again.",
        "NOT_CONNECTED": "There is no connection to the server.",
        "NO_ANSWER": "The server does not answer. Try again in a moment.",
    }
)

# These words say all there is to say; the message would only repeat it.
COMPLETE = frozenset({"DRAINING", "RATE_LIMITED", "CONVERSATION_CONFLICT", "NOT_CONNECTED", "NO_ANSWER"})


def sentence(code: str, message: str) -> str:
    """Return what to tell a person about an error; `sentence` of words.js is the same rule."""
    words = WORDS.get(code, "")
    detail = message[:1].upper() + message[1:]
    if detail and detail[-1] not in ".!?…":
        detail += "."
    if not words:
        return detail or "Something went wrong."
    return f"{words} {detail}" if detail and code not in COMPLETE else words


def for_script() -> dict[str, object]:
    """Return the words as data for the page's script."""
    return {"words": dict(WORDS), "complete": sorted(COMPLETE)}
