"""How many connections a person may have."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from conversations.exceptions import RateLimited
from conversations.hosting.places import LARGE_AT_ONCE, LargeBodies, Places


def test_each_person_has_so_many_places_and_gets_them_back() -> None:
    places = Places(2)
    with places.held(1), places.held(2):
        with places.held(1):
            with pytest.raises(RateLimited, match="2 connections"), places.held(1):
                pass
            places.check(2)
        places.check(1)
    assert not places._taken


def test_a_person_has_one_large_body_at_a_time_and_a_process_few() -> None:
    bodies = LargeBodies()
    with ExitStack() as held:
        for person in range(LARGE_AT_ONCE - 1):
            held.enter_context(bodies.room(person))
        with pytest.raises(RateLimited, match="another large body of yours"), bodies.room(0):
            pass
        with pytest.raises(ZeroDivisionError), bodies.room(98):
            _ = 1 / 0
        with bodies.room(99), pytest.raises(RateLimited, match="too many large bodies"), bodies.room(98):
            pass
        with bodies.room(98):
            pass
    assert not bodies._of
