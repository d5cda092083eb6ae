"""Files that people attach to their messages: read and judged, stored by digest, removed with the last reference."""

from conversations.attachments.keeping import (
    attach,
    delete_attachment,
    keep,
    open_bytes,
    owned_attachment,
    owned_attachments,
    prune_attachments,
    release,
)
from conversations.attachments.reading import ReadFile, digest_of, named, read_file
from conversations.attachments.references import (
    QuotedFile,
    block_of,
    files_in,
    id_at,
    picture_of,
    pictures_in,
    quoted_file,
    quoted_files,
    renamed,
    said_text,
)

__all__ = [
    "QuotedFile",
    "ReadFile",
    "attach",
    "block_of",
    "delete_attachment",
    "digest_of",
    "files_in",
    "id_at",
    "keep",
    "named",
    "open_bytes",
    "owned_attachment",
    "owned_attachments",
    "picture_of",
    "pictures_in",
    "prune_attachments",
    "quoted_file",
    "quoted_files",
    "read_file",
    "release",
    "renamed",
    "said_text",
]
