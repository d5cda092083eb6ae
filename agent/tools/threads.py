"""Running a blocking function beside the event loop.

Each call has a daemon thread of its own. A thread cannot be stopped from outside: when the waiting task is cancelled,
the thread is abandoned, its late outcome is dropped (that it came is noted), and it holds up neither a pool that others
wait for nor the exit of the process.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


async def run_in_thread(function: Callable[[], Any], *, name: str, ended_late: Callable[[bool], None]) -> Any:
    """Return what `function` returns, called in a daemon thread with a copy of the caller's context variables.

    `ended_late(raised)` is called on the loop when the thread ends after its caller was cancelled.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(outcome: Any, error: BaseException | None) -> None:
        if future.done():  # the caller was cancelled meanwhile
            ended_late(error is not None)
        elif error is None:
            future.set_result(outcome)
        else:
            future.set_exception(error)

    def work() -> None:
        outcome, error = None, None
        try:
            outcome = context.run(function)
        except StopIteration as stopped:
            error = _as_error(name, stopped)
        except Exception as raised:
            error = raised
        except BaseException as left:  # SystemExit in a tool must not end the server
            error = _as_error(name, left)
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, outcome, error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await future


def _as_error(name: str, cause: BaseException) -> Exception:
    error = RuntimeError(f"{name} raised {type(cause).__name__}")
    error.__cause__ = cause
    return error
