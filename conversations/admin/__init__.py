from conversations.admin.audit import GuardedAuditRecordAdmin
from conversations.admin.credentials import ApiTokenAdmin
from conversations.admin.executions import ExecutionAdmin, HostProcessAdmin
from conversations.admin.history import ConversationAdmin, RevisionAdmin
from conversations.admin.people import EmailAddressAdmin, GroupAdmin, SecondFactorAdmin, UserAdmin
from conversations.admin.sharing import ShareLinkAdmin

__all__ = [
    "ApiTokenAdmin",
    "ConversationAdmin",
    "EmailAddressAdmin",
    "ExecutionAdmin",
    "GroupAdmin",
    "GuardedAuditRecordAdmin",
    "HostProcessAdmin",
    "RevisionAdmin",
    "SecondFactorAdmin",
    "ShareLinkAdmin",
    "UserAdmin",
]
