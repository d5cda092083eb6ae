"""The only code that writes conversations and revisions.

Plain functions on the ORM, each of them one short transaction; the host and the sockets call them through
`DatabaseExecutor`, views in Django's threads. A plain turn is two of them: `begin_turn` and `save_turn`. Revisions form
a tree; nothing in them changes but the label.
"""

from conversations.store.branching import Base, Branch, base_of
from conversations.store.chains import KnownState
from conversations.store.changes import UNCHANGED, Changes, Unchanged, change_conversation
from conversations.store.contexts import Path, Step, load_context, load_path, way_to, way_to_head
from conversations.store.conversations import create_conversation, delete_conversation, owned_conversation, usable_agent
from conversations.store.diffs import Difference, difference
from conversations.store.executions import finish_failed, note_cancel, record_progress
from conversations.store.keys import check_key
from conversations.store.puts import check_messages, claimed, put_conversation
from conversations.store.recovered import Adopted, adopt_recovered
from conversations.store.results import result_in, result_of_conversation, result_of_run
from conversations.store.revisions import (
    advance,
    append_revision,
    label_revision,
    locked_conversation,
    owned_revision,
    refuse_while_live,
    reset_model_state,
    restore,
)
from conversations.store.siblings import Sibling, siblings
from conversations.store.trees import Node, fork, graft, leave_turns, move_head, plant_tree
from conversations.store.turns import BegunTurn, begin_turn, check_turn, request_digest, save_turn, title_of

__all__ = [
    "UNCHANGED",
    "Adopted",
    "Base",
    "BegunTurn",
    "Branch",
    "Changes",
    "Difference",
    "KnownState",
    "Node",
    "Path",
    "Sibling",
    "Step",
    "Unchanged",
    "adopt_recovered",
    "advance",
    "append_revision",
    "base_of",
    "begin_turn",
    "change_conversation",
    "check_key",
    "check_messages",
    "check_turn",
    "claimed",
    "create_conversation",
    "delete_conversation",
    "difference",
    "finish_failed",
    "fork",
    "graft",
    "label_revision",
    "leave_turns",
    "load_context",
    "load_path",
    "locked_conversation",
    "move_head",
    "note_cancel",
    "owned_conversation",
    "owned_revision",
    "plant_tree",
    "put_conversation",
    "record_progress",
    "refuse_while_live",
    "request_digest",
    "reset_model_state",
    "restore",
    "result_in",
    "result_of_conversation",
    "result_of_run",
    "save_turn",
    "siblings",
    "title_of",
    "usable_agent",
    "way_to",
    "way_to_head",
]
