"""Agents of the site whose model says what a test has written down."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from agent.testing.http_provider import ScriptedAnswer, ScriptedProvider
from tests.site import Site


@contextmanager
def provider(*answers: Sequence[bytes] | ScriptedAnswer) -> Iterator[str]:
    """Serve scripted answers from a thread; gives the base address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    scripted = ScriptedProvider(
        *(answer if isinstance(answer, ScriptedAnswer) else ScriptedAnswer(answer) for answer in answers)
    )
    asyncio.run_coroutine_threadsafe(scripted.__aenter__(), loop).result(10)
    try:
        yield scripted.url
    finally:
        asyncio.run_coroutine_threadsafe(scripted.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def add_agent(site: Site, slug: str, url: str, *options: str) -> None:
    model = ("--protocol", "openai-chat", "--base-url", url, "--model", "scripted", "--api-key", "key-of-a-test")
    site.manage("add_agent", slug, *model, *options)
