"""A body that is too large for memory: in a file, with its digest, up to a limit."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Protocol, Self

from conversations.exceptions import PayloadTooLarge

PIECE = 1024 * 1024


class Readable(Protocol):
    """Where bytes come from, such as a request."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that goes when its block ends; `digest` is the SHA-256 of its content, in hexadecimal."""

    file: IO[bytes]
    digest: str

    @classmethod
    def of(cls, source: Readable, largest: int) -> Self:
        """Read a body to its end; raises `PayloadTooLarge`."""
        file, digest, size = TemporaryFile(), hashlib.sha256(), 0  # noqa: SIM115
        try:
            while piece := source.read(PIECE):
                size += len(piece)
                if size > largest:
                    raise PayloadTooLarge(f"the file is larger than {largest:,} bytes")
                digest.update(piece)
                file.write(piece)
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return cls(file, digest.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.file.close()
