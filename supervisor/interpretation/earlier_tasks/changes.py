"""Values that are said by their difference from earlier ones: "double the limit", "10 % more", "one traveller less"."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Item, Scene
from supervisor.interpretation.words import LIGHT, Token, stem, word_set

_TIMES: dict[str, int | Fraction] = {
    "double": 2, "doubled": 2, "doubling": 2, "twice": 2, "triple": 3, "tripled": 3, "tripling": 3, "treble": 3,
    "trebled": 3, "thrice": 3, "quadruple": 4, "quadrupled": 4, "halve": Fraction(1, 2), "halved": Fraction(1, 2),
    "halving": Fraction(1, 2),
}  # fmt: skip
#: How those are said again that are no words for a multiple by themselves.
_TOLD = {
    "doubled": "double", "doubling": "double", "tripled": "triple", "tripling": "triple", "trebled": "treble",
    "halve": "half of", "halved": "half of", "halving": "half of",
}  # fmt: skip
#: Shares that stand before what they are of.
_SHARES = {"half": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4)}
_UP = frozenset(map(stem, word_set("increase raise up bump grow lift boost extend more higher rise go add")))
_DOWN = frozenset(map(stem, word_set("decrease lower reduce cut drop shrink trim less down fewer fall lessen")))
_MORE = word_set("more higher extra additional")
_LESS = word_set("less lower fewer")
_TAKING = frozenset(map(stem, word_set("subtract deduct take remove")))
#: Between a multiple and what it is of.
_OF = word_set("of as much many the my our current previous old earlier amount")
_IT = word_set("that it this")
#: After "more than": what was before, and so nothing else that it is compared with.
_BEFORE = word_set("before previously earlier last that now")
_ENDS = frozenset(",;.!?\n") | word_set("and but then")
#: A sentence without any of these says no value by a difference.
_SIGNS = frozenset(_TIMES) | frozenset(_SHARES) | _MORE | _LESS | word_set("times x by another add off from percent %")
#: Words between "increase" and by how much.
_REACH = 16
#: Changes of one sentence; more is no sentence.
_MOST = 16


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of an earlier value of *field*; None when the words do not say whose ("half of that").

    It is multiplied by *factor*, or *item* is added as often as *factor* says (once, or once taken away); without an
    item *factor* itself is added. `text[start:end]` are the words, *words* says how the value was come by.
    """

    field: FieldShape | None
    is_multiple: bool
    factor: Fraction
    item: Item | None
    start: int
    end: int
    words: str = ""


def changes_in(scene: Scene, cues: tuple[Cue, ...]) -> tuple[Change, ...]:
    """Return what *scene* says by a difference; empty for most sentences, after one look at the words."""
    if _SIGNS.isdisjoint(token.text for token in scene.tokens):
        return ()
    found: list[Change] = []
    for change in _Reader(scene, cues).read():
        if len(found) < _MOST and all(change.end <= one.start or one.end <= change.start for one in found):
            found.append(change)
    return tuple(found)


def without_amounts_of(scene: Scene, changes: tuple[Change, ...]) -> Scene:
    """Return *scene* without the amounts that only say a difference."""
    if not changes:
        return scene
    kept = tuple(
        item
        for item in scene.items
        if not any(change.start < item.found.end and item.found.start < change.end for change in changes)
    )
    return scene.with_items(kept)


class _Reader:
    """Reads the changes of one sentence, token by token."""

    def __init__(self, scene: Scene, cues: tuple[Cue, ...]) -> None:
        self.tokens = scene.tokens
        self.text = scene.text
        self.cues = cues
        self.starting = {cue.first: cue for cue in sorted(cues, key=len)}
        self.items = {scene.index_at(item.found.start): item for item in scene.items}
        self.ends = {first: scene.index_at(item.found.end - 1) + 1 for first, item in self.items.items()}
        inside = {place for first, end in self.ends.items() for place in range(first, end)}
        self.clause: list[int] = []
        number = 0
        for place, token in enumerate(self.tokens):
            number += token.text in _ENDS and place not in inside
            self.clause.append(number)

    def read(self) -> Iterator[Change]:
        for place, token in enumerate(self.tokens):
            if token.text in _TIMES:
                yield from self._multiple(
                    place, place + 1, Fraction(_TIMES[token.text]), _TOLD.get(token.text, token.text)
                )
            elif (item := self.items.get(place)) is not None:
                yield from self._with_amount(place, self.ends[place], item)
            elif token.text in _SHARES:
                yield from self._share(place, place + 1, _SHARES[token.text], token.text)
            elif token.text in {"one", "another"}:
                yield from self._one_more(place)

    # -- times ----------------------------------------------------------------------------------------------------

    def _multiple(self, first: int, after: int, factor: Fraction, words: str) -> Iterator[Change]:
        place, is_as_much = after, False
        while self._said(place) in _OF and place not in self.starting:
            is_as_much = is_as_much or self._said(place) in {"much", "many"}
            place += 1
        if self._said(place) in _IT and place + 1 in self.starting:
            place += 1
        cue = self.starting.get(place)
        # "half the limit is spent" tells what is spent, not what the limit is to be.
        if cue is not None and self._said(cue.end) not in {"is", "was", "are", "were"}:
            yield self._change(first, cue.end, cue.field, factor, words, is_multiple=True)
        elif cue is None and self._said(place) in _IT and self._is_end(place + 1):
            yield self._change(first, place + 1, None, factor, words, is_multiple=True)
        elif cue is None and (is_as_much or self._said(first).endswith("ed")):
            near = self._near(first)
            yield self._change(first, place, near.field if near else None, factor, words, is_multiple=True)

    def _share(self, first: int, end: int, share: Fraction, words: str) -> Iterator[Change]:
        """Yield what "a third of the limit", and "reduce the limit by a third", say."""
        if self._said(first - 1) in {"a", "one"}:
            first, words = first - 1, f"a {words}"
        if self._said(first - 1) == "by" and (sign := self._direction(first)):
            near, told = self._near(first), f"{'plus' if sign > 0 else 'minus'} {words}"
            yield self._change(first, end, near.field if near else None, 1 + sign * share, told, is_multiple=True)
        else:
            yield from self._multiple(first, end, share, f"{words} of")

    # -- more and less --------------------------------------------------------------------------------------------

    def _with_amount(self, first: int, end: int, item: Item) -> Iterator[Change]:
        said, after = item.found.text.lower(), self._said(end)
        value = item.found.value
        share = next((share for word, share in _SHARES.items() if said in (word, f"a {word}", f"one {word}")), None)
        if share is not None:
            yield from self._share(first, end, share, said)
        elif after in {"times", "x"} and value is not None:
            yield from self._multiple(first, end + 1, Fraction(value), f"{said} times")
        elif after in _MORE | _LESS:
            if self._is_compared(end + 1):
                near = self._near(first)
                yield self._added(first, end + 1, near, item, -1 if after in _LESS else 1)
        elif self._said(first - 1) in {"extra", "additional", "another"}:
            yield self._added(first - 1, end, self._near(first), item, 1)
        elif (cue := self.starting.get(end)) is not None and self._said(cue.end) in _MORE | _LESS:
            yield self._added(first, cue.end + 1, cue, item, -1 if self._said(cue.end) in _LESS else 1)
        elif sign := self._direction_of(first, item):
            near = self._near(first)
            yield self._added(first, end, near, item, sign)
        elif sign := self._put(first):
            cue = self._after_to(end, {"to"} if sign > 0 else {"from", "off"})
            if cue is not None:
                yield self._added(first, cue.end, cue, item, sign)

    def _is_compared(self, place: int) -> bool:
        """True unless what follows "more" makes it something else: "more or less", "more than 10", "one more time"."""
        if self._said(place) == "than":
            return self._said(place + 1) in _BEFORE
        return self._said(place) not in {"or", "time", "times"}

    def _direction_of(self, first: int, item: Item) -> int:
        """Return 1 or -1 for the amount of "increase ... by 5k" and "lower ... 10 %", 0 for any other."""
        before = self._said(first - 1)
        is_step = before == "by" or (item.found.unit == "%" and before not in {"to", "of", "at"})
        return self._direction(first) if is_step else 0

    def _direction(self, first: int) -> int:
        """Return 1 or -1 where the clause before *first* says that something goes up or down, else 0."""
        for place in range(first - 1, max(first - _REACH, -1), -1):
            if self.clause[place] != self.clause[first]:
                return 0
            if self.tokens[place].stem in _UP:
                return 1
            if self.tokens[place].stem in _DOWN:
                return -1
        return 0

    def _put(self, first: int) -> int:
        """Return 1 for the amount of "add 500 to", -1 for that of "take 500 off", 0 for any other."""
        before = self.tokens[first - 1].stem if first else ""
        return 1 if before == stem("add") else -1 if before in _TAKING else 0

    def _after_to(self, place: int, words: set[str]) -> Cue | None:
        if self._said(place) not in words:
            return None
        place += 1
        while self._said(place) in LIGHT and place not in self.starting:
            place += 1
        return self.starting.get(place)

    def _one_more(self, place: int) -> Iterator[Change]:
        """Yield what "one more traveller", "one traveller less", "one less" and "another traveller" say."""
        is_another = self.tokens[place].text == "another"
        after = place + (1 if is_another else 2)
        cue = self.starting.get(place + 1)
        if not is_another and cue is not None and (word := self._said(cue.end)) in _MORE | _LESS:
            yield self._by_one(place, cue.end + 1, cue, is_less=word in _LESS)
            return
        word, cue = self._said(after - 1), self.starting.get(after)
        if word not in _MORE | _LESS | {"another"} or not self._is_compared(after):
            return
        # "Another budget" is no budget of one more: only what is counted is raised so.
        if cue is not None and not (is_another and cue.field.kind != "integer"):
            yield self._by_one(place, cue.end, cue, is_less=word in _LESS)
        elif cue is None and not is_another and self._is_end(after):
            yield self._by_one(place, after, self._near(place), is_less=word in _LESS)

    def _by_one(self, first: int, end: int, cue: Cue | None, *, is_less: bool) -> Change:
        return self._change(first, end, cue.field if cue else None, Fraction(-1 if is_less else 1), "")

    # -- places ---------------------------------------------------------------------------------------------------

    def _said(self, place: int) -> str:
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def _is_end(self, place: int) -> bool:
        return place >= len(self.tokens) or not self.tokens[place].is_word or self._said(place) in _ENDS | {"please"}

    def _near(self, place: int) -> Cue | None:
        """Return the nearest cue of the clause that *place* stands in."""
        own = [cue for cue in self.cues if self.clause[cue.first] == self.clause[place]]
        return min(own, key=lambda cue: min(abs(cue.first - place), abs(cue.end - place)), default=None)

    def _added(self, first: int, end: int, cue: Cue | None, item: Item, sign: int) -> Change:
        field = cue.field if cue is not None else None
        return self._change(first, end, field, Fraction(sign), "", item=item)

    def _change(
        self,
        first: int,
        end: int,
        field: FieldShape | None,
        factor: Fraction,
        words: str,
        *,
        is_multiple: bool = False,
        item: Item | None = None,
    ) -> Change:
        last: Token = self.tokens[end - 1]
        return Change(field, is_multiple, factor, item, self.tokens[first].start, last.end, words)
