"""`manage.py serve`: the one supported way to serve the site."""

from __future__ import annotations

import os
import signal
import socket
from argparse import ArgumentParser, ArgumentTypeError
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils.module_loading import import_string

from conversations.hosting.lock import Taken, serving_alone
from conversations.hosting.sizes import larger_bodies


class Command(BaseCommand):
    """Serve HTTP and websockets, and run agents."""

    help = "Serve the site: HTTP, websockets and the runs of agents in one process."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument(
            "--port",
            type=_port,
            default=os.environ.get("PORT") or "8000",
            help="port to listen on, 0 for any free one (default: $PORT or 8000)",
        )
        parser.add_argument(
            "--ping",
            type=float,
            nargs=2,
            default=(20.0, 30.0),
            metavar=("EVERY", "WITHIN"),
            help="seconds of silence after which a socket is pinged, and in which it must answer (default: 20 30)",
        )
        parser.add_argument(
            "--drain", type=float, default=None, metavar="SECONDS", help="time for running turns at the end"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        # What the SDKs would read from the environment must not reach endpoints that were configured by hand.
        for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
            os.environ.pop(name, None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _leave)  # until the server drains: nothing is lost before
        _check_database()
        try:
            with serving_alone():
                self._serve(options["host"], options["port"], options["drain"], *options["ping"])
        except Taken:
            raise CommandError("another process serves this database; run one") from None

    def _serve(self, host: str, port: int, drain: float | None, ping_every: float, ping_within: float) -> None:
        from conversations.hosting.host import ExecutionHost
        from conversations.hosting.server import HostServer  # installs the reactor

        def ready() -> None:
            bound = server.ports[-1].getHost()
            shown = f"[{bound.host}]" if ":" in bound.host else bound.host
            self.stdout.write(f"PAR is serving on http://{shown}:{bound.port}")
            self.stdout.flush()

        channel = f"{socket.gethostname()}:{os.getpid()}"
        server = HostServer(
            import_string(settings.ASGI_APPLICATION),
            endpoints=[f"tcp:port={port}:interface={host.replace(':', chr(92) + ':')}"],
            host=lambda: ExecutionHost(settings.PAR, channel),
            drain_timeout=settings.PAR.drain_timeout if drain is None else drain,
            ready=ready,
            uploads=larger_bodies(settings.PAR),
            ping_interval=ping_every,
            ping_timeout=ping_within,
            websocket_max_message_size=settings.PAR.max_frame_bytes,
            proxy_forwarded_address_header="X-Forwarded-For" if settings.PAR.trusted_proxies else None,
            proxy_forwarded_proto_header="X-Forwarded-Proto" if settings.PAR.trusted_proxies else None,
            server_name="PAR",
            verbosity=0,
        )
        server.run()
        if server.fault:
            raise CommandError(server.fault)


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) < 65_536):
        raise ArgumentTypeError(f"{text!r} is no port (from 0 to 65535; $PORT is the default)")
    return int(text)


def _check_database() -> None:
    """Refuse a database that cannot be reached or is older than the code."""
    try:
        migrations = MigrationExecutor(connection)
        missing = migrations.migration_plan(migrations.loader.graph.leaf_nodes())
    except DatabaseError as error:
        raise CommandError(f"the database cannot be used: {error}") from error
    finally:
        connection.close()
    if missing:
        raise CommandError(f"{len(missing)} migrations are not applied: run `manage.py bootstrap --migrate` first")


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)
