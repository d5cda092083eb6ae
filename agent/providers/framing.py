"""Splits a byte stream into the payloads of its events: server-sent events and newline-delimited JSON.

Both splitters work on bytes alone: CR and LF never occur inside a multi-byte character, so neither a character that
the network cut nor U+2028 can disturb them. What one read brought goes in, the payloads that it completed come out. An
event that is still incomplete is kept, and only its new bytes are searched, so that tiny pieces of a huge event cost
linear time.
"""

from __future__ import annotations

DEFAULT_LIMIT = 50 * 1024 * 1024  # P35

_MARK = b"\xef\xbb\xbf"


class EventTooLarge(ValueError):
    """Raised when one event of a stream does not fit into the buffer."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"one event of the stream is larger than {limit:,} bytes")


class _Pending:
    """The incomplete end of a stream: `take` returns what the next piece completed."""

    __slots__ = ("_limit", "_rest", "_separator")

    def __init__(self, separator: bytes, limit: int) -> None:
        self._separator = separator
        self._limit = limit
        self._rest = bytearray()

    def take(self, piece: bytes) -> list[bytes]:
        rest, separator = self._rest, self._separator
        if rest:
            start = max(0, len(rest) - len(separator) + 1)
            rest += piece
            if rest.find(separator, start) < 0:
                self._check()
                return []
            piece = bytes(rest)
            rest.clear()
        blocks = piece.split(separator)
        if last := blocks.pop():
            rest += last
            self._check()
        return blocks

    def drain(self) -> bytes:
        rest = bytes(self._rest)
        self._rest.clear()
        return rest

    def _check(self) -> None:
        if len(self._rest) > self._limit:
            raise EventTooLarge(self._limit)


class SSESplitter:
    """Splits server-sent events as the WHATWG algorithm does, and keeps of each event its data.

    Event names, ids and retry times mean nothing to the protocols that we read. Unlike a browser, `close` gives the
    last event even where its blank line never came: servers that just hang up are common.
    """

    __slots__ = ("_after_cr", "_at_start", "_pending")

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._pending = _Pending(b"\n\n", limit)
        self._at_start = True
        self._after_cr = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that `piece` completed; raises `EventTooLarge`."""
        if self._after_cr or b"\r" in piece:
            piece = self._with_newlines(piece)
        payloads = []
        blocks = self._pending.take(piece)
        if self._at_start and blocks:
            blocks[0] = self._first(blocks[0])
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                payloads.append(block[6:])
            elif (data := event_data(block)) is not None:
                payloads.append(data)
        return payloads

    def close(self) -> list[bytes]:
        """Return the data of the last event if its blank line is missing."""
        block = self._pending.drain()
        if self._at_start:
            block = self._first(block)
        data = event_data(block.removesuffix(b"\n"))
        return [] if data is None else [data]

    def _first(self, block: bytes) -> bytes:
        self._at_start = False
        return block.removeprefix(_MARK)

    def _with_newlines(self, piece: bytes) -> bytes:
        # A CR that ends a piece becomes LF at once, and a LF that opens the next one is dropped: no event waits for a
        # byte that may never come.
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
            self._after_cr = False
        if piece:
            self._after_cr = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def event_data(block: bytes) -> bytes | None:
    """Return the joined data lines of one event, None if it has none (then nothing is dispatched)."""
    lines = []
    for line in block.split(b"\n"):
        if line.startswith(b"data:"):
            lines.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line == b"data":
            lines.append(b"")
    return b"\n".join(lines) if lines else None


class NDJSONSplitter:
    """Splits newline-delimited JSON; blank lines are skipped."""

    __slots__ = ("_pending",)

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._pending = _Pending(b"\n", limit)

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that `piece` completed; raises `EventTooLarge`."""
        return [line for line in map(bytes.strip, self._pending.take(piece)) if line]

    def close(self) -> list[bytes]:
        """Return the last line if its line end is missing."""
        line = self._pending.drain().strip()
        return [line] if line else []
