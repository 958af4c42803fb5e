"""One of something, said with an article alone: "a dollar", "a mile and a half", "an ounce of gold"."""

from quantities.numerals.beside import Beside, Suffix
from quantities.numerals.words import ARTICLES, TENS

#: Coins and notes of which people say "a"; "a mark", "a crown" and "a yen for" are other things.
_MONEY = frozenset({
    "dollar", "euro", "pound", "quid", "buck", "penny", "cent", "rupee", "peso", "franc", "ruble", "bitcoin",
})  # fmt: skip
#: Measures by their codes; what is a thing as well (a foot, a stone, a bit, a turn) has to be counted.
_MEASURES = frozenset({
    "m", "km", "cm", "mm", "mile", "inch", "kg", "g", "lb", "oz", "tonne", "ton", "l", "ml", "gal", "qt", "acre", "ha",
    "KB", "MB", "GB", "TB",
})  # fmt: skip
#: Times of which "a" is the number before a part ("an hour and a half"), and part of a date elsewhere.
#: One of it is meant behind "a full" alone: "a small percent" is a part.
_PERCENT = frozenset({"percent", "per cent"})
_FULL = frozenset({"full", "whole"})
_TIMES = frozenset({"hour", "minute", "day", "week", "month", "year"})
_PARTS = frozenset({"half", "quarter", "third"})
#: Letters of a name; symbols are no words that an article stands before.
_SHORTEST = 4
#: Before these it is a rate, a part or a talk about the unit: "per a mile", "feet in a mile", "the price of a litre".
_NOT_AFTER = frozenset(
    {"per", "half", "many", "such", "what", "times", "once", "twice", "in", "of", "is", "quite", "not"}
)
#: Words after it that show that no noun follows, which it would be a part of ("a dollar bill", "a mile marker").
_BEFORE = frozenset({
    "of", "a", "an", "and", "or", "for", "from", "to", "in", "on", "at", "by", "with", "per", "each", "every", "more",
    "less", "long", "wide", "high", "tall", "deep", "thick", "away", "apart", "off", "up", "down", "north", "south",
    "east", "west", "before", "after", "if", "when", "then", "but", "now", "today", "tomorrow", "please", "fifty",
    "twenty", "thirty", "forty", "sixty", "seventy", "eighty", "ninety", "into", "over", "under", "extra", "too",
    "is", "was",
})  # fmt: skip


def single(beside: Beside, place: int) -> Suffix | None:
    """Return the unit of which there is one when an article stands at *place*, None when a noun owns the article."""
    grammar = beside.grammar
    if grammar.word(place) not in ARTICLES or grammar.word(place - 1) in _NOT_AFTER:
        return None
    is_full = grammar.word(place + 1) in _FULL
    suffix = beside.unit_after(place + 1 + is_full)
    unit, said = suffix.unit, suffix.said.lower()
    if said == "percentage point" or (is_full and said in _PERCENT):
        return suffix
    if unit is None or len(said) < _SHORTEST or not (said in _MONEY or unit.code in _MEASURES | _TIMES):
        return None
    if unit.code in _TIMES and not has_part(beside, suffix.end):
        return None
    following = grammar.token(suffix.end)
    if following is None or following.kind == "number" or grammar.word(suffix.end) in _BEFORE:
        return suffix
    is_mark = following.kind == "symbol" and following.text not in {"-", "'", "\u2019", "/"}
    return suffix if is_mark else None


def has_part(beside: Beside, place: int) -> bool:
    """True when "and a half", or the "fifty" of "a dollar fifty", stands at *place*."""
    word = beside.grammar.word
    if word(place) in TENS and word(place - 1) in _MONEY:
        return True
    return word(place) == "and" and word(place + 1) in ARTICLES | {"one"} and word(place + 2) in _PARTS
