"""Errors of conversations.

AgentError                        from agent.runtime
├── ConversationNotFound          ┐
├── ConversationConflict          │ from agent.runtime too: every store of conversations raises these
├── CorruptRevision               ┘
├── AgentNotFound                 AGENT_NOT_FOUND: no such agent, or not for this person
├── ExecutionNotFound             EXECUTION_NOT_FOUND: no such execution, or somebody else's
├── RevisionNotFound              REVISION_NOT_FOUND: no such revision in this conversation
├── AttachmentNotFound            ATTACHMENT_NOT_FOUND: no such attachment, or somebody else's
├── ToolResultNotFound            NOT_FOUND: no result of such a call
├── UnfitAttachment               ATTACHMENT_UNFIT: a file that is not taken, for what is in it
├── AttachmentMissing             ATTACHMENT_MISSING: a file that should be there is not, or is another
├── ImportInvalid                 IMPORT_INVALID: a file that cannot be imported, and the place in it
├── PayloadTooLarge               PAYLOAD_TOO_LARGE: a body with more bytes than are read
├── ShareNotFound                 SHARE_NOT_FOUND: no such share link, or somebody else's
├── ExecutionLost                 EXECUTION_LOST: the execution has ended or belongs to another process
├── Unauthorized                  AUTH_REQUIRED: the account is closed or the sign-in is over
├── WrongOrigin                   FORBIDDEN: a cookie from a page that is not the site's
├── Forbidden                     FORBIDDEN: the credentials do not reach that far
├── AdminForbidden                ADMIN_FORBIDDEN: this is for staff, or for staff with a permission
├── RateLimited                   RATE_LIMITED: too many commands
├── Draining                      DRAINING: this process takes no new runs
├── NotServed                     NOT_SERVED: this process runs no agents
└── UnsupportedMediaType          UNSUPPORTED_MEDIA_TYPE: a body that is not sent as JSON
"""

from __future__ import annotations

from agent.runtime.exceptions import AgentError, ConversationConflict, ConversationNotFound, CorruptRevision

__all__ = [
    "AdminForbidden",
    "AgentNotFound",
    "AttachmentMissing",
    "AttachmentNotFound",
    "ConversationConflict",
    "ConversationNotFound",
    "CorruptRevision",
    "Draining",
    "ExecutionLost",
    "ExecutionNotFound",
    "Forbidden",
    "ImportInvalid",
    "NotServed",
    "PayloadTooLarge",
    "RateLimited",
    "RevisionNotFound",
    "ShareNotFound",
    "ToolResultNotFound",
    "Unauthorized",
    "UnfitAttachment",
    "UnsupportedMediaType",
]

LONGEST_PLACE = 300  # characters


class AgentNotFound(AgentError):
    """Raised when an agent does not exist, is switched off or is closed to this person."""

    code = "AGENT_NOT_FOUND"


class ExecutionNotFound(AgentError):
    """Raised when an execution does not exist; somebody else's looks the same."""

    code = "EXECUTION_NOT_FOUND"


class RevisionNotFound(AgentError):
    """Raised when a conversation has no such revision; another conversation's looks the same."""

    code = "REVISION_NOT_FOUND"


class AttachmentNotFound(AgentError):
    """Raised when an attachment does not exist; somebody else's looks the same."""

    code = "ATTACHMENT_NOT_FOUND"


class ToolResultNotFound(AgentError):
    """Raised when a run or conversation has no result of such a call."""

    code = "NOT_FOUND"


class UnfitAttachment(AgentError):
    """Raised when a file cannot be attached; the message says what is in it."""

    code = "ATTACHMENT_UNFIT"


class AttachmentMissing(AgentError):
    """Raised when a file that a conversation mentions is not in the storage, or is not what was stored."""

    code = "ATTACHMENT_MISSING"


class ImportInvalid(AgentError):
    """Raised when a file cannot be imported; `place` is where in it, as a JSON path such as `$[3].mapping`."""

    code = "IMPORT_INVALID"

    def __init__(self, place: str, what: str) -> None:
        self.place = place if len(place) <= LONGEST_PLACE else place[:LONGEST_PLACE] + "…"
        super().__init__(f"{self.place}: {what}")


class PayloadTooLarge(AgentError):
    """Raised when a body has more bytes than are read."""

    code = "PAYLOAD_TOO_LARGE"


class ShareNotFound(AgentError):
    """Raised when a share link does not exist; somebody else's looks the same."""

    code = "SHARE_NOT_FOUND"


class ExecutionLost(AgentError):
    """Raised when a write finds that the execution has ended or belongs to another process."""

    code = "EXECUTION_LOST"


class WrongOrigin(AgentError):
    """Raised when a session cookie comes from a page that is not the site's."""

    code = "FORBIDDEN"


class Forbidden(AgentError):
    """Raised when somebody is known, but the scopes of their token do not cover what they ask for."""

    code = "FORBIDDEN"


class AdminForbidden(AgentError):
    """Raised when somebody asks for what is for staff, or staff for what they have no permission for (R153)."""

    code = "ADMIN_FORBIDDEN"


class RateLimited(AgentError):
    """Raised when commands come faster than they may; worth another try a moment later."""

    code = "RATE_LIMITED"
    retryable = True

    def __init__(self, message: str, *, retry_after: int = 5) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class Draining(AgentError):
    """Raised when a run is asked of a process that is about to stop; worth another try elsewhere."""

    code = "DRAINING"
    retryable = True


class NotServed(AgentError):
    """Raised when a run is asked of a process that is not `manage.py serve`."""

    code = "NOT_SERVED"


class UnsupportedMediaType(AgentError):
    """Raised for a body that says it is something else than JSON."""

    code = "UNSUPPORTED_MEDIA_TYPE"


class Unauthorized(AgentError):
    """Raised when the account is closed or the sign-in is over."""

    code = "AUTH_REQUIRED"
