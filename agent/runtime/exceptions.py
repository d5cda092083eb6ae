"""Errors of the runtime.

AgentError                        a stable `code` and a message a person can read
├── ModelFailed                   MODEL_FAILED, MODEL_REFUSED, MODEL_CONTENT_FILTERED: the provider did not deliver
├── ModelProtocolError            MODEL_PROTOCOL_ERROR: the stream or the history breaks the contract
├── LimitExceeded                 one of the five limits (R154)
├── InvalidState                  INVALID_STATE: the call does not fit the state of the execution
├── InvalidArgument               INVALID_ARGUMENT: the caller gave a value that cannot be used
├── ToolFailed                    TOOL_FAILED: a tool, adapter or interceptor raised (R81)
├── ToolAlreadyRegisteredError    TOOL_ALREADY_REGISTERED: two sources offer one name (R99)
├── ConversationNotFound          CONVERSATION_NOT_FOUND: no such conversation, or somebody else's (R125)
├── ConversationConflict          CONVERSATION_CONFLICT: the conversation went on meanwhile (R127, R140)
└── CorruptRevision               REVISION_CORRUPT: what is stored cannot be read (R123)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.runtime.messages import Context


class AgentError(Exception):
    """Raised when a run cannot go on; `code` is stable and may reach the wire.

    `recovered` is set on what `AgentExecution.result` raises: the context so far, valid to replay to any provider.
    """

    code = "AGENT_EXECUTION_FAILED"
    retryable = False

    def __init__(self, message: str, *, code: str | None = None, retryable: bool | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        if retryable is not None:
            self.retryable = retryable
        self.recovered: Context | None = None


class ModelFailed(AgentError):
    """Raised when the provider answers with an error, a refusal or not at all."""

    code = "MODEL_FAILED"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        kind: str = "provider-error",
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, code=code, retryable=retryable)
        self.kind = kind
        self.retry_after = retry_after


class ModelProtocolError(AgentError):
    """Raised when a model stream or a history breaks the contract (R40-R52, R75)."""

    code = "MODEL_PROTOCOL_ERROR"


class LimitExceeded(AgentError):
    """Raised when one of the five limits is passed; nothing is truncated (R69)."""


class InvalidState(AgentError):
    """Raised when a call does not fit the state of the execution (R89)."""

    code = "INVALID_STATE"


class InvalidArgument(AgentError):
    """Raised when a caller gives a value that cannot be used."""

    code = "INVALID_ARGUMENT"


class ToolFailed(AgentError):
    """Raised when a tool, its adapter or an interceptor raised (R81)."""

    code = "TOOL_FAILED"


class ToolAlreadyRegisteredError(AgentError):
    """Raised when a second source offers a tool name that is taken (R99)."""

    code = "TOOL_ALREADY_REGISTERED"


class ConversationNotFound(AgentError):
    """Raised when a conversation does not exist; somebody else's looks the same (R125)."""

    code = "CONVERSATION_NOT_FOUND"


class ConversationConflict(AgentError):
    """Raised when the base of a change is no longer what the conversation stands at; nothing is merged (R127)."""

    code = "CONVERSATION_CONFLICT"

    def __init__(self, current_revision: int) -> None:
        super().__init__(f"the conversation has moved on to revision {current_revision}; reload it")
        self.current_revision = current_revision


class CorruptRevision(AgentError):
    """Raised when what is stored is missing a part or cannot be read; names the conversation or revision (R123)."""

    code = "REVISION_CORRUPT"
