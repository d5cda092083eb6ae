"""How one JSON value became another, as a JSON value of its own.

A change is `{}` where nothing is different. `{"value": …}` puts something else in its place, `{"more": […]}` goes on at
the end of a list, `{"keys": {…}, "gone": […]}` has a change for each key of an object that is new or different, and the
keys that are there no more.
"""

from __future__ import annotations

from typing import Any

_LISTS = (list, tuple)
_ABSENT = object()


def change_between(old: Any, new: Any) -> dict[str, Any]:
    """Return what makes `new` of `old`; what both share as one object is not looked into."""
    if old is new:
        return {}
    if isinstance(old, dict) and isinstance(new, dict):
        return _keys(old, new)
    if isinstance(old, _LISTS) and isinstance(new, _LISTS):
        if len(new) < len(old) or any(change_between(*pair) for pair in zip(old, new, strict=False)):
            return {"value": new}
        return {"more": list(new[len(old) :])} if len(new) > len(old) else {}
    return {} if type(old) is type(new) and repr(old) == repr(new) else {"value": new}


def changed(old: Any, change: dict[str, Any]) -> Any:
    """Return what a change makes of `old`, a value as read from JSON, which is used up by it.

    Objects and lists are changed where they are: a thousand changes cost no thousand copies. Raises `KeyError`,
    `TypeError` or `AttributeError` for a change that was made to something else.
    """
    if "value" in change:
        return change["value"]
    if "more" in change:
        old.extend(change["more"])
        return old
    for key in change.get("gone", ()):
        del old[key]
    for key, each in change.get("keys", {}).items():
        old[key] = each["value"] if "value" in each else changed(old[key], each)
    return old


def larger_than(value: Any, size: int) -> bool:
    """Return whether JSON of this value has surely more than `size` characters; looks no further than it must."""
    rest = [value]
    while rest and size >= 0:
        each = rest.pop()
        size -= 2
        if isinstance(each, str):
            size -= len(each)
        elif isinstance(each, dict):
            rest.extend(each)
            rest.extend(each.values())
        elif isinstance(each, _LISTS):
            rest.extend(each)
    return size < 0


def _keys(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    same = len(new)  # keys that both have
    for key, value in new.items():
        before = old.get(key, _ABSENT)
        if before is value:
            continue
        if before is _ABSENT:
            keys[key] = {"value": value}
            same -= 1
        elif change := change_between(before, value):
            keys[key] = change
    gone = [key for key in old if key not in new] if same < len(old) else []
    return ({"keys": keys} if keys else {}) | ({"gone": gone} if gone else {})
