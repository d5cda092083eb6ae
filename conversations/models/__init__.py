from conversations.models.credentials import ApiToken, OneTimeLink, SocketTicket
from conversations.models.executions import LIVE, MOVES, Execution, ExecutionStatus, HostProcess, may_become
from conversations.models.history import LABEL_LENGTH, TITLE_LENGTH, Conversation, Revision, RevisionKind
from conversations.models.people import User
from conversations.models.requests import IdempotentRequest
from conversations.models.search import SearchEntry
from conversations.models.sign_ins import SignIn

__all__ = [
    "LABEL_LENGTH",
    "LIVE",
    "MOVES",
    "TITLE_LENGTH",
    "ApiToken",
    "Conversation",
    "Execution",
    "ExecutionStatus",
    "HostProcess",
    "IdempotentRequest",
    "OneTimeLink",
    "Revision",
    "RevisionKind",
    "SearchEntry",
    "SignIn",
    "SocketTicket",
    "User",
    "may_become",
]
