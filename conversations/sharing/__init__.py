"""Links under which anybody may read a conversation as it was at one revision."""

from conversations.sharing.copies import agent_for, copied_messages, copy_share
from conversations.sharing.links import (
    ShareListing,
    change_share,
    create_share,
    owned_share,
    republish,
    revoke,
    shares_of,
    uuid_of,
)
from conversations.sharing.redaction import said_messages, shared_messages
from conversations.sharing.snapshots import SnapshotPage, snapshot_page

__all__ = [
    "ShareListing",
    "SnapshotPage",
    "agent_for",
    "change_share",
    "copied_messages",
    "copy_share",
    "create_share",
    "owned_share",
    "republish",
    "revoke",
    "said_messages",
    "shared_messages",
    "shares_of",
    "snapshot_page",
    "uuid_of",
]
