from conversations.models.credentials import ApiToken, OneTimeLink
from conversations.models.executions import LIVE, Execution, ExecutionStatus, HostProcess
from conversations.models.history import Conversation, Revision
from conversations.models.people import User

__all__ = [
    "LIVE",
    "ApiToken",
    "Conversation",
    "Execution",
    "ExecutionStatus",
    "HostProcess",
    "OneTimeLink",
    "Revision",
    "User",
]
