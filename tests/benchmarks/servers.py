"""The two servers of the websocket rows: `manage.py serve`, and the floor."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from tests.benchmarks.sockets import Crowd, Socket
from tests.site import ROOT, Site, free_port

AGENT = "bench"
PREPARE = """
from agent.models import AgentProfile, ModelEndpoint
from conversations.models import ApiToken, User
endpoint = ModelEndpoint.objects.create(
    slug="{agent}", name="bench", protocol="openai-chat", base_url="{provider}/said/v1"
)
limits = {{"maxDurationMs": 3_600_000, "maxModelOutputCharacters": 10_000_000}}
AgentProfile.objects.create(slug="{agent}", name="Bench", endpoint=endpoint, model="scripted", limits=limits)
print(ApiToken.issue(User.objects.get(email="demo@localhost"), "bench")[1])
"""


class Server:
    """A server process that is measured from outside."""

    def __init__(self, address: str, pid: int, provider: str, token: str = "") -> None:
        self.address = address
        self.pid = pid
        self.provider = provider
        self.token = token

    def cpu(self) -> float:
        """Return the seconds that the process has computed, threads included."""
        return time.clock_gettime(~self.pid << 3 | 2)  # clock_getcpuclockid(3)

    def memory(self) -> float:
        """Return the resident set in KiB."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE") / 1024

    def crowd(self) -> Crowd:
        return Crowd(self.address, self.token)

    async def say(self, socket: Socket, path: str, format: str = "text", conversation: str | None = None) -> str:
        """Begin a stream, to this socket; returns the conversation's id where there is such a thing."""
        socket.send({"say": path})
        return ""


class Ours(Server):
    """`manage.py serve`."""

    async def say(self, socket: Socket, path: str, format: str = "text", conversation: str | None = None) -> str:
        start = {"type": "start", "id": str(uuid4()), "agent": AGENT, "input": [{"type": "text", "text": path}]}
        given = {"conversationId": conversation} if conversation else {}
        return str((await socket.command({**start, **given, "format": format}))["conversationId"])


@contextmanager
def our_server(provider: str) -> Iterator[Ours]:
    many = {"PAR_CONNECTIONS_PER_PERSON": "100000"}
    with (
        TemporaryDirectory(prefix="par-bench-") as place,
        Site(Path(place), pace=0, start=False, settings=many) as site,
    ):
        token = site.shell(PREPARE.format(agent=AGENT, provider=provider)).split()[-1]
        site.start()
        yield Ours(site.address, site.process.pid, provider, token)


@contextmanager
def bare_server(provider: str) -> Iterator[Server]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.bare", str(free_port()), provider],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield Server(process.stdout.readline().strip(), process.pid, provider)
        finally:
            process.kill()
