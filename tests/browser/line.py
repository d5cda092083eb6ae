"""The line between a page and its server, in the hands of a test."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from playwright.sync_api import Page, WebSocketRoute

Frame: TypeAlias = dict[str, Any]


def merged(frame: Frame, change: Frame) -> Frame:
    """Return a frame with some of its fields changed, also those of objects within it."""
    inner = {key: merged(frame[key], value) for key, value in change.items() if isinstance(value, dict)}
    return {**frame, **change, **inner}


class Line:
    """The line between page and server. Commands named in `swallowed` get lost; what the server says can be held.

    `refused` maps the type of a command to the code with which it is refused. `changes` maps the type of a frame from
    the server to fields that it gets.
    """

    def __init__(self, page: Page) -> None:
        self.swallowed: set[str] = set()
        self.commands: list[Frame] = []
        self.refused: dict[str, str] = {}
        self.changes: dict[str, Frame] = {}
        self._held: list[str] = []
        self._holds: Callable[[Frame], bool] | None = None
        self._page: WebSocketRoute | None = None
        self._server: WebSocketRoute | None = None
        page.route_web_socket("**/ai/ws", self._connect)
        page.clock.install()
        page.reload()

    def tell(self, frame: Frame) -> None:
        """Say something to the page in the name of the server."""
        assert self._page is not None
        self._page.send(json.dumps(frame))

    def deliver(self, command: Frame) -> None:
        """Let a command that was swallowed reach the server after all."""
        assert self._server is not None
        self._server.send(json.dumps(command))

    def hold(self, which: Callable[[Frame], bool] = lambda frame: True) -> None:
        """Keep what the server says from now on, or such frames of it."""
        self._holds = which

    def release(self) -> None:
        """Let the page have what was held."""
        assert self._page is not None
        self._holds = None
        for text in self._held:
            self._page.send(text)

    def sent(self, kind: str) -> list[Frame]:
        return [frame for frame in self.commands if frame["type"] == kind]

    def _connect(self, route: WebSocketRoute) -> None:
        self._page, self._server = route, route.connect_to_server()
        route.on_message(self._from_page)
        self._server.on_message(self._from_server)

    def _from_page(self, text: str | bytes) -> None:
        frame = json.loads(text)
        self.commands.append(frame)
        if code := self.refused.get(frame["type"]):
            self.tell({"type": "error", "id": frame["id"], "code": code, "message": "no"})
        elif frame["type"] not in self.swallowed:
            self.deliver(frame)

    def _from_server(self, text: str | bytes) -> None:
        frame = json.loads(text)
        if change := self.changes.get(frame["type"]):
            text = json.dumps(merged(frame, change))
        if self._holds is not None and self._holds(frame):
            self._held.append(str(text))
        else:
            assert self._page is not None
            self._page.send(text)
