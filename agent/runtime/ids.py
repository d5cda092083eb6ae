"""Identifiers: time-ordered UUIDs for rows, prefixed ones for values inside a run (R141)."""

from __future__ import annotations

import os
import time
from uuid import UUID, uuid4


def uuid7() -> UUID:
    """Return a version 7 UUID: 48 bits of Unix milliseconds, then random bits (RFC 9562)."""
    stamp = time.time_ns() // 1_000_000
    value = stamp << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return UUID(int=value & ~(0x3 << 62) | 0x2 << 62)


def message_id() -> str:
    return f"message-{uuid4()}"


def interrupt_id() -> str:
    return f"interrupt-{uuid4()}"


def call_id() -> str:
    """Return a tool call id of ours: unique everywhere and short enough for every provider (29 characters)."""
    return f"call_{uuid4().hex[:24]}"


def trace_id() -> str:
    return f"trace-{uuid4().hex}"
