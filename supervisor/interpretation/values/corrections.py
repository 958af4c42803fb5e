"""What a sentence takes back ("not 42000 but 45000", "50k, sorry, 60k", "change 4 to 5"), and what it leaves open."""

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from quantities.numerals import Found
from quantities.units import CURRENCIES

_MARKS = r"[\s,.;:()!\u2013\u2014-]"
#: Said between two amounts, it takes back the first, even when a word or two stand between ("4 people, sorry, 5").
_SORRY = (
    r"sorry|i mean|i meant|i should(?: have)? sa(?:y|id)|or rather|rather|(?:(?:could|can) (?:i|you|we) |please )?"
    r"make (?:that|it)|change (?:that|it) to|correction|(?:scratch|strike|forget) that|actually|oops|my (?:mistake|bad)"
    r"|(?:no|oh|ah|hang on|hold on),? wait|wait|pardon|apologies"
    r"|(?:let's|let us|i'd|i'll|we'll) (?:say|go (?:with|for)|settle on)"
    r"|(?:is|was|'s|that's) (?:wrong|incorrect|not right|a (?:mistake|typo))"
    r"|(?:(?:it|that|this) )?should (?:actually |really |now |rather )?be"
)
_TAKEN_BACK = re.compile(
    rf"{_MARKS}*(?:oh|no|nope|well|ehm?|um|uh|er|it's|that's|{_SORRY})"
    rf"(?:{_MARKS}+(?:no|it's|that's|it is|that is|it was|it should be"
    rf"|the correct (?:number|amount) is|{_SORRY}))*{_MARKS}*",
    re.IGNORECASE,
)
_SORRY_BETWEEN = re.compile(
    rf"[,.;:()!\u2013\u2014-]\s*(?:no,?\s+)?(?:{_SORRY})\b"
    rf"|\b(?:but|and|,) (?:it's |it is |is |its )?now\b"
    r"|\bbut (?:we're |we are |there are |there's |it's )?(?:only|just|now)\b",
    re.IGNORECASE,
)
_SORRY_LAST = re.compile(rf"[,.;:()!\u2013\u2014-]\s*(?:no,?\s+)?(?:{_SORRY}){_MARKS}*$", re.IGNORECASE)
#: Characters that the longest words of correction take.
_SORRY_REACH = 48
_BUT = re.compile(r"\s*,?\s*(?:but|rather|instead|it's|it is|it was|use|take|make it)\s+(?:rather\s+)?", re.IGNORECASE)
_NOT_BEFORE = re.compile(
    r"(?:\b(?:do|does|did|have|has|had|will|wo)(?:n't| not|n\u2019t)(?: (?:even|yet|really|actually))?"
    r" (?!i\b|you\b|we\b|they\b|he\b|she\b|it\b|the\b|a\b|my\b|forget|mind|worry)[a-z]+"
    r"|\bnot|n't|\bnever|\binstead of|\brather than|\bno longer"
    r"|\b(?:forget|ignore|disregard)(?: about)?)(?:\s+(?:the|my|a|any|those))?\s+$",
    re.IGNORECASE,
)
#: Characters that the longest of them and its spaces take.
_NOT_REACH = 32
#: "raise the limit from 40k to 50k": without a word of changing it is a range.
_CHANGE = re.compile(
    r"\b(?:chang|switch|mov|went|gone|grew|rose|rais|increas|decreas|reduc|lower|updat|bump|cut|alter|correct|extend|rescheduli?)"
    r"(?:e|es|ed|ing|ting|s|t)?\b",
    re.IGNORECASE,
)
#: Characters between such a word and the amount that is changed.
_CHANGE_REACH = 120
_TO_BEFORE = re.compile(r"\bto(?:\s+(?:be|a|the|be for|for))?\s+$", re.IGNORECASE)
_INSTEAD = re.compile(r"\binstead\b(?!\s+of)", re.IGNORECASE)
#: Between two numbers of which one is meant.
_EITHER = re.compile(
    r"\s*(?:or|to|or maybe|or even|maybe|perhaps|-|\u2013|,\s*(?:or\s+)?(?:maybe|perhaps|possibly))\s*", re.IGNORECASE
)
_RANGE_BEFORE = re.compile(r"\b(?:between|from)\s+$", re.IGNORECASE)
_RANGE = re.compile(r"\s*(?:and|to|-|\u2013|or)\s*", re.IGNORECASE)
#: Characters that the words before a range take.
_RANGE_REACH = 24


class _Placed(Protocol):
    """What stands at a place of the sentence."""

    @property
    def start(self) -> int:
        """Its first character."""

    @property
    def end(self) -> int:
        """The character after it."""


class Place(NamedTuple):
    """An amount that stands, the stretch it speaks for, and the amount whose place it took."""

    found: Found
    start: int
    end: int
    instead_of: Found | None


def corrected(amounts: Sequence[Found], text: str) -> tuple[list[Place], bool]:
    """Return the amounts that stand, and whether any was taken back."""
    kept: list[Place] = []
    is_corrected = False
    denied: int | None = None
    for place, found in enumerate(amounts):
        reach = max(found.start - _NOT_REACH, 0)
        gap = text[amounts[place - 1].end : found.start] if place else ""
        if match := _NOT_BEFORE.search(text, reach, found.start):
            denied, is_corrected = match.start(), True
            continue
        start, instead_of = found.start, None
        if denied is not None and _BUT.fullmatch(gap):
            start, instead_of = denied, amounts[place - 1]
        elif kept and kept[-1].found is amounts[place - 1] and _replaced(text, amounts[place - 1], found, gap):
            start, instead_of, is_corrected = kept.pop().start, amounts[place - 1], True
        denied = None
        kept.append(Place(found, start, found.end, instead_of))
    return kept, is_corrected


def _is_alike(earlier: str | None, later: str | None) -> bool:
    """True when an amount in *later* may correct one in *earlier*: 84 % is what 42k makes, no other 42k."""
    if later is None or later == earlier:
        return True
    if earlier is None or earlier in CURRENCIES or later in CURRENCIES:
        return (earlier is None or earlier in CURRENCIES) and later in CURRENCIES
    return "%" not in {earlier, later}


def _replaced(text: str, earlier: Found, later: Found, gap: str) -> bool:
    if not _is_alike(earlier.unit, later.unit):
        return False
    if _TAKEN_BACK.fullmatch(gap):
        return True
    before = text[max(earlier.start - _CHANGE_REACH, 0) : earlier.start].rstrip().lower()
    return gap.strip().lower() == "to" and before.endswith(" from") and _CHANGE.search(before) is not None


def is_denied(text: str, start: int) -> bool:
    """True when what begins at *start* is said not to be so ("not 4 people")."""
    return _NOT_BEFORE.search(text, max(start - _NOT_REACH, 0), start) is not None


def is_correction(gap: str) -> bool:
    """True when *gap* stands between a value and the one that takes its place."""
    return _TAKEN_BACK.fullmatch(gap) is not None


def replaces(text: str, earlier: _Placed, later: _Placed) -> bool:
    """True when *later* was plainly said in place of *earlier*: ", sorry,", "change 4 to 5", "can 5 come instead"."""
    if later.start < earlier.end:
        return False
    if _SORRY_BETWEEN.search(text, earlier.end, later.start) or _INSTEAD.search(text, later.end):
        return True
    return changes_to(text, earlier, later)


def is_either(text: str, first: _Placed, second: _Placed) -> bool:
    """True when one of the two is meant, and nobody said which ("5 or 6", "between 40k and 50k")."""
    if second.start < first.start:
        first, second = second, first
    is_range = _RANGE_BEFORE.search(text, max(first.start - _RANGE_REACH, 0), first.start) is not None
    return (_RANGE if is_range else _EITHER).fullmatch(text, first.end, second.start) is not None


def changes_to(text: str, earlier: _Placed, later: _Placed) -> bool:
    """True when *earlier* is what a word of changing has before *later* ("change the 4 to 5"), if of one thing."""
    is_to = _TO_BEFORE.search(text, max(later.start - _NOT_REACH, 0), later.start)
    return is_to is not None and later.start >= earlier.end and _changes_before(text, earlier.start)


def _changes_before(text: str, place: int) -> bool:
    return _CHANGE.search(text, max(place - _CHANGE_REACH, 0), place) is not None


def corrects(text: str, earlier: _Placed, later: _Placed) -> bool:
    """True when nothing but words of correction stands right before *later* ("4 people, sorry, 5")."""
    gap = text[max(earlier.end, later.start - _SORRY_REACH) : later.start] if later.start > earlier.end else ""
    return _SORRY_LAST.search(gap) is not None
