"""What somebody calls a file may be anything; what is shown and sent is one line without tricks."""

from __future__ import annotations

import unicodedata

import pytest
from django.utils.http import content_disposition_header
from hypothesis import given
from hypothesis import strategies as st

from conversations.attachments.names import clean_name
from conversations.models import NAME_LENGTH


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("report.pdf", "report.pdf"),
        ("Größe.txt", "Größe.txt"),
        ("報告書.pdf", "報告書.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\notes.txt", "notes.txt"),
        ("..", "file"),
        ("", "file"),
        ("a\0b\r\nSet-Cookie: x.txt", "a\ufffdbSet-Cookie: x.txt"),
        ("\ud800.txt", "\ufffd.txt"),
        ("photo\u202egnp.exe", "photognp.exe"),
        ("a  b\t.txt", "a b.txt"),
        ("x" * 300 + ".pdf", "x" * 196 + ".pdf"),
        ("e\u0301.txt", "é.txt"),
    ],
)
def test_a_name_is_cleaned(given: str, kept: str) -> None:
    assert clean_name(given, "file") == kept


@given(st.text(max_size=400))
def test_every_name_can_be_shown_stored_and_sent(name: str) -> None:
    kept = clean_name(name)
    assert 0 < len(kept) <= NAME_LENGTH
    assert "/" not in kept
    assert not any(unicodedata.category(each).startswith("C") for each in kept)
    header = content_disposition_header(True, kept)
    assert header is not None
    assert "\n" not in header
    assert header.isascii()
    assert clean_name(kept) == kept
