"""What each model call used, told to whoever counts while the call is made: it may be stopped at any moment."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agent.runtime.cancellation import CancelSignal
from agent.runtime.messages import Usage
from agent.runtime.model import MessageStop, Model, ModelEvent, ModelRequest, StreamError, UsageDetails


@dataclass(slots=True)
class CallUsage:
    """The tokens of one call to a model at an endpoint, by its slug; `usage` is None until something was counted."""

    endpoint: str
    model: str
    usage: Usage | None = None
    details: UsageDetails = field(default_factory=UsageDetails)

    def count(self, usage: Usage | None, details: UsageDetails | None) -> None:
        """Take in a count, in place of an earlier one."""
        if usage is not None:
            self.usage, self.details = usage, details or UsageDetails()


def total_usage(calls: Iterable[CallUsage]) -> Usage | None:
    """Return what some calls used together, None if nothing was counted."""
    total: Usage | None = None
    for call in calls:
        if call.usage is not None:
            total = call.usage if total is None else total.plus(call.usage)
    return total


class MeteredModel:
    """A model that hands `on_call` the account of each of its calls as it begins, and keeps it up to date.

    `on_left_out` is told of the tools that the provider would refuse.
    """

    def __init__(
        self,
        model: Model,
        endpoint: str,
        name: str,
        on_call: Callable[[CallUsage], None],
        on_left_out: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        self._model = model
        self._endpoint = endpoint
        self._name = name
        self._on_call = on_call
        self._on_left_out = on_left_out

    async def stream(self, request: ModelRequest, signal: CancelSignal) -> AsyncGenerator[Sequence[ModelEvent], None]:
        """Make the call; see `agent.runtime.model.Model`."""
        account = CallUsage(self._endpoint, self._name)
        self._on_call(account)
        request = replace(request, listener=_Listener(account, self._on_left_out))
        async with aclosing(self._model.stream(request, signal)) as batches:
            async for batch in batches:
                last = batch[-1]
                if isinstance(last, MessageStop | StreamError):
                    account.count(last.usage, last.details)
                yield batch


class _Listener:
    def __init__(self, account: CallUsage, on_left_out: Callable[[Sequence[str]], None] | None) -> None:
        self._account = account
        self._on_left_out = on_left_out

    def used(self, usage: Usage, details: UsageDetails | None) -> None:
        self._account.count(usage, details)

    def left_out(self, tools: Sequence[str]) -> None:
        if self._on_left_out is not None:
            self._on_left_out(tools)
