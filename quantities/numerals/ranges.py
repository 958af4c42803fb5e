"""Ranges in sentences: "between 5 and 10", "at least 20", "30 or more", "greater than 30 and at most 40".

Bounds follow one convention: "between", "from ... to" and a dash include the low end and leave the high end out;
comparatives ("more than", "under") leave their number out; "at least", "up to" and "or more" include it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from quantities.numerals.digit_runs import DecimalMark
from quantities.numerals.finding import amounts_as_said
from quantities.numerals.found import Found


@dataclass(frozen=True, slots=True)
class Range:
    """What a number may be: from *low* to *high*, None where that end is open, with the place it was said at."""

    low: Decimal | None
    high: Decimal | None
    includes_low: bool
    includes_high: bool
    unit: str | None
    start: int
    end: int
    text: str

    def __str__(self) -> str:
        """Return the range as mathematics writes it: "[5,10)", "(,100]"."""
        low = "" if self.low is None else format(self.low, "f")
        high = "" if self.high is None else format(self.high, "f")
        return f"{'[' if self.includes_low else '('}{low},{high}{']' if self.includes_high else ')'}"

    def __contains__(self, value: object) -> bool:
        """True when *value*, an int or Decimal in the unit of the range, lies inside."""
        if not isinstance(value, (int, Decimal)):
            return False
        above = self.low is None or value > self.low or (self.includes_low and value == self.low)
        return above and (self.high is None or value < self.high or (self.includes_high and value == self.high))


#: Characters that the longest comparison takes.
_REACH = 48
_UP = (
    r"(?:more|greater|larger|bigger|higher|longer|older|taller|heavier|wider|deeper|faster|later|better)[ ]than|above|"
    r"over|exceed(?:s|ed|ing)?|surpass(?:es|ed|ing)?|in[ ]excess[ ]of|upwards[ ]of|beyond|north[ ]of"
)
_DOWN = (
    r"(?:less|fewer|smaller|lower|shorter|younger|lighter|narrower|slower|earlier|worse|cheaper)[ ]than|below|under|"
    r"beneath|south[ ]of"
)
_OR_EQUAL = r"(?:,?[ ](?:or|and)[ ](?:is[ ])?equals?[ ](?:to|than))"
_BEFORE = re.compile(
    rf"""(?<!\w)(?:
        (?P<least>at[ ](?:the[ ]very[ ])?least|(?:an?[ ])?minimum(?:[ ]of)?|(?:starting|starts)[ ](?:at|from))
          (?:[ ]or[ ]equals?[ ]to)?
      | (?P<most>at[ ](?:the[ ]very[ ])?most|(?:an?[ ])?maximum(?:[ ]of)?|up[ ]to|as[ ](?:many|much)[ ]as|
          not[ ]exceed(?:ing)?)(?:[ ]or[ ]equals?[ ]to)?
      | (?P<not>(?:no|not|never)[ ](?:be[ ])?)?
        (?P<first>equals?[ ](?:to[ ])?or[ ])?
        (?:(?P<up>{_UP})|(?P<down>{_DOWN})|(?P<either>(?P<bigger>greater|more|larger|higher|bigger)|
           less|fewer|smaller|lower)(?={_OR_EQUAL}))
        (?P<last>{_OR_EQUAL})?
      | (?P<equal>equal(?:s|ing|ling)?(?:[ ]to)?)
    )[ ](?:(?:the|about|around|roughly)[ ])?$
    | (?<![=<>])(?:(?P<ge>>[ ]?=|≥)|(?P<le><[ ]?=|≤)|(?P<gt>>)|(?P<lt><))[ ]?$
    | (?<![=<>!])(?P<eq>==?)[ ]?$
    """,
    re.IGNORECASE | re.VERBOSE,
)
_AFTER = re.compile(
    r"(?:\s?(?P<plus>\+)(?![\d+])|,?[ ](?:or|and)[ ](?:(?P<up>more|greater|larger|bigger|higher|above|over|up|upwards?|"
    r"older|longer|later|better|beyond)|(?P<down>less|fewer|smaller|lower|below|under|down|younger|shorter|earlier|"
    r"cheaper))(?:[ ]than)?)(?!\w)",
    re.IGNORECASE,
)
_OR_IT = re.compile(r",?[ ]or[ ]equals?[ ]to(?:[ ](?:it|that))?(?!\w)(?![ ]?[\d$])", re.IGNORECASE)
_SPAN = re.compile(
    r"\s*(?:-|\u2013|\u2014|~|\.\.\.?|\u2026|\bto\b|\btill\b|\buntil\b|\bthrough\b|\bthru\b)\s*", re.IGNORECASE
)
_BETWEEN = re.compile(r"\s+(?:and|to|-|\u2013)\s+", re.IGNORECASE)
_OPENER = re.compile(r"\b(?P<word>between|from|in the range of|ranging from)\s+(?:about\s+)?$", re.IGNORECASE)
_JOINT = re.compile(r"\s*,?\s*(?:(?:and|but|yet)\s+)?(?:(?:is|are|also)\s+)?", re.IGNORECASE)


def find_ranges(text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None) -> tuple[Range, ...]:
    """Return the ranges in *text*, in order; a plain number, and one with two readings, is none.

    Two bounds that belong together are one range: "greater than 30 and at most 40" is ``(30,40]``.
    """
    amounts = amounts_as_said(text, decimal_mark=decimal_mark, locale=locale)
    return tuple(_combined(_bounded(amounts, text), text))


def _bounded(amounts: tuple[Found, ...], text: str) -> Iterator[Range]:
    place = end = 0
    while place < len(amounts):
        amount, following = amounts[place], amounts[place + 1] if place + 1 < len(amounts) else None
        span = _span(amount, following, text, end) if following else None
        if span:
            place += 1
        found = span or _one_sided(amount, following, text, end)
        place += 1
        end = found.end if found else amount.end
        if found:
            yield found


def _span(first: Found, second: Found, text: str, after: int) -> Range | None:
    """Read "between 5 and 10", "from 5 to 10", "5-10" and "5 ~ 10"."""
    if first.value is None or second.value is None or not first.value < second.value:
        return None
    gap = text[first.end : second.start]
    opener = _OPENER.search(text, max(after, first.start - _REACH), first.start)
    is_between = opener is not None and opener["word"].lower() == "between"
    if len(gap) > _REACH or not (_BETWEEN.fullmatch(gap) if is_between else _SPAN.fullmatch(gap)):
        return None
    if first.unit and second.unit and first.unit != second.unit:
        return None
    start = opener.start() if opener else first.start
    unit = first.unit or second.unit
    return Range(first.value, second.value, True, False, unit, start, second.end, text[start : second.end])


def _one_sided(amount: Found, following: Found | None, text: str, after: int) -> Range | None:
    if amount.value is None:
        return None
    before = _BEFORE.search(text, max(after, amount.start - _REACH), amount.start)
    behind = _AFTER.match(text, amount.end)
    if behind and following and not text[behind.end() : following.start].strip():
        behind = None
    if behind and (before is None or before["equal"] or before["eq"]):
        is_low = bool(behind["up"] or behind["plus"])
        return _made(amount, text, before.start() if before else amount.start, behind.end(), is_low=is_low, closed=True)
    if before is None:
        return None
    groups = before.groupdict()
    if groups["equal"] or groups["eq"]:
        whole = text[before.start() : amount.end]
        return Range(amount.value, amount.value, True, True, amount.unit, before.start(), amount.end, whole)
    is_low = bool(groups["least"] or groups["up"] or groups["bigger"] or groups["ge"] or groups["gt"])
    closed = any(groups[name] for name in ("least", "most", "first", "last", "ge", "le"))
    if groups["not"]:
        is_low, closed = not is_low, True
    end = amount.end
    if not closed and (match := _OR_IT.match(text, end)) and not _continues(text, match.end(), following):
        closed, end = True, match.end()
    return _made(amount, text, before.start(), end, is_low=is_low, closed=closed)


def _continues(text: str, end: int, following: Found | None) -> bool:
    """True when the words up to *end* belong to the amount that follows: "or equal to 6000"."""
    return following is not None and not text[end : following.start].strip()


def _made(amount: Found, text: str, start: int, end: int, *, is_low: bool, closed: bool) -> Range:
    low, high = (amount.value, None) if is_low else (None, amount.value)
    return Range(low, high, is_low and closed, not is_low and closed, amount.unit, start, end, text[start:end])


def _combined(ranges: Iterator[Range], text: str) -> Iterator[Range]:
    last: Range | None = None
    for found in ranges:
        joined = last and _both(last, found, text)
        if last and not joined:
            yield last
        last = joined or found
    if last:
        yield last


def _both(first: Range, second: Range, text: str) -> Range | None:
    low, high = (first, second) if first.high is None else (second, first)
    if low.low is None or high.high is None or low.high is not None or high.low is not None or low.low >= high.high:
        return None
    if second.start - first.end > _REACH or not _JOINT.fullmatch(text, first.end, second.start):
        return None
    if low.unit and high.unit and low.unit != high.unit:
        return None
    whole = text[first.start : second.end]
    return replace(low, high=high.high, includes_high=high.includes_high, start=first.start, end=second.end, text=whole)
