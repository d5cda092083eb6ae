"""What can be said about a model endpoint."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from agent.models.endpoint import read_headers


def test_headers_are_read_a_line_at_a_time() -> None:
    assert read_headers("X-Team: a: b\n\n x-Key :k\r\n") == (("X-Team", "a: b"), ("x-Key", "k"))


def test_a_header_that_is_there_twice_is_refused_however_it_is_spelled() -> None:
    """Only one of them would be sent, and nobody would know which."""
    with pytest.raises(ValidationError, match="there twice"):
        read_headers("X-Team: research\nx-team: sales")
