"""The pieces that a sentence is cut into."""

from decimal import Context, Decimal
from typing import Literal, NamedTuple

Kind = Literal["word", "number", "fraction", "symbol", "other"]

#: Digits kept of a fraction that does not end (1/3).
FRACTIONS = Context(prec=34)


class Token(NamedTuple):
    """A piece of the sentence: *text* in small letters, its place, and what it reads as when it is a number."""

    kind: Kind
    text: str
    start: int
    end: int
    readings: tuple[Decimal, ...] = ()
