from conversations.models.credentials import ApiToken, OneTimeLink, SocketTicket
from conversations.models.executions import LIVE, MOVES, Execution, ExecutionStatus, HostProcess, may_become
from conversations.models.history import TITLE_LENGTH, Conversation, Revision, RevisionKind
from conversations.models.people import User

__all__ = [
    "LIVE",
    "MOVES",
    "TITLE_LENGTH",
    "ApiToken",
    "Conversation",
    "Execution",
    "ExecutionStatus",
    "HostProcess",
    "OneTimeLink",
    "Revision",
    "RevisionKind",
    "SocketTicket",
    "User",
    "may_become",
]
