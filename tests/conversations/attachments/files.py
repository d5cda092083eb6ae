"""Files of every kind, good and bad, made when a test needs them."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.test import override_settings
from PIL import Image


def picture(width: int = 40, height: int = 30, format: str = "PNG", mode: str = "RGB", **options: object) -> bytes:
    """A picture with a gradient in it."""
    written = io.BytesIO()
    gradient = Image.linear_gradient("L").resize((width, height))
    Image.merge("RGB", (gradient, gradient.rotate(180), gradient)).convert(mode).save(written, format, **options)
    return written.getvalue()


def pdf(*pages: str, compressed: bool = True, repeat: int = 1) -> bytes:
    """A PDF with one line of text on each page; `repeat` writes the same line so often that it inflates hugely."""
    objects: list[bytes] = []
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects.append(b"<< /Type /Catalog /Pages 2 0 R >>")
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode())
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for n, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET\n".encode("latin-1") * repeat
        filter = b""
        if compressed:
            content, filter = zlib.compress(content, 9), b" /Filter /FlateDecode"
        head = f"/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 612 792] /Contents {5 + 2 * n} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R {head} >>".encode())
        objects.append(b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(content), filter, content))
    written = io.BytesIO()
    written.write(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(written.tell())
        written.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    table = written.tell()
    written.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    written.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    written.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, table))
    return written.getvalue()


@contextmanager
def stored_in(place: Path) -> Iterator[None]:
    """Keep attachments in a directory of the test's own."""
    backend = {"BACKEND": "conversations.attachments.storage.WholeFileStorage", "OPTIONS": {"location": place}}
    with override_settings(STORAGES={**settings.STORAGES, "attachments": backend}):
        yield
