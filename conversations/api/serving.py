"""How an operation reaches the host of its process, and what a request may hold while it waits."""

from __future__ import annotations

from collections.abc import Callable
from os import SEEK_END
from typing import IO, Any, ParamSpec, TypeVar, cast

from asgiref.sync import SyncToAsync, sync_to_async
from django.http import HttpRequest, HttpResponse

from agent.runtime.messages import Value
from conversations.exceptions import NotServed
from conversations.hosting.host import ExecutionHost

P = ParamSpec("P")
T = TypeVar("T")


def _scope(request: HttpRequest) -> dict[str, Any]:
    """Return the ASGI scope of a request; empty outside a server."""
    scope: dict[str, Any] = getattr(cast(Any, request), "scope", {})
    return scope


def find_host(request: HttpRequest) -> ExecutionHost | None:
    """Return the host that `serve` puts into each request; None in any other process."""
    host: ExecutionHost | None = _scope(request).get("par.host")
    return host


def host_of(request: HttpRequest) -> ExecutionHost:
    """Return the host of this process; raises `NotServed`."""
    host = find_host(request)
    if host is None:
        raise NotServed("this process runs no agents; start it with manage.py serve")
    return host


def cut_off_of(request: HttpRequest) -> Callable[[], None] | None:
    """Return what drops the connection of a request with all that its reader has not taken."""
    cut_off: Callable[[], None] | None = _scope(request).get("par.cut_off")
    return cut_off


def body_of(request: HttpRequest) -> IO[bytes]:
    """Return what the body of an upload is read from, in a thread: `serve` keeps it beside the request."""
    return cast(IO[bytes], _scope(request).get("par.body") or request)


def size_of(request: HttpRequest) -> int:
    """Return how many bytes `body_of` has."""
    body: IO[bytes] | None = _scope(request).get("par.body")
    if body is None:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    size = body.seek(0, SEEK_END)
    body.seek(0)
    return size


async def in_database(request: HttpRequest, job: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what `job` returns; under `serve` it leaves no connection open for as long as the request lasts."""
    host = find_host(request)
    if host is not None:
        return await host.executor.run(job, *args, **kwargs)
    return await sync_to_async(job)(*args, **kwargs)


def json_answer(value: Value, status: int = 200) -> HttpResponse:
    """Return a value as JSON, with its wire names."""
    return HttpResponse(value.model_dump_json(by_alias=True), status=status, content_type="application/json")


def release_thread() -> None:
    """Give back the thread that Django's middleware keeps for this request; the next that needs one makes another."""
    context = SyncToAsync.thread_sensitive_context.get(None)
    kept = SyncToAsync.context_to_thread_executor.pop(context, None) if context is not None else None
    if kept is not None:
        kept.shutdown(wait=False)
