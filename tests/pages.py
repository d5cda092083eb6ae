"""What a page says to a browser without scripts."""

from __future__ import annotations

from django.test import Client


def body(client: Client, address: str, status: int = 200) -> str:
    """Return the body of a page, whose status must be as expected."""
    response = client.get(address)
    assert response.status_code == status
    return response.content.decode()
