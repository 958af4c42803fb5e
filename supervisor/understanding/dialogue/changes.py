"""Values said by their difference from earlier ones ("double the limit", "raise it by 10 %"), worked out exactly."""

from collections.abc import Iterator, Sequence
from decimal import MAX_PREC, Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from quantities.amounts import Amount, wire_form
from quantities.errors import InvalidAmount
from quantities.numerals import Found
from supervisor.understanding.cues import Cue
from supervisor.understanding.schema import Slot
from supervisor.understanding.utterance import LIGHT, Utterance, stem, word_set
from supervisor.understanding.values import amount_for

_TIMES: dict[str, int | Fraction] = {
    "double": 2, "doubled": 2, "doubling": 2, "twice": 2, "triple": 3, "tripled": 3, "treble": 3, "thrice": 3,
    "quadruple": 4, "halve": Fraction(1, 2), "halved": Fraction(1, 2), "half": Fraction(1, 2),
    "third": Fraction(1, 3), "quarter": Fraction(1, 4),
}  # fmt: skip
_TOLD = {"doubled": "double", "doubling": "double", "tripled": "triple", "halve": "half of", "halved": "half of"}
_SHARES = frozenset({"half", "third", "quarter"})
_UP = frozenset(map(stem, word_set("increase raise up bump grow lift boost extend more higher rise go add plus")))
_DOWN = frozenset(map(stem, word_set("decrease lower reduce cut drop shrink trim less down fewer minus")))
_MORE, _LESS = word_set("more higher extra additional longer later"), word_set("less lower fewer shorter")
_ADDING, _TAKING = frozenset({stem("add")}), frozenset(map(stem, word_set("subtract deduct take remove")))
#: Between a multiple and what it is of.
_OF = word_set("of as much many the my our current previous old earlier amount a")
_IT = word_set("that it this")
_ENDS = frozenset(",;.!?\n") | word_set("and but then")
#: Words between "increase" and by how much.
_REACH = 12
#: Changes of one utterance; more is no sentence.
_MOST_CHANGES = 16
#: Digits of a number that is worked out.
_MOST_DIGITS = 60


class Change(NamedTuple):
    """What becomes of an earlier value of *slot*; None when the words do not say whose ("half of that").

    It is multiplied by *factor*, or *found* is added as often as *factor* says; without it *factor* itself is added.
    """

    slot: Slot | None
    is_multiple: bool
    factor: Fraction
    found: Found | None
    start: int
    end: int
    words: str = ""


class Computed(NamedTuple):
    """A *value* ready for JSON and *words* that say what it was made of; or the *question* to ask instead."""

    value: Any = None
    words: str = ""
    question: str = ""


def changes_in(utterance: Utterance, cues: Sequence[Cue]) -> list[Change]:
    """Return what *utterance* says by a difference, in order."""
    found: list[Change] = []
    for change in _Reader(utterance, cues).read():
        if all(change.end <= one.start or one.end <= change.start for one in found):
            found.append(change)
        if len(found) == _MOST_CHANGES:
            break
    return found


class _Reader:
    def __init__(self, utterance: Utterance, cues: Sequence[Cue]) -> None:
        self.tokens = utterance.tokens
        self.cues = cues
        self.starting = {cue.first: cue for cue in sorted(cues, key=lambda cue: cue.end - cue.first)}
        self.amounts = {utterance.index_at(one.start): one for one in utterance.amounts}
        self.ends = {first: utterance.index_at(one.end - 1) + 1 for first, one in self.amounts.items()}

    def read(self) -> Iterator[Change]:
        for place, token in enumerate(self.tokens):
            amount = self.amounts.get(place)
            is_share = token.text in _SHARES
            if is_share and self._said(place - 1) in {"by", "a", "one"} and (sign := self._direction(place)):
                words = f"{'plus' if sign > 0 else 'minus'} a {token.text}"
                yield self._made(place, place + 1, self._near(place), 1 + sign * Fraction(_TIMES[token.text]), words)
            elif token.text in _TIMES and (is_share or amount is None):
                told = f"{token.text} of" if is_share else _TOLD.get(token.text, token.text)
                told = f"a {told}" if is_share and token.text != "half" else told
                yield from self._multiple(place, place + 1, Fraction(_TIMES[token.text]), told)
            elif (
                amount is not None
                and amount.value is not None
                and not _SHARES.intersection(amount.text.lower().split())
            ):
                yield from self._with_amount(place, self.ends[place], amount)
            elif token.text == "another" and place + 1 in self.starting:
                cue = self.starting[place + 1]
                if cue.slot.kind == "integer":
                    yield self._made(place, cue.end, cue, Fraction(1), "", is_multiple=False)

    def _multiple(self, first: int, after: int, factor: Fraction, words: str) -> Iterator[Change]:
        place = after
        while self._said(place) in _OF and place not in self.starting:
            place += 1
        cue = self.starting.get(place)
        if cue is not None and self._said(cue.end) not in {"is", "was", "are", "were"}:
            yield self._made(first, cue.end, cue, factor, words)
        elif self._said(place) in _IT and self._is_end(place + 1):
            yield self._made(first, place + 1, None, factor, words)
        elif cue is None and (self._said(first).endswith("ed") or place > after + 1):
            yield self._made(first, place, self._near(first), factor, words)

    def _with_amount(self, first: int, end: int, found: Found) -> Iterator[Change]:
        before, after = self._said(first - 1), self._said(end)
        cue = self.starting.get(end)
        if after in {"times", "x"}:
            yield from self._multiple(first, end + 1, Fraction(found.value or 0), f"{found.text.lower()} times")
        elif after in _MORE | _LESS:
            if self._said(end + 1) not in {"or", "time", "times", "than"}:
                beside = self.starting.get(end + 1) or self._near(first)
                last = beside.end if beside is not None and beside.first == end + 1 else end + 1
                yield self._added(first, last, beside, found, -1 if after in _LESS else 1)
        elif cue is not None and self._said(cue.end) in _MORE | _LESS:
            yield self._added(first, cue.end + 1, cue, found, -1 if self._said(cue.end) in _LESS else 1)
        elif before == "by" or (found.unit == "%" and before not in {"to", "of", "at", "with"}):
            if sign := self._direction(first):
                yield self._added(first, end, self._near(first), found, sign)
        elif (stem_before := self.tokens[first - 1].stem if first else "") in _ADDING | _TAKING:
            place = end + 1
            while self._said(place) in LIGHT and place not in self.starting:
                place += 1
            if after in {"to", "from", "off"} and (cue := self.starting.get(place)) is not None:
                yield self._added(first, cue.end, cue, found, 1 if stem_before in _ADDING else -1)

    def _direction(self, first: int) -> int:
        """Return 1 or -1 where the words before *first* say that something goes up or down, else 0."""
        for place in range(first - 1, max(first - _REACH, -1), -1):
            if self._said(place) in _ENDS:
                return 0
            if self.tokens[place].stem in _UP | _DOWN:
                return 1 if self.tokens[place].stem in _UP else -1
        return 0

    def _said(self, place: int) -> str:
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def _is_end(self, place: int) -> bool:
        return not self._said(place).isalnum() or self._said(place) in _ENDS | {"please"}

    def _near(self, place: int) -> Cue | None:
        """Return the nearest cue of the clause that *place* stands in."""
        ends = [at for at, token in enumerate(self.tokens) if token.text in _ENDS and at not in self.starting]
        first = max((at for at in ends if at < place), default=-1)
        last = min((at for at in ends if at > place), default=len(self.tokens))
        own = [cue for cue in self.cues if first < cue.first < last]
        return min(own, key=lambda cue: min(abs(cue.first - place), abs(cue.end - place)), default=None)

    def _added(self, first: int, end: int, cue: Cue | None, found: Found, sign: int) -> Change:
        return self._made(first, end, cue, Fraction(sign), "", found, is_multiple=False)

    def _made(
        self, first: int, end: int, cue: Cue | None, factor: Fraction, words: str, found: Found | None = None,
        *, is_multiple: bool = True,
    ) -> Change:  # fmt: skip
        start, last = self.tokens[first].start, self.tokens[end - 1].end
        return Change(cue.slot if cue else None, is_multiple, factor, found, start, last, words)


def apply_change(slot: Slot, change: Change, earlier: Any, utterance: Utterance) -> Computed:
    """Return what *earlier*, a value of *slot* as it is kept in a call, becomes by *change*."""
    if slot.is_list:
        return _with_items(slot, change, earlier, utterance)
    try:
        before = Fraction(Amount.read(earlier, unit=slot.unit).value)
    except InvalidAmount:
        return Computed(question=f"What is {slot.label}? I cannot work with the earlier {earlier!r}.")
    if change.is_multiple:
        is_step = change.words.startswith(("plus", "minus"))
        after = before * change.factor
        words = f"{_shown(before)} {change.words}" if is_step else f"{change.words} {_shown(before)}"
    else:
        by, told = _step(slot, change, before, utterance)
        if by is None:
            return Computed(question=told)
        after = before + change.factor * by
        words = f"{_shown(before)} {'plus' if change.factor > 0 else 'minus'} {told}"
    value = _exact(after)
    if value is None:
        return Computed(question=f"What is {slot.label}? {words[:1].upper()}{words[1:]} has no end of digits.")
    if slot.kind == "integer" and after.denominator != 1:
        told = f"{words[:1].upper()}{words[1:]} is {value:,f}"
        return Computed(question=f"What is {slot.label} as a whole number? {told}.")
    return Computed(wire_form(Amount(value)), words)


def _step(slot: Slot, change: Change, before: Fraction, utterance: Utterance) -> tuple[Fraction | None, str]:
    """Return by how much *change* goes up or down, and how that is told; or None and a question."""
    found = change.found
    if found is None:
        return abs(change.factor), _shown(abs(change.factor))
    if found.unit == "%" and slot.kind != "percent" and found.value is not None:
        return before * Fraction(found.value) / 100, found.text
    candidate = amount_for(slot, found, utterance)
    if not candidate.is_clear:
        return None, candidate.question
    by = Fraction(Amount.read(candidate.values[0], unit=slot.unit).value)
    return by, _shown(by)


def _with_items(slot: Slot, change: Change, earlier: Any, utterance: Utterance) -> Computed:
    """Return the list *earlier* with the amount of *change* added at its end, or taken out where it stands once."""
    cannot = Computed(question=f"What is {slot.label}? I can only add one to it, or take one out.")
    if change.found is None or change.is_multiple or not isinstance(earlier, Sequence) or isinstance(earlier, str):
        return cannot
    candidate = amount_for(slot, change.found, utterance)
    if not candidate.is_clear:
        return Computed(question=candidate.question)
    item = candidate.values[0]
    if change.factor > 0:
        return Computed([*earlier, item], f"{change.found.text} added")
    wanted = Amount.read(item, unit=slot.unit)
    places = [place for place, one in enumerate(earlier) if Amount.read(one, unit=slot.unit) == wanted]
    if len(places) != 1:
        return cannot
    return Computed([one for at, one in enumerate(earlier) if at != places[0]], f"{change.found.text} taken out")


def _exact(value: Fraction) -> Decimal | None:
    """Return *value* as a decimal with all of its digits, None when they have no end or are too many."""
    rest, places = value.denominator, 0
    for prime in (10, 5, 2):
        while rest % prime == 0:
            rest, places = rest // prime, places + 1
    whole = value.numerator * 10**places // value.denominator if rest == 1 and places <= _MOST_DIGITS else None
    if whole is None or abs(whole) >= 10**_MOST_DIGITS:
        return None
    return Decimal(whole).scaleb(-places, Context(prec=min(_MOST_DIGITS * 2, MAX_PREC)))


def _shown(value: Fraction) -> str:
    exact = _exact(value)
    return f"{exact.normalize():,f}" if exact is not None else str(value)
