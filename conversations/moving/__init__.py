"""Conversations on their way out and in: files that hold them whole, and pages to read and print."""

from conversations.exceptions import ImportInvalid
from conversations.moving.exports import Export, Form, export_all, export_one
from conversations.moving.imports import Imported, import_file
from conversations.moving.uploads import Upload

__all__ = ["Export", "Form", "ImportInvalid", "Imported", "Upload", "export_all", "export_one", "import_file"]
