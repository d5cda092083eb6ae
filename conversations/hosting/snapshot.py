"""The state of a run at one moment, on the way to a reader who comes late or is far behind.

What it holds is the run's own, shared with all other snapshots of it; its JSON is made while it is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias
from weakref import WeakValueDictionary

from agent.runtime.state import ExecutionState
from conversations.hosting.pieces import cut, encode_in_pieces, weight


class Snapshot:
    """The `snapshot` frame of a run, as the run is now, whatever becomes of it."""

    __slots__ = ("__weakref__", "_wire", "execution_id")

    def __init__(self, state: ExecutionState) -> None:
        self.execution_id = state.execution_id
        self._wire = {
            "type": "snapshot",
            "executionId": state.execution_id,
            "conversationId": state.conversation_id,
            "seq": state.seq,
            "state": state.to_wire(in_parts=True),
        }

    def weight(self, most: int) -> int:
        """Return about how many bytes the frame has; over `most` it is not looked at to the end."""
        return weight(self._wire, most)

    def pieces(self) -> Iterator[bytes]:
        """Yield the frame as JSON."""
        yield from encode_in_pieces(self._wire)


Frame: TypeAlias = bytes | Snapshot


def pieces_of(frame: Frame) -> Iterator[bytes]:
    """Return the pieces in which a frame is sent."""
    return cut(frame) if isinstance(frame, bytes) else frame.pieces()


class PastSnapshots:
    """The snapshots of runs that are over while somebody reads them: one for all its readers."""

    def __init__(self) -> None:
        self._read: WeakValueDictionary[tuple[str, int, str], Snapshot] = WeakValueDictionary()

    def of(self, state: ExecutionState) -> Snapshot:
        """Return the snapshot of a state."""
        if not state.ended:
            return Snapshot(state)  # of another process, or put aside: it may still change
        key = state.execution_id, state.seq, state.status
        snapshot = self._read.get(key)
        if snapshot is None:
            snapshot = self._read[key] = Snapshot(state)
        return snapshot
