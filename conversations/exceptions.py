"""Errors of conversations.

AgentError                        from agent.runtime
├── AgentNotFound                 AGENT_NOT_FOUND: no such agent, or not for this person
├── ConversationNotFound          CONVERSATION_NOT_FOUND: no such conversation, or somebody else's (R125)
├── ExecutionNotFound             EXECUTION_NOT_FOUND: no such execution, or somebody else's
├── ConversationConflict          CONVERSATION_CONFLICT: the conversation went on meanwhile (R127, R140)
├── CorruptRevision               REVISION_CORRUPT: what is stored cannot be read (R123)
├── ExecutionLost                 EXECUTION_LOST: the execution has ended or belongs to another process
├── Unauthorized                  AUTH_REQUIRED: the account is closed or the sign-in is over
├── Forbidden                     FORBIDDEN: the credentials do not reach that far
├── RateLimited                   RATE_LIMITED: too many commands
└── Draining                      DRAINING: this process takes no new runs
"""

from __future__ import annotations

from agent.runtime.exceptions import AgentError


class AgentNotFound(AgentError):
    """Raised when an agent does not exist, is switched off or is closed to this person."""

    code = "AGENT_NOT_FOUND"


class ConversationNotFound(AgentError):
    """Raised when a conversation does not exist; somebody else's looks the same."""

    code = "CONVERSATION_NOT_FOUND"


class ExecutionNotFound(AgentError):
    """Raised when an execution does not exist; somebody else's looks the same."""

    code = "EXECUTION_NOT_FOUND"


class ConversationConflict(AgentError):
    """Raised when the base of a change is no longer what the conversation stands at; nothing is merged."""

    code = "CONVERSATION_CONFLICT"

    def __init__(self, current_revision: int) -> None:
        super().__init__(f"the conversation has moved on to revision {current_revision}; reload it")
        self.current_revision = current_revision


class CorruptRevision(AgentError):
    """Raised when a stored revision is missing a part or cannot be read; names the revision."""

    code = "REVISION_CORRUPT"


class ExecutionLost(AgentError):
    """Raised when a write finds that the execution has ended or belongs to another process."""

    code = "EXECUTION_LOST"


class Forbidden(AgentError):
    """Raised when somebody is known, but the scopes of their token do not cover what they ask for."""

    code = "FORBIDDEN"


class RateLimited(AgentError):
    """Raised when commands come faster than they may; worth another try a moment later."""

    code = "RATE_LIMITED"
    retryable = True


class Draining(AgentError):
    """Raised when a run is asked of a process that is about to stop; worth another try elsewhere."""

    code = "DRAINING"
    retryable = True


class Unauthorized(AgentError):
    """Raised when the account is closed or the sign-in is over."""

    code = "AUTH_REQUIRED"
