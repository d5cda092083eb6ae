"""The codes that the code can raise, so that a new error is missing on the pages until it is written down."""

from __future__ import annotations

from collections.abc import Iterator

from agent.runtime import exceptions as of_runs
from agent.runtime.exceptions import AgentError
from conversations import exceptions as of_conversations

OF_RUNS_ONLY = {
    of_runs.ModelFailed,
    of_runs.ModelProtocolError,
    of_runs.LimitExceeded,
    of_runs.ToolFailed,
    of_runs.ToolAlreadyRegisteredError,
    of_conversations.ExecutionLost,
}


def _errors() -> Iterator[type[AgentError]]:
    for module in (of_runs, of_conversations):
        for found in vars(module).values():
            if isinstance(found, type) and issubclass(found, AgentError):
                yield found


ERRORS = frozenset(_errors())
REFUSALS = {error.code for error in ERRORS - OF_RUNS_ONLY} | {"INTERNAL_ERROR"}
FAILURES = {error.code for error in OF_RUNS_ONLY - {of_runs.LimitExceeded}} | {AgentError.code}
