"""Reads the text of a PDF. A program of its own, because no limit but a process's own holds for hostile files.

It imports nothing of PAR and gets nothing of its environment: the file on its standard input, the limits as arguments.
Prints one JSON object: `{"pages": 3, "text": "…"}`, or `{"fault": "it …"}`.
"""

from __future__ import annotations

import io
import json
import logging
import resource
import sys
import warnings
from typing import Any

MEMORY = 1024 * 1024 * 1024  # bytes


def read(data: bytes, most_pages: int, most_characters: int) -> dict[str, Any]:
    """Return pages and text of a PDF, or the fault for which it is not taken."""
    import pypdf
    from pypdf.errors import PyPdfError

    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"fault": "it is protected by a password"}
        pages = len(reader.pages)
        if pages > most_pages:
            return {"fault": f"it has more than {most_pages:,} pages"}
        texts: list[str] = []
        left = most_characters
        for page in reader.pages:
            text = page.extract_text().strip()
            texts.append(text)
            left -= len(text) + 2
            if left < 0:
                return {"fault": f"it holds more than {most_characters:,} characters of text"}
    except MemoryError:
        return {"fault": "it takes too much memory to read"}
    except (PyPdfError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return {"fault": f"it cannot be read ({type(error).__name__})"}
    return {"pages": pages, "text": "\n\n".join(texts)}


def main() -> None:
    """Read standard input under the limits of time, memory, pages and characters."""
    seconds, pages, characters = (int(argument) for argument in sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    logging.disable()
    found = read(sys.stdin.buffer.read(), pages, characters)
    sys.stdout.write(json.dumps(found))  # ASCII: a lone surrogate is not in the way


if __name__ == "__main__":
    main()
