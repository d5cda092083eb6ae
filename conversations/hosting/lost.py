"""Runs that nobody runs any more: ended honestly and exactly once."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import cast

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from agent.runtime.exceptions import AgentError
from agent.runtime.messages import AgentMessage, ModelContext
from agent.runtime.recovery import CallState, close_open_calls
from agent.runtime.state import ExecutionState
from conversations.exceptions import ExecutionLost
from conversations.hosting.ending import Ending, keep
from conversations.hosting.past import state_of
from conversations.models import LIVE, Execution, HostProcess

logger = logging.getLogger("conversations.hosting")

LOST_AFTER = timedelta(seconds=20)
STRAYED_AFTER = timedelta(minutes=1)
LOST_MESSAGE = "The server stopped while this answer was being written."


def end_lost_runs(process: HostProcess, running: Collection[str] = ()) -> list[ExecutionState]:
    """End the runs of processes that are gone; returns their last states.

    A row of this `process` that has long been live and is not among `running` is one that it lost itself.
    """
    now = timezone.now()
    lost = Q() if connection.vendor == "sqlite" else gone(now)  # on SQLite this process is the only one
    mine = Q(host=process)
    strayed = mine & Q(started_at__lt=now - STRAYED_AFTER) & ~Q(pk__in=running)
    live = Execution.objects.filter(status__in=LIVE).select_related("host", "agent", "revision")
    ended: list[ExecutionState] = []
    for execution in live.filter((~mine | Q(host=None)) & lost | strayed):
        try:
            _end(execution)
        except ExecutionLost:
            continue  # another process was first
        ended.append(state_of(execution))
    if ended:
        logger.warning("%d runs were lost with their process", len(ended))
    return ended


def gone(now: datetime) -> Q:
    """Return the condition of executions whose process does not live any more."""
    return Q(host=None) | Q(host__heartbeat_at__lt=now - LOST_AFTER) | Q(host__stopped_at__lte=now)


def _end(execution: Execution) -> None:
    calls = cast(Mapping[str, CallState], execution.calls)
    context = execution.model_context
    try:
        messages = [AgentMessage.from_wire(message) for message in execution.transcript or [execution.input]]
    except ValueError:
        logger.exception("the transcript of execution %s cannot be read", execution.pk)
        messages = []
    ending = Ending(
        str(execution.pk),
        None,
        None,
        (*messages, *close_open_calls(messages, calls)),
        ModelContext.from_wire(context) if context else ModelContext(model_state=None),
        None,
        execution.last_seq,
    )
    keep(execution, ending, AgentError(LOST_MESSAGE, code=ExecutionLost.code))
