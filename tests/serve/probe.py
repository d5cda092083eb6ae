"""`manage.py serve` with an eye inside: at SIGUSR1 it writes what it holds into the file PROBE_FILE.

Run as a module in the place of `manage.py`; what is served is the same.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def holdings() -> dict[str, Any]:
    """Count what belongs to clients and runs.

    `frames` and `bytes` wait to be sent, and `tasks` are the names of what runs on the loop.
    """
    from conversations.hosting.host import ExecutionHost
    from conversations.hosting.server import HostServer, twisted_loop

    gc.collect()
    everything = gc.get_objects()
    (host,) = (each for each in everything if type(each) is ExecutionHost)
    (server,) = (each for each in everything if type(each) is HostServer)
    return {
        "runs": len(host._runs),
        "subscribers": len(host.subscribers),
        "readers": sum(map(len, host.hub._readers.values())),
        "connections": len(server.connections),
        "frames": sum(len(each.outbox._waiting) for each in host.subscribers),
        "bytes": sum(map(unsent, server.connections)),
        "tasks": sorted(task.get_name() for task in asyncio.all_tasks(twisted_loop)),
    }


def unsent(connection: Any) -> int:
    """Return the bytes in the write buffer of a connection."""
    transport = getattr(connection, "transport", None)
    return 0 if transport is None else len(transport.dataBuffer) + sum(map(len, transport._tempDataBuffer))


def write(*_: object) -> None:
    file = Path(os.environ["PROBE_FILE"])
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(holdings()))
    draft.rename(file)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "par_project.settings")
    signal.signal(signal.SIGUSR1, write)
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *sys.argv[1:]])
