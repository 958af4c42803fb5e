"""Where a sentence speaks of a field, and how far that is from an amount."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from supervisor.interpretation.values.fields import FieldShape, Phrase, Side, TaskShape
from supervisor.interpretation.values.scene import Item, Scene
from supervisor.interpretation.words import LIGHT, Token

#: Steps a mark or word between a cue and an amount counts; a full stop separates more than a comma.
_MARKS = {
    ",": 2.0, ";": 3.0, ".": 4.0, "!": 4.0, "?": 4.0, "\n": 2.0, ":": 0.2, "=": 0.0, '"': 0.0, "'": 0.0, "-": 0.3,
    "\u2013": 0.3, "\u2014": 0.3, "(": 0.3, ")": 0.6, "[": 0.1, "]": 0.1, "{": 0.1, "}": 0.6, "$": 0.0, "_": 0.0,
}  # fmt: skip
_CLAUSE = frozenset(
    {"and", "but", "with", "while", "plus", "also", "then", "after", "before", "or", "against", "without"}
)
_LIGHT_STEP, _CLAUSE_STEP, _WORD_STEP = 0.15, 1.5, 1.0
#: Another cue in between most likely owns the amount.
_CUE_STEP = 2.5
#: Two cues side by side are one name ("past spending").
_COMPOUND_STEP = 1.0
#: An amount in between certainly does.
_AMOUNT_STEP = 8.0
#: "limit 50000" is a little likelier than "50000 limit" where both could be.
_AFTER_STEP = 0.05
#: A cue of this word alone says little: it joins other cues to their values.
_OF = "of"
#: Words of a cue that another one may begin before ("best rating" before "rating of").
_SHORT = 2
#: An amount on the side where a cue has none.
_WRONG_SIDE = 100.0
#: In "50000 limit 42000" the cue may as well lead the second amount.
_LEADING_STEP, _RIGHT_ON = 1.0, 0.5
_OWNING = frozenset({"my", "the", "our", "your", "his", "her", "their", "its", "this", "that"})
#: Before an amount they say where or when: "ten people in 4 days" has no people that number 4.
_APART = frozenset({"in", "at", "on", "by", "from"})


@dataclass(frozen=True, slots=True)
class Cue:
    """Tokens *first* up to, not including, *end* speak of *field*, whose value stands on *side* of them."""

    field: FieldShape
    first: int
    end: int
    penalty: float
    side: Side = "either"

    def __len__(self) -> int:
        return self.end - self.first


class CueIndex:
    """The phrases of one task's fields by their first stem; built once a card."""

    def __init__(self, shape: TaskShape) -> None:
        self._phrases: dict[str, list[tuple[Phrase, FieldShape]]] = {}
        #: The latest words and what was found in them: a sentence is asked about a dozen times on its way.
        self._latest: tuple[tuple[Token, ...], tuple[Cue, ...]] = (), ()
        for field in shape.fields:
            for phrase in field.phrases:
                self._phrases.setdefault(phrase.stems[0], []).append((phrase, field))

    def find(self, tokens: tuple[Token, ...]) -> tuple[Cue, ...]:
        """Return where *tokens* speak of a field; a longer phrase hides the shorter ones inside it."""
        words, cues = self._latest
        if words is not tokens:
            cues = self._found(tokens)
            self._latest = tokens, cues
        return cues

    def _found(self, tokens: tuple[Token, ...]) -> tuple[Cue, ...]:
        found = []
        for first, token in enumerate(tokens):
            for phrase, field in self._phrases.get(token.stem, ()):
                end = _end_of(phrase.stems, tokens, first)
                if end:
                    found.append(Cue(field, first, end, phrase.penalty, phrase.side))
        found = _without_shared(found, tokens)
        longest: dict[int, int] = {}
        for cue in found:
            for place in range(cue.first, cue.end):
                longest[place] = max(longest.get(place, 0), cue.end - cue.first)
        return tuple(cue for cue in found if min(longest[place] for place in range(cue.first, cue.end)) <= len(cue))


def _without_shared(found: list[Cue], tokens: tuple[Token, ...]) -> list[Cue]:
    """Return *found* without what only goes on another field's cue: the "of" of "rating value of 3".

    In "best rating of 6" the words that begin first are the name, and "rating of" is none.
    """
    # The "points" of "4 points of 6" has its value before it, and the "of" is another's.
    ends = {cue.end: cue.field for cue in found if tokens[cue.end - 1].text != _OF and cue.side != "left"}
    begun: dict[int, set[str]] = {}
    for cue in found:
        if len(cue) > 1:
            begun.setdefault(cue.end, set()).add(cue.field.name)
    kept = []
    for cue in found:
        is_of = len(cue) == 1 and tokens[cue.first].text == _OF
        if is_of and ends.get(cue.first, cue.field) is not cue.field:
            continue
        if len(cue) == _SHORT and begun.get(cue.first + 1, set()) - {cue.field.name}:
            continue
        kept.append(cue)
    return kept


def _end_of(stems: tuple[str, ...], tokens: tuple[Token, ...], first: int) -> int:
    place = first
    for expected in stems:
        while place < len(tokens) and tokens[place].text in {"-", "_"}:
            place += 1
        if place >= len(tokens) or tokens[place].stem != expected:
            return 0
        place += 1
    return place


class Distances:
    """Steps between the cues and the amounts of one sentence."""

    def __init__(self, scene: Scene, cues: tuple[Cue, ...]) -> None:
        steps = [_step(token) for token in scene.tokens]
        ends = {cue.end for cue in cues}
        for cue in cues:
            steps[cue.first] = max(steps[cue.first], _COMPOUND_STEP if cue.first in ends else _CUE_STEP)
        self._places: dict[int, tuple[int, int]] = {}
        for item in scene.items:
            first, end = scene.index_at(item.start), scene.index_at(item.end - 1) + 1
            self._places[item.start] = (first, end)
            for place in range(first, end):
                steps[place] = 0.0
            steps[first] = _AMOUNT_STEP
        self._until = [0.0, *accumulate(steps)]
        #: "80 % of my 50k is spent": for what follows, the part reaches to the end of its whole.
        self._reaches = {
            item.start: scene.index_at(item.base.end - 1) + 1
            for item in scene.items
            if item.base is not None and item.base.start > item.start
        }
        self._starts = sorted(first for first, _ in self._places.values())
        self._tokens = scene.tokens
        self._token_starts = [token.start for token in scene.tokens] if self._reaches else []

    def between(self, cue: Cue, item: Item) -> float:
        """Return the steps from *cue* to *item*, 0 when they touch or the cue is a word of the amount ("3 days")."""
        return self.to_stretch(cue, item, item)

    def to_stretch(self, cue: Cue, first: Item, last: Item) -> float:
        """Return the steps from *cue* to the nearer end of the list from *first* to *last*."""
        start, end = self._places[first.start][0], self._places[last.start][1]
        reach = self._reaches.get(last.start, end)
        if cue.first == reach and self._is_named_whole(last):
            return _WRONG_SIDE
        end = reach if cue.first >= reach else end
        if self._is_too_far(cue, start, end):
            return _WRONG_SIDE
        if cue.side == ("left" if cue.end <= start else "right"):
            return _WRONG_SIDE
        if cue.end <= start:
            return self._until[start] - self._until[cue.end] + cue.penalty
        if cue.first >= end:
            return self._until[cue.first] - self._until[end] + cue.penalty + self._after_step(cue)
        return cue.penalty

    def _is_named_whole(self, part: Item) -> bool:
        """True for "80 % of my 50k", whose next word says what the 50k are."""
        if part.base is None:
            return False
        place = bisect_left(self._token_starts, part.base.start)
        return self._tokens[place - 1].text in _OWNING

    def _is_too_far(self, cue: Cue, start: int, end: int) -> bool:
        """True for a mere "of {}" with a word before its amount, as in "volume 2 of the saga, four stars"."""
        if cue.side == "either" or len(cue) > 1 or self._tokens[cue.first].text not in LIGHT:
            return False
        first, last = (cue.end, start) if cue.end <= start else (end, cue.first)
        return self._until[last] - self._until[first] >= _WORD_STEP

    def quantifies(self, cue: Cue, item: Item) -> bool:
        """True for the "one" of "one table for 2", which says how many tables there are."""
        return cue.side == "right" and cue.first == self._places[item.start][1]

    def _after_step(self, cue: Cue) -> float:
        """Return what speaks against *cue* following its amount: little, unless another amount follows right on it."""
        if cue.side == "left":
            return _AFTER_STEP
        following = bisect_left(self._starts, cue.end)
        is_leading = (
            following < len(self._starts)
            and self._until[self._starts[following]] - self._until[cue.end] <= _RIGHT_ON
            and not any(token.text in _APART for token in self._tokens[cue.end : self._starts[following]])
        )
        return _LEADING_STEP if is_leading else _AFTER_STEP


def _step(token: Token) -> float:
    if not token.is_word:
        return _MARKS.get(token.text, 0.5)
    if token.text in _CLAUSE:
        return _CLAUSE_STEP
    return _LIGHT_STEP if token.text in LIGHT else _WORD_STEP
