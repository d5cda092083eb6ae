"""The one way in which text of a model becomes HTML: Markdown, then an allow list.

`render` takes a whole text; `BlockStream` takes a text that is still being written and hands out each finished Markdown
block once, and the open tail as often as `tick` is called. Both cut the text at the same places and make the same HTML.
Text beyond `MARKDOWN_LIMIT` characters is shown as it is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString, mark_safe

from conversations.markdown import as_written, block_starts, cells_in, html_of

MARKDOWN_LIMIT = 200_000
LONG_TAIL = 8_000


def render(markdown: str) -> SafeString:
    """Return the HTML of a whole Markdown text."""
    text = _line_ends(markdown)
    html = html_of(text[:MARKDOWN_LIMIT], {})
    rest = "".join(map(as_written, _pieces(text[MARKDOWN_LIMIT:])))
    return mark_safe(html + rest)  # noqa: S308  the cleaner made the first, `as_written` the second


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a rendered block: part number `part` from 0; one that is not `final` is replaced by the next."""

    part: int
    html: str
    final: bool


@dataclass(slots=True)
class _Closed:
    """A Markdown block that is finished, with what was known then: link references, and table cells before it."""

    source: str
    html: str
    references: int
    cells: int = 0


class BlockStream:
    """Renders one text while it is written.

    `feed` may be called from another thread while `tick` runs; `tick` and `finish` are called one at a time.
    `behind` tells that the last tick kept some of a long tail back: one more, without news, brings it.
    A link reference counts for the blocks after it until `finish`, which sends the blocks before it once more.
    """

    def __init__(self) -> None:
        self._incoming: deque[str] = deque()
        self._carriage_return = False
        self._room = MARKDOWN_LIMIT
        self._open = ""
        self._overflow = ""
        self._env: dict[str, Any] = {}
        self._closed: list[_Closed] = []
        self._shown = ""  # the HTML of the tail that the reader has
        self._parse_at = 0
        self._show_at = 0
        self.behind = False
        self._finished = False

    def feed(self, text: str) -> None:
        """Take in the next piece of the text."""
        self._incoming.append(text)

    def tick(self) -> list[Part]:
        """Return what has changed since the last tick: closed parts, then the open tail."""
        grew = self._take_in()
        if self._finished or not (grew or self.behind):
            return []
        first = len(self._closed)
        if len(self._open) >= self._parse_at:
            self._close_blocks()
        if not self._room:
            self._close_rest()
            self._close_overflow(whole=False)
        parts = [Part(first + n, block.html, True) for n, block in enumerate(self._closed[first:])]
        self.behind = grew and not parts and len(self._open) < self._show_at
        if not self.behind:
            tail = self._tail()
            if tail != self._shown:
                self._shown = tail
                parts.append(Part(len(self._closed), tail, False))
        return parts

    def finish(self) -> list[Part]:
        """Close everything and return what the reader lacks; all final parts together are `render` of the text."""
        if self._finished:
            return []
        self._take_in(last=True)
        self._finished = True
        first, had_tail = len(self._closed), bool(self._shown)
        self._close_blocks()
        self._close_rest()
        self._close_overflow(whole=True)
        self._shown = ""
        parts = [
            Part(n, block.html, True) for n, block in enumerate(self._closed) if n >= first or self._renewed(block)
        ]
        if had_tail and len(self._closed) == first:
            parts.append(Part(first, "", True))
        return parts

    def _take_in(self, *, last: bool = False) -> bool:
        pieces = []
        while self._incoming:
            pieces.append(self._incoming.popleft())
        text = "".join(pieces)
        if self._carriage_return:
            text, self._carriage_return = "\r" + text, False
        if text.endswith("\r") and not last:  # the line feed that belongs to it may come next
            text, self._carriage_return = text[:-1], True
        text = _line_ends(text)
        self._open += text[: self._room]
        self._overflow += text[self._room :]
        self._room -= min(self._room, len(text))
        return bool(text)

    def _close_blocks(self) -> None:
        """Close every top-level block but the last one, which may still grow."""
        whole = self._open[: self._open.rfind("\n") + 1]  # a line still being written may become anything
        starts = block_starts(whole, cells_in(self._env))
        long = len(self._open) > LONG_TAIL
        self._parse_at = len(self._open) * 5 // 4 if long else 0  # never quadratic
        if len(starts) > 1:
            lines = self._open.split("\n")  # not splitlines(): the parser knows no other line end
            for begin, end in zip([0, *starts[1:-1]], starts[1:], strict=True):
                self._close("\n".join(lines[begin:end]) + "\n")
            self._open, self._parse_at, self._show_at = "\n".join(lines[starts[-1] :]), 0, 0

    def _close(self, source: str) -> None:
        cells = cells_in(self._env)
        html = html_of(source, self._env)
        self._closed.append(_Closed(source, html, self._references(), cells))
        self._shown = ""

    def _close_rest(self) -> None:
        if self._open:
            self._close(self._open)
            self._open = ""

    def _close_overflow(self, *, whole: bool) -> None:
        while len(self._overflow) >= LONG_TAIL or (whole and self._overflow):
            piece, self._overflow = self._overflow[:LONG_TAIL], self._overflow[LONG_TAIL:]
            self._closed.append(_Closed("", as_written(piece), self._references()))
            self._shown = ""

    def _tail(self) -> str:
        if self._overflow:
            return as_written(self._overflow)
        if len(self._open) > LONG_TAIL:
            self._show_at = len(self._open) * 17 // 16  # what is sent stays in proportion to what was said
            return as_written(self._open)
        known = {**self._env, "references": dict(self._env.get("references", {}))}
        return html_of(self._open, known, draft=True)

    def _references(self) -> int:
        return len(self._env.get("references", ()))

    def _renewed(self, block: _Closed) -> bool:
        """Render `block` again if a link reference came after it; tell whether that changed it."""
        if "[" not in block.source or block.references == self._references():
            return False
        before, block.html = block.html, html_of(block.source, {**self._env, "cells": block.cells})
        return block.html != before


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _pieces(text: str) -> Iterable[str]:
    return (text[at : at + LONG_TAIL] for at in range(0, len(text), LONG_TAIL))
