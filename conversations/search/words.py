"""The words of a text, as both what is indexed and what is asked for are cut into them.

A word is a run of letters and digits without capitals and accents. Where a script is written without spaces (Chinese,
Japanese, Korean syllables, Thai and their like) each character is a word of its own, so that a query of one or two
characters is found inside any sentence. No database cuts or folds anything itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

MOST_CHARACTERS_OF_A_WORD = 100

_SPACELESS = (
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3\U00020000-\U000323af"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
)
_INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
_HALF_WIDTH_MARKS = "\uff9e\uff9f"
_JAMO = "\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff"
_LIKE_A_LETTER = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ı": "i", "þ": "th"}
)


def _is_accent(mark: str) -> bool:
    """Return whether a combining mark is often left out; vowel signs and voicing marks make another word."""
    place = unicodedata.combining(mark)
    return place == 1 or 10 <= place <= 36 or place >= 200


_MARKS = [chr(code) for code in range(0x300, 0x1E950) if unicodedata.category(chr(code)) in ("Mn", "Mc")]
_DROPPED = "".join(filter(_is_accent, _MARKS)) + _INVISIBLE
_KEPT = "".join(mark for mark in _MARKS if not _is_accent(mark))

_FOLDED_AWAY = re.compile(f"[{_DROPPED}]")
_WORD = re.compile(f"[{_SPACELESS}]|(?:[^\\W_{_SPACELESS}]|(?![{_SPACELESS}])[{_KEPT}])+")
_CHARACTER = re.compile(f"[{_SPACELESS}]")
_CLUSTER = re.compile(
    f"(?:[\\x00-\\x7f](?![{_DROPPED}{_KEPT}]))+|[{_JAMO}]+|.[{_DROPPED}{_KEPT}{_HALF_WIDTH_MARKS}]*",
    re.DOTALL,
)


def words(text: str) -> list[str]:
    """Return the words of a text in their order."""
    return [found[0][:MOST_CHARACTERS_OF_A_WORD] for found in _WORD.finditer(folded(text))]


def is_character(word: str) -> bool:
    """Return whether a word is one character of a script without spaces."""
    return _CHARACTER.fullmatch(word) is not None


def located_words(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each word of a text with the place in the text where it begins and the one where it ends."""
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for found in _CLUSTER.finditer(text):
        piece, (start, end) = found[0], found.span()
        if piece.isascii():
            pieces.append(piece.lower())
            starts += range(start, end)
            ends += range(start + 1, end + 1)
        else:
            pieces.append(_folded_cluster(piece))
            starts += [start] * len(pieces[-1])
            ends += [end] * len(pieces[-1])
    for found in _WORD.finditer("".join(pieces)):
        yield found[0][:MOST_CHARACTERS_OF_A_WORD], starts[found.start()], ends[found.end() - 1]


def folded(text: str) -> str:
    """Return a text without capitals, accents and compatibility forms."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    bare = _FOLDED_AWAY.sub("", unicodedata.normalize("NFD", plain)).translate(_LIKE_A_LETTER)
    return unicodedata.normalize("NFC", bare)


_folded_cluster = lru_cache(maxsize=10_000)(folded)
