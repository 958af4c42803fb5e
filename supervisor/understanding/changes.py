"""Values said by their difference from earlier ones: "double the limit" and "raise it by 10 %" are worked out exactly.

Other multiples and shares ("three times", "a quarter of it") are asked about.
"""

from collections.abc import Sequence
from decimal import Context, Decimal, Inexact
from typing import Any, NamedTuple

from tasklore.contracts.quantities.amounts import Amount, wire_form
from tasklore.contracts.quantities.amounts.money import read_money, spell_money
from tasklore.contracts.quantities.errors import InvalidAmount, UnitMismatch
from tasklore.contracts.quantities.numerals import FoundAmount
from tasklore.supervisor.understanding.conclusion import Filled
from tasklore.supervisor.understanding.cues import Cue
from tasklore.supervisor.understanding.questions import ask_value
from tasklore.supervisor.understanding.schema import Slot
from tasklore.supervisor.understanding.utterance import ReadUtterance, stem, word_set
from tasklore.supervisor.understanding.values import amount_for

_FACTORS = {
    "double": Decimal(2), "doubled": Decimal(2), "twice": Decimal(2), "triple": Decimal(3), "tripled": Decimal(3),
    "half": Decimal("0.5"), "halve": Decimal("0.5"), "halved": Decimal("0.5"), "third": None, "quarter": None,
}  # fmt: skip
_UP = frozenset(
    map(
        stem,
        word_set(
            "increase raise up bump grow lift boost extend more higher rise go add plus"
        ),
    )
)
_DOWN = frozenset(
    map(
        stem,
        word_set("decrease lower reduce cut drop shrink trim less down fewer minus"),
    )
)
#: The sign of a number by a word behind it or its noun, and by one before a number that goes "to" or "off" something.
_STEPS = dict.fromkeys(
    word_set("more higher extra additional longer later"), 1
) | dict.fromkeys(word_set("less lower fewer shorter"), -1)
_ADDING = {stem("add"): 1} | dict.fromkeys(
    map(stem, word_set("subtract deduct take remove")), -1
)
#: Between a multiple and what it is of.
_OF = word_set("of as much many the my our current previous old earlier amount a")
_ENDS = frozenset(",;.!?\n") | word_set("and but then")
#: Words between "increase" and by how much, and changes of one utterance.
_REACH = 12
_MOST_CHANGES = 16
#: Arithmetic that never rounds.
_EXACT = Context(prec=60, traps=[Inexact])


class SlotChange(NamedTuple):
    """A change of the earlier value of *slot*, None when the words do not say whose ("half of that").

    It is multiplied by *factor*, and *found* is added to it or taken off, by *sign*; None and 0: it is asked about.
    """

    slot: Slot | None
    start: int
    end: int
    factor: Decimal | None = None
    sign: int = 0
    found: FoundAmount | None = None


def changes_in(utterance: ReadUtterance, cues: Sequence[Cue]) -> list[SlotChange]:
    """Return the changes in *utterance*, in order."""
    reader = _Reader(utterance, cues)
    found = list[SlotChange]()
    amounts = {utterance.index_at(one.start): one for one in utterance.amounts}
    for place, token in enumerate(utterance.tokens):
        if len(found) < _MOST_CHANGES and (not found or token.start >= found[-1].end):
            change = reader.multiple(place, amounts.get(place)) or reader.step(
                place, amounts.get(place)
            )
            found += [change] if change is not None else []
    return found


class _Reader:
    def __init__(self, utterance: ReadUtterance, cues: Sequence[Cue]) -> None:
        self.utterance = utterance
        self.tokens = utterance.tokens
        self.cues = cues
        self.starting = {
            cue.first: cue for cue in sorted(cues, key=lambda cue: cue.end - cue.first)
        }
        self.texts = [*(token.text for token in utterance.tokens), "", "", ""]

    def end_of(self, place: int, amount: FoundAmount | None) -> int:
        return (
            self.utterance.index_at(amount.end - 1) + 1
            if amount is not None
            else place + 1
        )

    def multiple(self, place: int, amount: FoundAmount | None) -> SlotChange | None:
        """Return what begins at *place*: "twice as much spent", "half of that", "doubled"; "three times the limit"."""
        said = self.texts[place]
        end = self.end_of(place, amount)
        if said not in _FACTORS and (
            amount is None or self.texts[end] not in {"times", "x"}
        ):
            return None
        after = end = place + 1 if said in _FACTORS else end + 1
        while self.texts[end] in _OF and end not in self.starting:
            end += 1
        if (cue := self.starting.get(end)) is not None:
            if self.texts[cue.end] in {"is", "was", "are", "were"}:
                return None
            end = cue.end
        elif (
            self.texts[end] in {"that", "it", "this"}
            and not self.texts[end + 1].isalnum()
        ):
            end += 1
        elif said.endswith("ed") or end > after + 1:
            cue = self.nearest(place)
        else:
            return None
        return self.make_change(place, end, cue, _FACTORS.get(said))

    def step(self, place: int, amount: FoundAmount | None) -> SlotChange | None:
        """Return what adds *amount* or takes it off: "two more nights", "by 5k", "add 100 to the limit"."""
        if amount is None:
            return None
        texts = self.texts
        end = self.end_of(place, amount)
        before = self.texts[place - 1] if place else ""
        sign = (
            _STEPS.get(texts[end], 0)
            if texts[end + 1] not in {"or", "time", "times", "than"}
            else 0
        )
        end += abs(sign)
        cue = self.starting.get(end)
        if cue is not None and (sign or (sign := _STEPS.get(texts[cue.end], 0))):
            end = cue.end + (texts[cue.end] in _STEPS)
        elif not sign and texts[end] in {"to", "from", "off"} and place:
            sign = _ADDING.get(self.tokens[place - 1].stem, 0)
        elif not sign and (
            before == "by"
            or (amount.unit == "%" and before not in {"to", "of", "at", "with"})
        ):
            sign = self.direction(place)
            cue = None
        # "By a quarter" is no quarter that is taken off.
        is_share = not _FACTORS.keys().isdisjoint(amount.text.lower().split())
        return (
            self.make_change(
                place,
                end=end,
                cue=cue,
                factor=None,
                sign=0 if is_share else sign,
                found=amount,
            )
            if sign
            else None
        )

    def direction(self, place: int) -> int:
        """Return 1 or -1 where the words before *place* say that something goes up or down, else 0."""
        for at in range(place - 1, max(place - _REACH, -1), -1):
            if self.texts[at] in _ENDS:
                return 0
            if self.tokens[at].stem in _UP | _DOWN:
                return 1 if self.tokens[at].stem in _UP else -1
        return 0

    def nearest(self, place: int) -> Cue | None:
        """Return the nearest cue of the clause that *place* stands in."""
        first = next(
            (at for at in range(place - 1, -1, -1) if self.texts[at] in _ENDS), -1
        )
        last = next(
            (at for at in range(place + 1, len(self.texts)) if self.texts[at] in _ENDS),
            len(self.texts),
        )
        own = [cue for cue in self.cues if first < cue.first < last]
        return min(
            own,
            key=lambda cue: min(abs(cue.first - place), abs(cue.end - place)),
            default=None,
        )

    def make_change(
        self,
        place: int,
        end: int,
        cue: Cue | None,
        factor: Decimal | None,
        sign: int = 0,
        found: FoundAmount | None = None,
    ) -> SlotChange:
        cue = cue or (self.nearest(place) if found is not None else None)
        slot = cue.slot if cue is not None else None
        return SlotChange(
            slot,
            start=self.tokens[place].start,
            end=self.tokens[end - 1].end,
            factor=factor,
            sign=sign,
            found=found,
        )


def put_change(
    filled: Filled,
    slot: Slot,
    change: SlotChange,
    earlier: Any,
    utterance: ReadUtterance,
) -> bool:
    """Apply *change* to the *earlier* value of *slot* and return True; or add a question for the value."""
    text = utterance.text[change.start : change.end]
    question = ""
    value = None
    try:
        amount = _read(slot, earlier)
        before = amount.value
        if change.factor is not None:
            after = _EXACT.multiply(before, change.factor)
            said = text.split()[0].lower()
            words = (
                f"{said} of {_spell(before)}"
                if said.startswith("hal")
                else f"{said} {_spell(before)}"
            )
        else:
            by, worded = _step(slot, change, amount, utterance)
            after = _EXACT.add(before, change.sign * by)
            words = (
                f"{_spell(before)} {'plus' if change.sign > 0 else 'minus'} {worded}"
            )
        if slot.kind == "integer" and after != after.to_integral_value():
            question = f"{ask_value(slot, ' as a whole number')} {words.capitalize()} is {_spell(after)}."
    except (InvalidAmount, Inexact):
        question = (
            f"{ask_value(slot)} I cannot compute '{text}' from the earlier {earlier}."
        )
    else:
        value = (
            spell_money(Amount(after, amount.unit))
            if slot.kind == "money"
            else wire_form(Amount(after))
        )
        if not question and filled.values.get(slot.name, value) != value:
            question = f"Is {slot.label} {filled.values[slot.name]} or {value}?"
    if question:
        filled.values.pop(slot.name, None)
        filled.questions[slot.name] = question
        return False
    filled.values[slot.name] = value
    filled.computed[slot.name] = words
    return True


def _step(
    slot: Slot, change: SlotChange, before: Amount, utterance: ReadUtterance
) -> tuple[Decimal, str]:
    """Return by how much *change* moves *before*, and the words for it; raises InvalidAmount when nothing says so."""
    if change.found is None or not change.sign:
        raise InvalidAmount("nothing says by how much")
    if (
        change.found.unit == "%"
        and slot.kind != "percent"
        and change.found.value is not None
    ):
        return _EXACT.divide(
            _EXACT.multiply(before.value, change.found.value), Decimal(100)
        ), change.found.text
    if slot.kind == "money" and change.found.unit is None and change.found.value:
        return change.found.value, _spell(change.found.value)
    candidate = amount_for(slot, change.found, utterance)
    if not candidate.is_clear:
        raise InvalidAmount(candidate.question)
    by = _read(slot, candidate.values[0])
    if slot.kind == "money" and by.unit != before.unit:
        raise UnitMismatch(f"{by} and {before} are in two currencies")
    return by.value, _spell(by.value)


def _read(slot: Slot, raw: Any) -> Amount:
    return (
        read_money(raw, unit=slot.unit)
        if slot.kind == "money"
        else Amount.read(raw, unit=slot.unit)
    )


def _spell(value: Decimal) -> str:
    return f"{_EXACT.normalize(value):,f}"
