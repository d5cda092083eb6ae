from conversations.models.attachments import NAME_LENGTH, Attachment, StoredFile
from conversations.models.credentials import ApiToken, OneTimeLink, SocketTicket
from conversations.models.executions import (
    LIVE,
    MOVES,
    NO_REQUEST,
    UNSAVED,
    Execution,
    ExecutionStatus,
    HostProcess,
    may_become,
)
from conversations.models.history import (
    LABEL_LENGTH,
    REVISION_BODIES,
    TITLE_LENGTH,
    Conversation,
    Revision,
    RevisionKind,
)
from conversations.models.people import User
from conversations.models.requests import IdempotentRequest
from conversations.models.search import SearchEntry
from conversations.models.sharing import ShareLink, ShareState
from conversations.models.sign_ins import SignIn

__all__ = [
    "LABEL_LENGTH",
    "LIVE",
    "MOVES",
    "NAME_LENGTH",
    "NO_REQUEST",
    "REVISION_BODIES",
    "TITLE_LENGTH",
    "UNSAVED",
    "ApiToken",
    "Attachment",
    "Conversation",
    "Execution",
    "ExecutionStatus",
    "HostProcess",
    "IdempotentRequest",
    "OneTimeLink",
    "Revision",
    "RevisionKind",
    "SearchEntry",
    "ShareLink",
    "ShareState",
    "SignIn",
    "SocketTicket",
    "StoredFile",
    "User",
    "may_become",
]
