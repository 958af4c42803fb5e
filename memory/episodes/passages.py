"""A long turn as the passages by which it is found and shown: whole sentences, as far as they are of that length."""

import re

__all__ = ["passages_of"]

#: Characters of a passage: a line of a block shows 400.
LONGEST = 360
#: What a passage ends behind, best first: a line, a sentence, a part of one, a word.
_ENDS = (
    re.compile(r"\n+"),
    re.compile(r"[.!?\u2026\u061f]+[\"')\u201d\u00bb]*\s+|[\u3002\uff01\uff1f]+\s*"),
    re.compile(r"[,;:\u3001\uff0c]\s*"),
    re.compile(r"\s+"),
)
#: The share of a passage that has to be filled before one of these ends it.
_LEAST = 1 / 3


def passages_of(text: str) -> tuple[str, ...]:
    """Return *text* in passages, that put together are *text*; one where it is not long."""
    found = list[str]()
    start = 0
    while len(text) - start > LONGEST:
        end = _end_of(text, start)
        found.append(text[start:end])
        start = end
    return (*found, text[start:])


def _end_of(text: str, start: int) -> int:
    """Return where the passage that begins at *start* ends."""
    last = start + LONGEST
    least = start + int(LONGEST * _LEAST)
    for pattern in _ENDS:
        ends = [
            found.end()
            for found in pattern.finditer(text, start, last)
            if found.end() > least
        ]
        if ends:
            return ends[-1]
    return last
