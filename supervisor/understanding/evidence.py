"""Grounding of one value of a model's answer: worth exactly that, by Python, at the words that it quotes.

A value that Python reads otherwise there is refused. One that it cannot read there, such as a number in the words of
another language, is neither taken nor refused: the person sees it before anything starts.
"""

import re
from collections.abc import Sequence
from datetime import datetime, time
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple

from tasklore.contracts.quantities.numerals import DecimalMark, find_amounts
from tasklore.memory.grounding import Number, Passage, fold_digits, locate, numbers_in
from tasklore.supervisor.understanding.outcome import TextSpan
from tasklore.supervisor.understanding.prompt import Quotable
from tasklore.supervisor.understanding.questions import asks_to_confirm
from tasklore.supervisor.understanding.schema import Slot
from tasklore.supervisor.understanding.utterance import ReadUtterance
from tasklore.supervisor.understanding.values import Candidate, candidates

#: How a value is written, by the kind of its slot.
_WRITTEN = {
    "date": "as 2026-12-05",
    "time": "as 18:30",
    "moment": "as 2026-12-05T18:30",
    "when": "as 2026-12-05 or 2026-12-05T18:30",
    "duration": "as PT2H30M",
    "boolean": "as true or false",
    "percent": "as 4.5%",
    "money": "as 120 EUR",
    "quantity": "as 5 km",
}
#: Characters of an answer that a fault repeats.
_MOST_REPEATED = 80
#: Places of one quotation that are looked at: a list may say a number often, and a hostile quotation is "a".
_MOST_PLACES = 50
_DIGITS = re.compile(r"\d+")
_UNIT = re.compile(r"(?:\s?[^\W\d_]+)?")


class Why(StrEnum):
    """Why a value is shown for a yes, in the words of the question."""

    REMEMBERED = "as I remember it"
    REPORTED = "from what was reported"
    PROPOSED = "as I proposed"
    SCATTERED = "from several earlier turns"
    UNREAD = "as I understand your words"


class Ungrounded(Exception):
    """The value is not grounded; the message is `PART: complaint`, where the part is one of a `SlotAnswer`."""


class Grounded(NamedTuple):
    """A *value*, ready for JSON, and the *place* it rests on; *why* it has to be shown for a yes, None to start."""

    value: Any
    place: Passage
    why: Why | None = None


class Evidence:
    """A text that may be quoted, with Python's readings of it."""

    def __init__(
        self, shown: Quotable, decimal_mark: DecimalMark | None = None
    ) -> None:
        text = fold_digits(shown.text)
        self.shown = shown
        self.utterance = ReadUtterance(text, decimal_mark=decimal_mark, now=shown.now)
        self.numbers = numbers_in(text)
        self._candidates: dict[int, list[Candidate]] = {}

    def candidates(self, slot: Slot) -> list[Candidate]:
        """Return the candidates for *slot* in the text."""
        # Slots live as long as their catalogue; their examples may be of no type that has a hash.
        if id(slot) not in self._candidates:
            self._candidates[id(slot)] = candidates(self.utterance, slot)
        return self._candidates[id(slot)]

    def span(self, name: str, place: Passage) -> TextSpan:
        """Return that the value of the slot *name* rests on *place*."""
        turn_id = self.shown.turn.turn_id if self.shown.turn is not None else None
        return TextSpan(
            name,
            *place,
            self.shown.text[place.start : place.end],
            turn_id,
            self.shown.memory,
        )

    def value_in_call(self, task_name: str, slot: Slot) -> object:
        """Return the value that the task of this turn has in *slot*, None when it is no turn of *task_name*."""
        call = self.shown.turn.task if self.shown.turn is not None else None
        return (
            call.parameters.get(slot.name)
            if call is not None and call.name == task_name
            else None
        )

    @property
    def is_proposal(self) -> bool:
        """Whether it is a turn that shows a task for a yes."""
        return self.shown.turn is not None and asks_to_confirm(self.shown.turn)

    def why_at(self, place: Passage) -> Why | None:
        """Return why the words at *place* are not the person's own, None when they are."""
        if self.shown.memory is not None:
            return Why.REMEMBERED
        turn = self.shown.turn
        if turn is None or turn.speaker == "person":
            return None
        if self.is_proposal:
            return Why.PROPOSED
        return Why.REPORTED if place.start < len(turn.text) else None


class SlotClaim(NamedTuple):
    """A claim of a model: *written* is the *value* of *slot* as it wrote it."""

    slot: Slot
    written: str
    value: Any


def ground(
    slot: Slot,
    value: str,
    quotation: str,
    evidence: Evidence,
    *,
    carried: object = None,
    taken: Sequence[Passage] = (),
) -> Grounded:
    """Return *value* as *quotation* shows it.

    *carried* is the value that the turn's own task has in this slot. Numbers at places *taken* belong to other slots.

    Raises:
        Ungrounded: it is no value of *slot*, the quotation does not stand there, or is worth something else.
    """
    claim = SlotClaim(slot, value, _read_claim(slot, value, evidence.shown.now))
    places = list(islice(locate(quotation, evidence.shown.text), _MOST_PLACES))
    if not places:
        said = f"{_excerpt(quotation)} does not stand in {evidence.shown.name!r} in these letters"
        raise Ungrounded(f"quotation: {said}; copy whole words and numbers from there")
    if carried is not None and claim.value in (
        carried if isinstance(carried, list) else [carried]
    ):
        return Grounded(
            claim.value, places[0], Why.PROPOSED if evidence.is_proposal else None
        )
    found: list[Grounded] = []
    for place in places:
        try:
            one = _ground_at(claim, place, evidence, taken)
        except Ungrounded:
            if place is places[-1] and not found:
                raise
        else:
            found.append(one._replace(why=one.why or evidence.why_at(one.place)))
    return next((one for one in found if one.why is None), found[0])


def _read_claim(slot: Slot, written: str, now: datetime) -> Any:
    """Return the value that a model wrote, ready for JSON."""
    cure = f"write it {_WRITTEN.get(slot.kind, 'in digits')}"
    if slot.kind == "text" and written.strip():
        return written
    if slot.kind == "choice":
        choice = next(
            (
                one
                for one in slot.choices
                if str(one).casefold() == written.strip().casefold()
            ),
            None,
        )
        if choice is None:
            raise Ungrounded(
                f"value: {_excerpt(written)} is none of {', '.join(map(str, slot.choices))}"
            )
        return choice
    if slot.kind == "boolean" and written in ("true", "false"):
        return written == "true"
    text = fold_digits(written.strip())
    read = candidates(ReadUtterance(text, decimal_mark=".", now=now), slot)
    # The unit of a number may be a word of another language, "80 litros".
    is_whole = (
        len(read) == 1
        and read[0].start == 0
        and _UNIT.fullmatch(text[read[0].end :] if slot.is_numeric else "")
    )
    if not is_whole or (not slot.is_numeric and read[0].end != len(text)):
        raise Ungrounded(f"value: {_excerpt(written)} is no {slot.kind}; {cure}")
    if not read[0].is_clear:
        raise Ungrounded(f"value: {read[0].question}")
    return read[0].values[0]


def _ground_at(
    claim: SlotClaim, place: Passage, evidence: Evidence, taken: Sequence[Passage]
) -> Grounded:
    slot = claim.slot
    if slot.kind == "text":
        return _ground_text(claim, place, evidence)
    if slot.kind == "boolean":
        return Grounded(claim.value, place, Why.UNREAD)
    free = [spot for spot in taken if slot.is_numeric and spot.overlaps(*place)]
    here = [
        one
        for one in evidence.candidates(slot)
        if place.overlaps(one.start, one.end)
        and not any(spot.overlaps(one.start, one.end) for spot in free)
    ]
    if slot.is_numeric:
        times = [Passage(one.start, one.end) for one in evidence.utterance.moments]
        written = [
            one for one in evidence.numbers if place.overlaps(one.start, one.end)
        ]
        numbers = [
            one
            for one in written
            if not any(spot.overlaps(one.start, one.end) for spot in (*free, *times))
        ]
        if written and not here and not numbers:
            raise Ungrounded(
                "quotation: that number is of another field or of a time; quote the one of this field"
            )
        return _ground_amount(claim, place, here, numbers)
    if (same := _find_same(claim, here)) is not None:
        return Grounded(claim.value, same)
    if here and not any(claim.value in one.values for one in here):
        raise _explain(claim, here)
    if slot.kind == "choice":
        return _ground_choice(claim, place, evidence)
    return (
        Grounded(claim.value, place, Why.UNREAD)
        if here
        else _ground_time(claim, place, evidence)
    )


def _find_same(claim: SlotClaim, here: Sequence[Candidate]) -> Passage | None:
    return next(
        (
            Passage(one.start, one.end)
            for one in here
            if one.is_clear and one.values[0] == claim.value
        ),
        None,
    )


def _explain(claim: SlotClaim, here: Sequence[Candidate]) -> Ungrounded:
    clear = next((one for one in here if one.is_clear), None)
    said = (
        f"the quotation is worth {clear.values[0]!r}, not {claim.value!r}"
        if clear is not None
        else here[0].question
    )
    return Ungrounded(
        f"value: {said}; give what the words say, and quote no more of them"
    )


def _ground_choice(claim: SlotClaim, place: Passage, evidence: Evidence) -> Grounded:
    """Return a choice that is written there, in scripts without spaces too, and no longer choice around it."""
    quoted = evidence.shown.text[place.start : place.end]
    named = [
        str(one).casefold()
        for one in claim.slot.choices
        if next(locate(str(one), quoted), None) is not None
    ]
    own = str(claim.value).casefold()
    is_written = own in named and not any(own in one and own != one for one in named)
    return (
        Grounded(claim.value, place)
        if is_written
        else Grounded(claim.value, place, Why.UNREAD)
    )


def _ground_text(claim: SlotClaim, place: Passage, evidence: Evidence) -> Grounded:
    """Return the words of the source itself, which the model may have spelled or spaced otherwise."""
    quoted = evidence.shown.text[place.start : place.end]
    inner = next(locate(claim.written, quoted), None)
    if inner is None:
        raise Ungrounded(
            f"value: {_excerpt(claim.written)} is no part of its quotation; copy it letter by letter"
        )
    spot = Passage(place.start + inner.start, place.start + inner.end)
    return Grounded(quoted[inner.start : inner.end], spot)


def _ground_amount(
    claim: SlotClaim,
    place: Passage,
    here: Sequence[Candidate],
    numbers: Sequence[Number],
) -> Grounded:
    """Return the number where both readers agree: that of English, and that of digits with the scales of others."""
    said = next(iter(find_amounts(fold_digits(claim.written), decimal_mark=".")), None)
    amount, unit = (said.value, said.unit) if said is not None else (None, None)
    if (same := _find_same(claim, here)) is not None:
        is_disputed = any(
            one.is_scaled and one.readings != (amount,)
            for one in numbers
            if same.overlaps(*one[:2])
        )
        return Grounded(claim.value, same, Why.UNREAD if is_disputed else None)
    if any(claim.value in one.values for one in here):
        return Grounded(claim.value, place, Why.UNREAD)
    digits = next((one for one in numbers if amount in one.readings), None)
    if digits is not None and _names_its_currency(claim, place, here, digits):
        return Grounded(claim.value, Passage(digits.start, digits.end), Why.UNREAD)
    if digits is not None and (not here or digits.is_scaled):
        own_units = (
            None,
            claim.slot.unit,
            "%" if claim.slot.kind == "percent" else None,
        )
        is_exact = (
            not here
            and digits.is_plain
            and len(digits.readings) == 1
            and unit in own_units
        )
        return Grounded(
            claim.value,
            Passage(digits.start, digits.end),
            None if is_exact else Why.UNREAD,
        )
    if here:
        raise _explain(claim, here)
    if numbers:
        readings = " or ".join(str(one) for one in numbers[0].readings)
        raise Ungrounded(
            f"value: the quotation says {readings}, not {_excerpt(claim.written)}; give what it says"
        )
    return Grounded(claim.value, place, Why.UNREAD)


def _names_its_currency(
    claim: SlotClaim, place: Passage, here: Sequence[Candidate], digits: Number
) -> bool:
    """Return whether words that Python does not know stand beside *digits*, which it reads without a currency."""
    return (
        claim.slot.kind == "money"
        and not any(one.values for one in here)
        and (place.start < digits.start or place.end > digits.end)
    )


def _ground_time(claim: SlotClaim, place: Passage, evidence: Evidence) -> Grounded:
    """Return a time that Python does not read there: its digits have to be those that stand there, if any do."""
    digits = [
        int(one)
        for one in _DIGITS.findall(evidence.utterance.text[place.start : place.end])
    ]
    parts = {int(one) for one in _DIGITS.findall(claim.value)}
    if claim.slot.kind != "duration":
        parts |= {one % 100 for one in parts} | {one - 12 for one in parts if one > 12}
    if not set(digits) <= parts:
        said = ", ".join(map(str, digits))
        raise Ungrounded(
            f"value: the quotation has the digits {said}, which {claim.value!r} has not; give what it says"
        )
    if claim.slot.kind == "time":
        clock = time.fromisoformat(claim.value)
        if clock.hour > 12 and digits == [clock.hour, clock.minute]:
            return Grounded(claim.value, place)
    return Grounded(claim.value, place, Why.UNREAD)


def _excerpt(text: str) -> str:
    return repr(text[:_MOST_REPEATED])
