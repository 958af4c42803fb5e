"""The worth of words in a slot: the one place that turns them into a slot's JSON values."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import zip_longest
from typing import Any, NamedTuple

from tasklore.contracts.parameters.currencies import are_currencies
from tasklore.contracts.quantities.amounts import (
    Amount,
    Duration,
    Percent,
    Quantity,
    canonical,
    wire_form,
)
from tasklore.contracts.quantities.amounts.money import currencies_meant, spell_money
from tasklore.contracts.quantities.errors import (
    AmbiguousAmount,
    InvalidAmount,
    UnitMismatch,
)
from tasklore.contracts.quantities.numerals import FoundAmount
from tasklore.contracts.quantities.numerals.words import PART, PARTS
from tasklore.contracts.quantities.times import FoundMoment
from tasklore.contracts.quantities.units import CURRENCIES, Unit
from tasklore.supervisor.understanding.currencies import LONGEST_NAME, currency_called
from tasklore.supervisor.understanding.questions import (
    ask_currency,
    ask_for,
    ask_value,
    ask_which_value,
)
from tasklore.supervisor.understanding.schema import Kind, Slot
from tasklore.supervisor.understanding.utterance import (
    ReadUtterance,
    mark,
    stems_of,
)

#: "10k" and "5m", which beside a measure may be a number with its scale or the beginning of a unit.
_SCALED = re.compile(r"([-+]?[\d.,]*\d)\s?([kKmMbBgGtT])")
_TYPES: dict[Kind, type[Percent] | type[Quantity]] = {
    "percent": Percent,
    "quantity": Quantity,
}
_WANTED: dict[Kind, str] = {"percent": "in per cent", "quantity": "as a measure"}
#: What a word alone may count ("a dozen").
_COUNTS = range(1, 1001)
#: Choices that are words, too.
_LETTERS = frozenset({"a", "i"})
#: "18 days" is no number of anything but days.
_TIMES = frozenset({"second", "minute", "hour", "day", "week", "month", "year"})
#: Who counts others and themselves does not say how many they are in all.
_AND_ME = re.compile(r"[^,.;!?\d]{0,24}\band\s+(?:i|me|myself)\b", re.IGNORECASE)
_ME_AND = re.compile(
    r"\b(?:me|myself|i|us)(?:\s*,\s*|\s+)(?:and|plus|with)\s+(?:my\s+)?$", re.IGNORECASE
)
_OTHERS_AND = re.compile(
    r"\b(?P<others>(?:my|our|his|her|their)\s+[^\W\d_]{2,20})(?:\s*,\s*|\s+)(?:and|plus|with)\s+"
    r"(?:the\s+)?(?:us\s+|of\s+us\s+)?$",
    re.IGNORECASE,
)
_REACH = 24
#: The two ends of a time from a bare hour on: "from 10 to 11:30", "14-15:30".
_TO = re.compile(r"\s+(?:to|till|until)\s+|[-\u2013\u2014]", re.IGNORECASE)
_TO_AND = re.compile(rf"{_TO.pattern}|\s+and\s+", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s+$", re.IGNORECASE)
_WHOSE = r"(?:it|that|this|those|them|the|my|our|your|his|her|their|its|all|what)\b"
#: What digits count where they say a part ("3 quarters of it", "2 thirds").
_PARTS_BEHIND = re.compile(
    rf"[ -](?P<name>{'|'.join(PARTS)})\b(?P<of> of\b)?", re.IGNORECASE
)
_WORD_OF_PART = re.compile(rf"\b(?:{'|'.join((*PART, *PARTS))})\b", re.IGNORECASE)
_SIGN_OF_PART = re.compile(r"[/\u2044\xbc-\xbe\u2150-\u215e]")
#: What makes a part of a fraction, "1/2 of it" and "half the limit"; of one in words alone, "spent half"; and of a
#: decimal number, "0.75 of the limit".
_OF_WHAT = re.compile(rf"\s+of\b(?!\s+an?\b)|\s+{_WHOSE}", re.IGNORECASE)
_OF_NUMBER = re.compile(r"\s+(?:of\s+)?(?=\d)", re.IGNORECASE)
_NOTHING = re.compile(r"\s*(?:$|[.,;:!?)]|(?:and|but|so|then)\b)", re.IGNORECASE)
_OF_THAT = re.compile(rf"\s+of\s+{_WHOSE}", re.IGNORECASE)
#: Values of one utterance that are weighed; what comes behind them is asked about.
_MOST_VALUES = 64
#: Days from which on a day without a year is far ahead, and days until which it was a short while ago.
_FAR_AHEAD = 240
_SHORT_AGO = 60
_HOURS = 24
_AGE = stems_of("age")
_YEAR = re.compile(r"\d{4}")
_SEPARATOR = re.compile(
    r"\s*(?:[,;/&+]\s*(?:and\s+|then\s+)?|and\s+|then\s+|)", re.IGNORECASE
)
#: Said between two values, it takes back the first.
_TAKEN_BACK = re.compile(
    r"[\s,.;:()!\u2013\u2014-]*(?:\b(?:oh|no|nope|sorry|wait|actually|rather|or rather|i mean(?:t)?|make (?:it|that)"
    r"|scratch that|correction|it's|that's|but)\b[\s,.;:()!\u2013\u2014-]*){1,4}(?:(?:for|at|on|to|in|by)\s+)?",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|n't|instead of|(?:rather|other) than|no longer|anything but)\s+(?:the\s+|my\s+|a\s+|on\s+|at\s+)?$",
    re.IGNORECASE,
)
_DENIED_REACH = 24
_WORD = re.compile(r"[^\W\d_]{1,20}|[€$£¥]")
_NO_MORE = re.compile(r"\s*(?:$|[.,;:!?)]|please\b)", re.IGNORECASE)
#: A currency apart from its number: "120, in yen", "120 (EUR)"; behind a comma alone it is the last word.
_NAME = rf"(?P<name>(?:{_WORD.pattern})(?:\s+{_WORD.pattern}){{0,{LONGEST_NAME - 1}}})"
_CURRENCY_BEHIND = re.compile(
    rf"(?:(?:\s*,)?\s*(?:\bin\s+|\(\s*)|(?P<comma>\s*,\s*)){_NAME}", re.IGNORECASE
)
_IN_CURRENCY = re.compile(rf"\bin\s+{_NAME}", re.IGNORECASE)


class Candidate(NamedTuple):
    """A value of an utterance that *slot* may take.

    *values* holds one value ready for JSON when they are clear, several when they have several readings; with none,
    *question* asks for a better one. *is_of_type* is True when a unit alone assigns it to such a slot.
    """

    slot: Slot
    start: int
    end: int
    values: tuple[Any, ...]
    question: str = ""
    is_of_type: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether there is one value, and nothing to ask."""
        return len(self.values) == 1 and not self.question


class ValueGroup(NamedTuple):
    """Characters of one value, with the candidates of each slot; *run* numbers the list it stands in."""

    start: int
    end: int
    candidates: tuple[Candidate, ...]
    run: int

    def of(self, slot: Slot) -> Candidate | None:
        """Return the candidate of *slot*, the longest reading first."""
        own = [one for one in self.candidates if one.slot is slot]
        return max(
            own, key=lambda one: (bool(one.values), one.end - one.start), default=None
        )


def candidates(utterance: ReadUtterance, slot: Slot) -> list[Candidate]:
    """Return the candidates for *slot* in *utterance*, in order; for texts and switches see `texts`."""
    if slot.is_numeric:
        offsets = [one for one in utterance.moments if one.is_offset]
        dates = utterance.moment_marks
        return [
            amount_for(slot, found, utterance)
            for found in utterance.amounts[:_MOST_VALUES]
            if not dates[found.start]
            or any(one.start <= found.start < one.end for one in offsets)
            if found.unit not in _TIMES
            or slot.unit is not None
            or slot.kind == "quantity"
            or _is_called(slot, found)
            if _time_until(found, utterance) is None
        ]
    if slot.is_timed:
        found = (
            _moment_for(slot, one, utterance.now)
            for one in utterance.moments[:_MOST_VALUES]
        )
        ranges = [
            (one, until)
            for one in utterance.amounts[:_MOST_VALUES]
            if (until := _time_until(one, utterance)) is not None
        ]
        return [
            _ask_when(one, ranges, utterance.text) for one in found if one is not None
        ]
    if slot.kind == "duration":
        return [
            _duration_for(slot, one.text, one.start, one.end)
            for one in utterance.durations[:_MOST_VALUES]
        ]
    if slot.kind == "choice":
        return list(choices_for(slot, utterance))
    return []


def _time_until(found: FoundAmount, utterance: ReadUtterance) -> FoundMoment | None:
    """Return the time that ends what *found*, a bare hour, begins: "from 10 to 11:30"; None where it begins none."""
    if not found.text.isdigit() or found.value is None or found.value >= _HOURS:
        return None
    is_between = (
        _BETWEEN.search(utterance.text, max(found.start - _REACH, 0), found.start)
        is not None
    )
    joined = (_TO_AND if is_between else _TO).match(utterance.text, found.end)
    until = utterance.moments_by_start.get(joined.end()) if joined else None
    is_time = until is not None and isinstance(until.readings[0], datetime)
    return until if until is not None and is_time and not until.is_offset else None


def _ask_when(
    one: Candidate, ranges: Sequence[tuple[FoundAmount, FoundMoment]], text: str
) -> Candidate:
    """Return *one*, with a question for its time where that only ends one of *ranges* of *text*."""
    begin = next((first for first, until in ranges if until.start == one.start), None)
    if begin is None or one.slot.kind == "date":
        return one
    question = f"{ask_value(one.slot)} You wrote {text[begin.start : one.end]!r}."
    return one._replace(start=begin.start, values=(), question=question)


def groups_of(
    utterance: ReadUtterance, slots: Sequence[Slot], taken_back: list[tuple[int, int]]
) -> list[ValueGroup]:
    """Return the values of *utterance* that *slots* can take, overlapping ones together.

    Values that were taken back are added to *taken_back* instead.
    """
    found = sorted(
        (one for slot in slots for one in candidates(utterance, slot)),
        key=lambda one: (one.start, one.end),
    )
    joined: list[list[Candidate]] = []
    reach = -1
    for one in found:
        if one.start < reach:
            joined[-1].append(one)
        else:
            joined.append([one])
        reach = max(reach, one.end)
    spans = [(ones[0].start, max(one.end for one in ones), ones) for ones in joined][
        :_MOST_VALUES
    ]
    text = utterance.text
    groups: list[ValueGroup] = []
    for (start, end, ones), after in zip_longest(spans, spans[1:]):
        is_denied = (
            _DENIED.search(text, max(start - _DENIED_REACH, 0), start) is not None
        )
        if is_denied or (
            after is not None and _TAKEN_BACK.fullmatch(text, end, after[0])
        ):
            taken_back.append((start, end))
            continue
        run = 0
        if groups:
            run = groups[-1].run + (
                _SEPARATOR.fullmatch(text, groups[-1].end, start) is None
            )
        groups.append(ValueGroup(start, end, tuple(ones), run))
    return groups


def amount_for(slot: Slot, found: FoundAmount, utterance: ReadUtterance) -> Candidate:
    """Return the candidate of *found*, an amount of *utterance*, for *slot*."""
    text = utterance.text
    if slot.kind == "money" and found.unit is None:
        found = _in_currency_behind(found, text)
    if part := _part_in(slot, found, text):
        question = _ask_part(slot, part, found, utterance)
        return Candidate(
            slot,
            start=found.start,
            end=found.start + len(part),
            values=(),
            question=question,
        )
    values, question = (
        _worth_of_money(slot, found, text)
        if slot.kind == "money"
        else _worth(slot, found, utterance)
    )
    before = (max(found.start - _REACH, 0), found.start)
    is_beside = _ME_AND.search(text, *before) or _AND_ME.match(text, found.end)
    others = _OTHERS_AND.search(text, max(found.start - 2 * _REACH, 0), found.start)
    if slot.kind == "integer" and found.unit is None and (is_beside or others):
        beside = repr(others["others"]) if others else "yourself"
        values = ()
        question = (
            f"{ask_value(slot, ' in all')} You wrote {found.text!r} and {beside}."
        )
    is_of_type = not question and found.unit is not None
    if is_of_type:
        is_of_type = (
            found.unit == "%"
            if slot.kind == "percent"
            else found.unit in CURRENCIES
            if slot.kind == "money"
            else slot.unit is not None or _is_called(slot, found)
        )
    return Candidate(
        slot,
        start=found.start,
        end=found.end,
        values=values,
        question=question,
        is_of_type=is_of_type,
    )


def _ask_part(
    slot: Slot, part: str, found: FoundAmount, utterance: ReadUtterance
) -> str:
    """Return the question for the worth of *part*, which *found* opens: of a number that is said, or of what is not."""
    place = found.start + len(part)
    whole = _OF_NUMBER.match(utterance.text, place)
    number = next(
        (one for one in utterance.amounts if whole and one.start == whole.end()), None
    )
    if number is not None:
        written = utterance.text[found.start : number.end]
        return f"{ask_value(slot, ' in all')} You wrote {written!r}."
    return f"{ask_value(slot, ' in all')} You wrote {part!r}, a fraction of something that is not known."


def _part_in(slot: Slot, found: FoundAmount, text: str) -> str:
    """Return the words of a part of something ("3 quarters of it", "half the limit") that *found* opens, "" for none.

    A part of a unit is an amount ("half a kilo"), and so is what stands for itself ("1/2", "0.5").
    """
    if found.unit is not None or found.value is None:
        return ""
    if (parts := _PARTS_BEHIND.match(text, found.end)) is not None:
        called = {one.stems[0] for one in slot.phrases if len(one.stems) == 1}
        is_counted = slot.kind == "integer" and not parts["of"]
        is_number = is_counted or stems_of(parts["name"])[0] in called
        return "" if is_number else text[found.start : parts.end("name")]
    if not 0 < found.value < 1:
        return ""
    fitting = (
        (_OF_WHAT, _NOTHING)
        if _WORD_OF_PART.search(found.text)
        else (_OF_WHAT,)
        if _SIGN_OF_PART.search(found.text)
        else (_OF_THAT,)
    )
    is_part = any(pattern.match(text, found.end) for pattern in fitting)
    return found.text if is_part else ""


def _is_called(slot: Slot, found: FoundAmount) -> bool:
    """Return whether *slot* is named after the unit of *found*: "3 months" for `months`, "61 years" for an age."""
    words = set(stems_of(found.text))
    return any(
        not words.isdisjoint(phrase.stems)
        if found.unit in _TIMES
        else len(phrase.stems) == 1 and phrase.stems[0] in words
        for phrase in slot.phrases
    ) or (found.unit == "year" and any(one.stems == _AGE for one in slot.phrases))


def _worth(
    slot: Slot, found: FoundAmount, utterance: ReadUtterance
) -> tuple[tuple[Any, ...], str]:
    if found.is_vague:
        return (), _ask_exactly(slot, found)
    if slot.kind == "quantity" and found.unit is None and slot.unit is None:
        return (), f"{ask_value(slot, ', with its unit')} You wrote {found.text!r}."
    if (readings := _colliding(slot, found)) is not None:
        return readings, ask_which_value(
            slot, [f"{one} {slot.unit}" for one in readings], found.text
        )
    raw: Any = found.text if utterance.decimal_mark is None else _plainly(found, slot)
    if found.value is not None and slot.unit is None and _is_called(slot, found):
        raw = found.value
    try:
        if slot.kind in _TYPES:
            return (str(_TYPES[slot.kind].read(raw, unit=slot.unit)),), ""
        amount = Amount.read(raw, unit=slot.unit, any_currency=slot.takes_money)
        return _check_bounds(slot, amount, found)
    except AmbiguousAmount as error:
        values = tuple(wire_form(Amount(Decimal(one))) for one in error.readings)
        return values, ask_which_value(slot, error.readings, found.text)
    except UnitMismatch:
        return _read_in_unit(slot, found)
    except InvalidAmount:
        if (
            slot.unit is None
            and found.unit is None
            and found.value is not None
            and found.value in _COUNTS
        ):
            return _check_bounds(slot, Amount(found.value), found)
        wanted = _WANTED.get(slot.kind, "as a plain number")
        return (
            (),
            f"{ask_value(slot, f' {wanted}')} I cannot store {found.text!r} exactly.",
        )


def _ask_exactly(slot: Slot, found: FoundAmount) -> str:
    return f"{ask_value(slot, ' exactly')} You wrote {found.text!r}."


def _in_currency_behind(found: FoundAmount, text: str) -> FoundAmount:
    """Return *found* with the currency that stands apart from it: "120, in Swedish kronor", "120 (EUR)"."""
    behind = _CURRENCY_BEHIND.match(text, found.end)
    if behind is None:
        return found
    words = list(_WORD.finditer(text, *behind.span("name")))
    for last in reversed(words):
        end = last.end()
        if behind["comma"] and not _NO_MORE.match(text, end):
            continue
        if (unit := currency_called(text[words[0].start() : end])) is not None:
            return replace(
                found,
                unit=unit.code,
                also=unit.also,
                end=end,
                text=text[found.start : end],
            )
    return found


def _names_currency_elsewhere(text: str) -> bool:
    """Return whether a sentence says "in yen" somewhere, though beside no amount."""
    for one in _IN_CURRENCY.finditer(text):
        words = list(_WORD.finditer(text, *one.span("name")))
        for last in words:
            end = last.end()
            name = text[words[0].start() : end]
            if currency_called(name) is not None and _NO_MORE.match(text, end):
                return True
    return False


def _worth_of_money(
    slot: Slot, found: FoundAmount, text: str
) -> tuple[tuple[Any, ...], str]:
    """Return *found* in each currency that it can be in; a name of several is asked about.

    A number without one is in that of the slot, or asked about too, also where *text* has one that is not beside it.
    """
    if found.is_vague:
        return (), _ask_exactly(slot, found)
    unit = Unit(found.unit, also=found.also) if found.unit else None
    codes = currencies_meant(unit)
    if unit is None and _names_currency_elsewhere(text):
        return (), ask_currency(slot, found.text)
    if slot.unit and (unit is None or slot.unit in (unit.code, *unit.also)):
        codes = (slot.unit,)
    numbers = found.readings if found.value is None else (found.value,)
    values = tuple(
        spell_money(Amount(number, code)) for number in numbers for code in codes
    )
    if len(values) == 1:
        return values, ""
    if len(codes) == 1:
        return values, ask_which_value(slot, values, found.text)
    return values, ask_currency(slot, found.text, codes)


def _read_in_unit(slot: Slot, found: FoundAmount) -> tuple[tuple[Any, ...], str]:
    """Return *found*, in another unit than *slot* is, converted where that is exact; else the question for it."""
    with suppress(InvalidAmount):
        if slot.unit is not None:
            number = Quantity.read(found.text, unit=slot.unit).value
            return _check_bounds(slot, Amount(number), found)
    if slot.unit is None and slot.kind not in _WANTED and found.unit in CURRENCIES:
        return (), (
            f"{ask_value(slot, ' as a plain number')} You wrote {found.text!r}, but {slot.label} has no currency."
        )
    wanted = (
        f"in {slot.unit}" if slot.unit else _WANTED.get(slot.kind, "without a unit")
    )
    unit = f", which is in {found.unit}" if found.unit else ""
    return (), f"{ask_value(slot, f' {wanted}')} You wrote {found.text!r}{unit}."


def _colliding(slot: Slot, found: FoundAmount) -> tuple[Any, ...] | None:
    """Return both readings of "10k" where *slot* is in a measure such as km; None when there is but one."""
    if (
        slot.unit is None
        or slot.kind == "percent"
        or Amount.read(1, unit=slot.unit).unit in CURRENCIES
    ):
        return None
    match = _SCALED.fullmatch(found.text)
    if match is None or found.value is None or found.unit is not None:
        return None
    plain = Amount.read(match[1]).value
    return wire_form(Amount(plain)), wire_form(Amount(found.value))


def _plainly(found: FoundAmount, slot: Slot) -> str:
    """Return *found* in the one spelling that is read in one way, its decimal mark being known."""
    if found.value is None:
        return found.text
    unit = slot.unit if slot.unit in found.also else found.unit
    return f"{canonical(found.value)} {unit or ''}".rstrip()


def _check_bounds(
    slot: Slot, amount: Amount, found: FoundAmount
) -> tuple[tuple[Any, ...], str]:
    value = amount.value
    is_allowed = (slot.least is None or value >= slot.least) and (
        slot.most is None or value <= slot.most
    )
    if slot.unit is None and not is_allowed:
        least, most = (
            None if one is None else canonical(one) for one in (slot.least, slot.most)
        )
        bounds = (
            f"from {least} to {most}"
            if least and most
            else f"at least {least}"
            if least
            else f"at most {most}"
        )
        return (), f"{ask_value(slot, f', {bounds}')} You wrote {found.text!r}."
    if slot.kind == "integer" and value != value.to_integral_value():
        return (), f"{ask_value(slot, ' as a whole number')} You wrote {found.text!r}."
    return (wire_form(Amount(value)),), ""


def _moment_for(slot: Slot, found: FoundMoment, now: datetime) -> Candidate | None:
    """Return the candidate of *found* for *slot*, None when it is no value of that kind."""
    spelled = [
        _spell_moment(slot, reading, has_day=found.has_day)
        for reading in found.readings
    ]
    values = tuple(dict.fromkeys(value for value in spelled if value is not None))
    if not values or None in spelled:
        return None
    if (earlier := _just_past(slot, found, now)) is not None and len(values) == 1:
        values = (earlier, *values)
    question = "" if len(values) == 1 else ask_which_value(slot, values, found.text)
    return Candidate(
        slot, start=found.start, end=found.end, values=values, question=question
    )


def _just_past(slot: Slot, found: FoundMoment, now: datetime) -> str | None:
    """Return the day of "19 November" that was some weeks ago, where the next one is most of a year away."""
    reading = found.readings[0]
    if not found.has_day or _YEAR.search(found.text) or found.is_offset:
        return None
    day = reading.date() if isinstance(reading, datetime) else reading
    try:
        earlier = day.replace(year=day.year - 1)
    except ValueError:
        return None
    if (day - now.date()).days < _FAR_AHEAD or (now.date() - earlier).days > _SHORT_AGO:
        return None
    at = reading.replace(year=earlier.year)
    return _spell_moment(slot, at, has_day=True)


def _spell_moment(slot: Slot, reading: date | datetime, *, has_day: bool) -> str | None:
    is_clock = isinstance(reading, datetime)
    is_local = isinstance(reading, datetime) and reading.tzinfo is None
    if slot.kind == "time":
        # The time of day of an instant depends on the zone.
        return (
            reading.time().isoformat()
            if isinstance(reading, datetime) and is_local
            else None
        )
    if slot.kind == "date":
        if not isinstance(reading, datetime):
            return reading.isoformat()
        return reading.date().isoformat() if has_day and is_local else None
    if slot.kind == "when" and isinstance(reading, datetime) and not is_local:
        return f"{reading.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
    return (
        reading.isoformat()
        if is_clock or slot.kind == "when"
        else f"{reading.isoformat()}T00:00:00"
    )


def _duration_for(slot: Slot, text: str, start: int, end: int) -> Candidate:
    try:
        duration = Duration.read(text)
    except InvalidAmount:
        return Candidate(
            slot,
            start=start,
            end=end,
            values=(),
            question=f"{ask_for([slot])} You wrote {text!r}.",
        )
    if duration.months and not slot.keeps_months:
        wanted = ask_value(slot, " in weeks or days ('90 days')")
        question = f"{wanted} A month has no fixed length. You wrote {text!r}."
        return Candidate(slot, start=start, end=end, values=(), question=question)
    return Candidate(slot, start, end, (str(duration),))


def _currencies_named(
    slot: Slot, utterance: ReadUtterance
) -> dict[int, tuple[int, list[Any]]]:
    """Return the choices of *slot* that names of currencies mean, with the number of their words, by their places."""
    found: dict[int, tuple[int, list[Any]]] = {}
    if not are_currencies(slot.choices):
        return found
    tokens = utterance.tokens
    in_amounts = mark(
        len(utterance.text), [(one.start, one.end) for one in utterance.amounts]
    )
    for place in range(len(tokens)):
        for length in range(min(LONGEST_NAME, len(tokens) - place), 0, -1):
            start = tokens[place].start
            end = tokens[place + length - 1].end
            unit = currency_called(utterance.text[start:end])
            if unit is None or any(in_amounts[start:end]):
                continue
            usual = [one for one in currencies_meant(unit) if one in slot.choices]
            meant = [one for one in (unit.code, *unit.also) if one in slot.choices]
            if meant:
                found[place] = (length, usual if len(usual) == 1 else meant)
            break
    return found


def _is_letter(slot: Slot, utterance: ReadUtterance, place: int) -> bool:
    """Return whether the "a" at *place* is the choice of that name and no article: "zone A", "A" alone."""
    before = utterance.tokens[:place]
    after = utterance.tokens[place + 1 :]
    names = {stem for phrase in slot.phrases for stem in phrase.stems}
    return bool(before and before[-1].stem in names) or not any(
        one.is_word for one in after[:1]
    )


def choices_for(slot: Slot, utterance: ReadUtterance) -> Iterator[Candidate]:
    """Yield where *utterance* names a choice of *slot*; the longer name hides the shorter ones inside it.

    A choice of currencies is named by any of their names ("yen") that is no part of an amount.
    """
    tokens = utterance.tokens
    found = _currencies_named(slot, utterance)
    for value in slot.choices:
        stems = stems_of(str(value))
        is_letter = str(value).lower() in _LETTERS
        for place in range(len(tokens) - len(stems) + 1) if stems else ():
            if (
                tokens[place].stem == stems[0]
                and tuple(one.stem for one in tokens[place : place + len(stems)])
                == stems
                and (not is_letter or _is_letter(slot, utterance, place))
            ):
                end, values = found.get(place, (0, []))
                if len(stems) >= end:
                    longest = values if len(stems) == end else []
                    found[place] = (
                        len(stems),
                        list(dict.fromkeys([*longest, value])),
                    )
    reach = -1
    for place in sorted(found):
        length, values = found[place]
        if place <= reach:
            continue
        reach = place + length - 1
        start = tokens[place].start
        end = tokens[reach].end
        yield Candidate(
            slot,
            start=start,
            end=end,
            values=tuple(values),
            question="" if len(values) == 1 else ask_which_value(slot, values),
        )
