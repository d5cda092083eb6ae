"""How many connections a person may have."""

from __future__ import annotations

import pytest

from conversations.exceptions import RateLimited
from conversations.hosting.places import Places


def test_each_person_has_so_many_places_and_gets_them_back() -> None:
    places = Places(2)
    with places.held(1), places.held(2):
        with places.held(1):
            with pytest.raises(RateLimited, match="2 connections"), places.held(1):
                pass
            places.check(2)
        places.check(1)
    assert not places._taken
