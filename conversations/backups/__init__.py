"""A whole site on SQLite in one file, and back: the database and the attachments, never the keys."""

from conversations.backups.exceptions import BackupFault
from conversations.backups.making import MadeBackup, make_backup
from conversations.backups.restoring import Restored, restore_backup

__all__ = ["BackupFault", "MadeBackup", "Restored", "make_backup", "restore_backup"]
