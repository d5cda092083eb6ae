"""The only code that writes conversations and revisions.

Plain functions on the ORM, each of them one short transaction; the host and the sockets call them through
`DatabaseExecutor`. A plain turn is two of them: `begin_turn` and `save_turn`. Revisions form a tree and never change.
"""

from conversations.store.contexts import load_context
from conversations.store.conversations import owned_conversation
from conversations.store.executions import finish_failed, note_cancel, record_progress
from conversations.store.recovered import Adopted, adopt_recovered
from conversations.store.turns import BegunTurn, begin_turn, check_turn, request_digest, save_turn, title_of

__all__ = [
    "Adopted",
    "BegunTurn",
    "adopt_recovered",
    "begin_turn",
    "check_turn",
    "finish_failed",
    "load_context",
    "note_cancel",
    "owned_conversation",
    "record_progress",
    "request_digest",
    "save_turn",
    "title_of",
]
