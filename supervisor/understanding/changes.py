"""Values said by their difference from earlier ones ("double the limit", "raise it by 10 %"), worked out exactly."""

from collections.abc import Sequence
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
    "double": 2, "doubled": 2, "twice": 2, "triple": 3, "tripled": 3, "quadruple": 4, "halve": Fraction(1, 2),
    "halved": Fraction(1, 2), "half": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4),
}  # fmt: skip
_WORDED = {"doubled": "double", "tripled": "triple", "halve": "half of", "halved": "half of"}
_SHARES = frozenset({"half", "third", "quarter"})
_UP = frozenset(map(stem, word_set("increase raise up bump grow lift boost extend more higher rise go add plus")))
_DOWN = frozenset(map(stem, word_set("decrease lower reduce cut drop shrink trim less down fewer minus")))
_MORE, _LESS = word_set("more higher extra additional longer later"), word_set("less lower fewer shorter")
_ADDING, _TAKING = frozenset({stem("add")}), frozenset(map(stem, word_set("subtract deduct take remove")))
#: Between a multiple and what it is of.
_OF = word_set("of as much many the my our current previous old earlier amount a")
_ENDS = frozenset(",;.!?\n") | word_set("and but then")
#: Words between "increase" and by how much.
_REACH = 12
#: Changes of one utterance; more is no sentence.
_MOST_CHANGES = 16
#: Digits of a number that is worked out.
_MOST_DIGITS = 60


class Change(NamedTuple):
    """What becomes of an earlier value of *slot*, None when the words do not say whose ("half of that").

    It is multiplied by *factor*, and *found* is added to it when *sign* is 1, or taken off when that is -1. *words* say
    so, with `{}` for the earlier value and what is added.
    """

    slot: Slot | None
    factor: Fraction
    sign: int
    found: Found | None
    start: int
    end: int
    words: str


class Computed(NamedTuple):
    """A *value* ready for JSON and *words* that say what it was made of; or the *question* to ask instead."""

    value: Any = None
    words: str = ""
    question: str = ""


def changes_in(utterance: Utterance, cues: Sequence[Cue]) -> list[Change]:
    """Return what *utterance* says by a difference, in order."""
    reader, found = _Reader(utterance, cues), list[Change]()
    for place in range(len(utterance.tokens)):
        change = reader.change_at(place)
        if change is not None and all(change.end <= one.start or one.end <= change.start for one in found):
            found.append(change)
    return found[:_MOST_CHANGES]


class _Reader:
    def __init__(self, utterance: Utterance, cues: Sequence[Cue]) -> None:
        self.tokens, self.cues = utterance.tokens, cues
        self.starting = {cue.first: cue for cue in sorted(cues, key=lambda cue: cue.end - cue.first)}
        self.amounts = {utterance.index_at(one.start): one for one in utterance.amounts}
        self.ends = {first: utterance.index_at(one.end - 1) + 1 for first, one in self.amounts.items()}

    def change_at(self, place: int) -> Change | None:
        """Return the change whose multiple, share or amount begins at *place*."""
        said, amount = self.said(place), self.amounts.get(place)
        if said in _SHARES and self.said(place - 1) in {"by", "a", "one"} and (sign := self.direction(place)):
            words = f"{{}} {'plus' if sign > 0 else 'minus'} a {said}"
            return self.made(place, place + 1, self.near(place), words, 1 + sign * Fraction(_TIMES[said]))
        if said in _TIMES and (said in _SHARES or amount is None):
            worded = f"{said} of" if said in _SHARES else _WORDED.get(said, said)
            worded = f"a {worded}" if said in _SHARES - {"half"} else worded
            return self.multiple(place, place + 1, Fraction(_TIMES[said]), worded)
        if amount is None or amount.value is None or not _SHARES.isdisjoint(amount.text.lower().split()):
            return None
        end = self.ends[place]
        if self.said(end) in {"times", "x"}:
            return self.multiple(place, end + 1, Fraction(amount.value), f"{amount.text.lower()} times")
        return self.added(place, end, amount)

    def multiple(self, first: int, place: int, factor: Fraction, words: str) -> Change | None:
        after = place
        while self.said(place) in _OF and place not in self.starting:
            place += 1
        cue, words = self.starting.get(place), f"{words} {{}}"
        if cue is not None and self.said(cue.end) not in {"is", "was", "are", "were"}:
            return self.made(first, cue.end, cue, words, factor)
        if self.said(place) in {"that", "it", "this"} and not self.said(place + 1).isalnum():
            return self.made(first, place + 1, None, words, factor)
        if cue is None and (self.said(first).endswith("ed") or place > after + 1):
            return self.made(first, place, self.near(first), words, factor)
        return None

    def added(self, first: int, end: int, found: Found) -> Change | None:
        """Return what adds *found*, at tokens *first* to *end*: "two more nights", "by 5k", "add 100 to the limit"."""
        before, after, cue = self.said(first - 1), self.said(end), self.starting.get(end)
        sign, last = 0, end
        if after in _MORE | _LESS and self.said(end + 1) not in {"or", "time", "times", "than"}:
            cue, last = self.starting.get(end + 1), end + 1
            sign, last = -1 if after in _LESS else 1, cue.end if cue is not None else last
        elif cue is not None and self.said(cue.end) in _MORE | _LESS:
            sign, last = -1 if self.said(cue.end) in _LESS else 1, cue.end + 1
        elif before == "by" or (found.unit == "%" and before not in {"to", "of", "at", "with"}):
            sign = self.direction(first)
        elif first and after in {"to", "from", "off"} and self.tokens[first - 1].stem in _ADDING | _TAKING:
            place = end + 1
            while self.said(place) in LIGHT and place not in self.starting:
                place += 1
            if (cue := self.starting.get(place)) is not None:
                sign, last = 1 if self.tokens[first - 1].stem in _ADDING else -1, cue.end
        words = f"{{}} {'plus' if sign > 0 else 'minus'} {{}}"
        return self.made(first, last, cue or self.near(first), words, Fraction(1), sign, found) if sign else None

    def direction(self, first: int) -> int:
        """Return 1 or -1 where the words before *first* say that something goes up or down, else 0."""
        for place in range(first - 1, max(first - _REACH, -1), -1):
            if self.said(place) in _ENDS:
                return 0
            if self.tokens[place].stem in _UP | _DOWN:
                return 1 if self.tokens[place].stem in _UP else -1
        return 0

    def said(self, place: int) -> str:
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def near(self, place: int) -> Cue | None:
        """Return the nearest cue of the clause that *place* stands in."""
        ends = [at for at, token in enumerate(self.tokens) if token.text in _ENDS and at not in self.starting]
        first = max((at for at in ends if at < place), default=-1)
        last = min((at for at in ends if at > place), default=len(self.tokens))
        own = [cue for cue in self.cues if first < cue.first < last]
        return min(own, key=lambda cue: min(abs(cue.first - place), abs(cue.end - place)), default=None)

    def made(
        self, first: int, end: int, cue: Cue | None, words: str, factor: Fraction, sign: int = 0,
        found: Found | None = None,
    ) -> Change:  # fmt: skip
        start, last = self.tokens[first].start, self.tokens[end - 1].end
        return Change(cue.slot if cue else None, factor, sign, found, start, last, words)


def apply_change(slot: Slot, change: Change, earlier: Any, utterance: Utterance) -> Computed:
    """Return what *earlier*, a value of *slot* as it is kept in a call, becomes by *change*; a list is asked for."""
    try:
        before = Fraction(Amount.read(earlier, unit=slot.unit).value)
    except InvalidAmount:
        return Computed(question=f"What is {slot.label}? I cannot work with the earlier {earlier!r}.")
    by, worded = Fraction(0), ""
    if (found := change.found) is not None:
        if found.unit == "%" and slot.kind != "percent" and found.value is not None:
            by, worded = before * Fraction(found.value) / 100, found.text
        elif (candidate := amount_for(slot, found, utterance)).is_clear:
            by = Fraction(Amount.read(candidate.values[0], unit=slot.unit).value)
            worded = _shown(by)
        else:
            return Computed(question=candidate.question)
    after = before * change.factor + change.sign * by
    words = change.words.format(_shown(before), worded)
    value, begun = _exact(after), words[:1].upper() + words[1:]
    if value is None:
        return Computed(question=f"What is {slot.label}? {begun} has no end of digits.")
    if slot.kind == "integer" and after.denominator != 1:
        return Computed(question=f"What is {slot.label} as a whole number? {begun} is {value:,f}.")
    return Computed(wire_form(Amount(value)), words)


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
