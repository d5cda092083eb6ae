"""Why there is no backup, or none that can be used."""

from __future__ import annotations


class BackupFault(Exception):
    """Raised when a backup cannot be made or used; the message says why."""
