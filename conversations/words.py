"""Error codes and endings of runs in words for people; the page and its script share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_SERVER_STOPPED = "The server was stopped while it answered."

# A code that is not here speaks with its own message.
WORDS: Mapping[str, str] = MappingProxyType(
    {
        "MODEL_FAILED": "The model did not answer.",
        "MODEL_REFUSED": "The model refused to answer.",
        "MODEL_CONTENT_FILTERED": "The provider's content filter stopped the answer.",
        "MODEL_PROTOCOL_ERROR": "The model sent something that cannot be understood.",
        "TOOL_FAILED": "A tool failed.",
        "MODEL_OUTPUT_LIMIT_EXCEEDED": "The answer became too long.",
        "TOOL_RESULT_LIMIT_EXCEEDED": "The results of the tools became too long.",
        "AGENT_MAX_MODEL_CALLS": "The agent came to no end: it asked its model too often.",
        "AGENT_MAX_TOOL_CALLS": "The agent came to no end: it used its tools too often.",
        "AGENT_EXECUTION_TIMEOUT": "The answer took too long.",
        "AGENT_EXECUTION_FAILED": "The agent failed.",
        "EXECUTION_LOST": _SERVER_STOPPED,
        "TOOL_ALREADY_REGISTERED": "Two tools have one name.",
        "REVISION_CORRUPT": "The conversation cannot be read.",
        "INTERNAL_ERROR": "The server failed.",
        "DRAINING": "The server is being restarted. Send it again in a moment.",
        "RATE_LIMITED": "That was too fast. Try again in a moment.",
        "CONVERSATION_CONFLICT": "The conversation has gone on elsewhere. Read what is new, then send it again.",
        "CONVERSATION_NOT_FOUND": "This conversation is not there any more.",
        "CONVERSATION_SAVE_FAILED": "The turn could not be stored.",
        "EXECUTION_NOT_FOUND": "This turn is not there any more.",
        "REVISION_NOT_FOUND": "This version of the conversation is not there any more.",
        "ATTACHMENT_NOT_FOUND": "A file of this message is not there any more. Attach it again.",
        "ATTACHMENT_UNFIT": "This file cannot be attached.",
        "ATTACHMENT_MISSING": "A file of this conversation cannot be read any more.",
        "PAYLOAD_TOO_LARGE": "The file is too large for the server.",
        "SHARE_NOT_FOUND": "This link is not there any more.",
        "AGENT_NOT_FOUND": "This agent is not there any more, or not open to you.",
        "AUTH_REQUIRED": "You are not signed in any more. Sign in again.",
        "FORBIDDEN": "You may not do this.",
        "ADMIN_FORBIDDEN": "This is for administrators.",
        "INVALID_STATE": "This is not possible now.",
        "INVALID_ARGUMENT": "The server cannot use this.",
        "MESSAGE_TOO_LARGE": "The message is too long for the server.",
        "NOT_CONNECTED": "There is no connection to the server.",
        "NO_ANSWER": "The server does not answer. Try again in a moment.",
    }
)

# These words say all there is to say; the message would only repeat it.
COMPLETE = frozenset(
    {
        "EXECUTION_LOST",
        "DRAINING",
        "RATE_LIMITED",
        "CONVERSATION_CONFLICT",
        "CONVERSATION_NOT_FOUND",
        "EXECUTION_NOT_FOUND",
        "REVISION_NOT_FOUND",
        "SHARE_NOT_FOUND",
        "AGENT_NOT_FOUND",
        "AUTH_REQUIRED",
        "MESSAGE_TOO_LARGE",
        "NOT_CONNECTED",
        "NO_ANSWER",
    }
)

# What a code means where something had been answered before.
BEGUN: Mapping[str, str] = MappingProxyType({"MODEL_FAILED": "The answer broke off."})

# Why a run was cancelled; another reason is somebody's wish.
CANCELLED: Mapping[str, str] = MappingProxyType({"shutdown": _SERVER_STOPPED})

# How a question about a tool was decided, and how the engine tells the model of it where the tool did not run.
DECISIONS: Mapping[str, str] = MappingProxyType(
    {
        "approved": "Approved",
        "modified": "Approved with other arguments",
        "rejected": "Rejected",
        "timeout": "Not answered in time",
    }
)
REFUSALS: Mapping[str, str] = MappingProxyType(
    {"rejected": "The user rejected this call.", "timeout": "Nobody answered in time."}
)

STOPPED = "Stopped."
SOMETHING = "Something went wrong."
CUT_OFF = "The answer was cut off: the model reached its limit."


@dataclass(frozen=True, slots=True)
class Notice:
    """What stands below a turn that did not end well: one plain sentence, and what the provider or server said.

    `begun` tells whether there is anything that a person could continue from.
    """

    text: str
    detail: str = ""
    begun: bool = False


def cancellation(reason: str, *, begun: bool) -> Notice:
    """Return what to tell a person about a run that was cancelled."""
    return Notice(CANCELLED.get(reason, STOPPED), begun=begun)


def decision(refused: str) -> str:
    """Return how a call that did not run was decided, by its result's text; empty where nobody was asked."""
    return next((kind for kind, opening in REFUSALS.items() if refused.startswith(opening)), "")


def failure(code: str, message: str, *, begun: bool) -> Notice:
    """Return what to tell a person about a failed run; `noticeOf` of words.js is the same rule."""
    words = (BEGUN.get(code) if begun else None) or WORDS.get(code)
    detail = _whole(message)
    if words is None:
        return Notice(detail or SOMETHING, begun=begun)
    return Notice(words, "" if code in COMPLETE else detail, begun)


def sentence(code: str, message: str) -> str:
    """Return what to tell a person about an error; `sentence` of words.js is the same rule."""
    words = WORDS.get(code, "")
    detail = _whole(message)
    if not words:
        return detail or SOMETHING
    return f"{words} {detail}" if detail and code not in COMPLETE else words


def _whole(message: str) -> str:
    begun = message[:1].upper() + message[1:]
    return f"{begun}." if begun and begun[-1] not in ".!?…" else begun


def for_script() -> dict[str, object]:
    """Return the words as data for the page's script."""
    return {
        "words": dict(WORDS),
        "complete": sorted(COMPLETE),
        "begun": dict(BEGUN),
        "cancelled": dict(CANCELLED),
        "decisions": dict(DECISIONS),
        "refusals": dict(REFUSALS),
        "stopped": STOPPED,
        "cutOff": CUT_OFF,
        "something": SOMETHING,
    }
