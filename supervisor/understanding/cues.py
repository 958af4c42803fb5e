"""Where an utterance speaks of a slot, and how far that is from a value."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from supervisor.understanding.schema import Phrase, Side, Slot
from supervisor.understanding.utterance import LIGHT, Token, Utterance

#: Steps that a mark between a cue and a value counts; a full stop separates more than a comma.
_MARKS = {
    ",": 2.0, ";": 3.0, ".": 4.0, "!": 4.0, "?": 4.0, "\n": 2.0, ":": 0.2, "=": 0.0, '"': 0.0, "'": 0.0, "-": 0.3,
    "\u2013": 0.3, "\u2014": 0.3, "(": 0.3, ")": 0.6, "[": 0.1, "]": 0.1, "{": 0.1, "}": 0.6, "$": 0.0, "_": 0.0,
}  # fmt: skip
_CLAUSE = frozenset({"and", "but", "with", "while", "plus", "also", "then", "after", "before", "or", "without"})
_LIGHT_STEP, _CLAUSE_STEP, _WORD_STEP = 0.15, 1.5, 1.0
#: Another cue in between most likely owns the value; two side by side are one name ("past spending").
_CUE_STEP, _COMPOUND_STEP = 2.5, 1.0
#: A value in between certainly does.
_VALUE_STEP = 8.0
#: "limit 50000" is a little likelier than "50000 limit" where both could be.
_AFTER_STEP = 0.05
#: In "50000 limit 42000" the cue may as well lead the second value.
_LEADING_STEP, _RIGHT_ON = 1.0, 0.5
#: Before a value they say where or when: "ten people in 4 days" has no people that number 4.
_APART = frozenset({"in", "at", "on", "by", "from"})
FAR = 4.0
#: A value on the side where a cue has none.
NEVER = 100.0


@dataclass(frozen=True, slots=True)
class Cue:
    """Tokens *first* up to, not including, *end* speak of *slot*, whose value stands on *side* of them."""

    slot: Slot
    first: int
    end: int
    penalty: float
    side: Side = "either"


class CueIndex:
    """The phrases of one task's slots by their first stem; built once a card."""

    def __init__(self, phrases: Iterable[tuple[Phrase, Slot]]) -> None:
        self._phrases: dict[str, list[tuple[Phrase, Slot]]] = {}
        for phrase, slot in phrases:
            self._phrases.setdefault(phrase.stems[0], []).append((phrase, slot))

    def find(self, tokens: Sequence[Token]) -> tuple[Cue, ...]:
        """Return where *tokens* speak of a slot; a longer phrase hides the shorter ones inside it."""
        found = []
        for first, token in enumerate(tokens):
            for phrase, slot in self._phrases.get(token.stem, ()):
                end = _end_of(phrase.stems, tokens, first)
                if end:
                    found.append(Cue(slot, first, end, phrase.penalty, phrase.side))
        longest: dict[int, int] = {}
        for cue in found:
            for place in range(cue.first, cue.end):
                longest[place] = max(longest.get(place, 0), cue.end - cue.first)
        return tuple(
            cue for cue in found if min(longest[place] for place in range(cue.first, cue.end)) <= cue.end - cue.first
        )


def _end_of(stems: tuple[str, ...], tokens: Sequence[Token], first: int) -> int:
    place = first
    for expected in stems:
        while place < len(tokens) and tokens[place].text in {"-", "_"}:
            place += 1
        if place >= len(tokens) or tokens[place].stem != expected:
            return 0
        place += 1
    return place


class Distances:
    """Steps between the cues and the values of one utterance; *values* are the characters that those stand at."""

    def __init__(self, utterance: Utterance, cues: Sequence[Cue], values: Iterable[tuple[int, int]]) -> None:
        self._tokens = utterance.tokens
        steps = [_step(token) for token in self._tokens]
        ends = {cue.end for cue in cues}
        for cue in cues:
            steps[cue.first] = max(steps[cue.first], _COMPOUND_STEP if cue.first in ends else _CUE_STEP)
        self._utterance = utterance
        self._starts, self._ends = set(), set()
        for start, end in values:
            first, last = self._places(start, end)
            steps[first:last] = [_VALUE_STEP] + [0.0] * (last - first - 1)
            self._starts.add(first)
            self._ends.add(last)
        self._until = [0.0, *accumulate(steps)]
        self._ordered = sorted(self._starts)

    def _places(self, start: int, end: int) -> tuple[int, int]:
        first = self._utterance.index_at(start)
        return first, max(self._utterance.index_at(end - 1) + 1, first + 1)

    def between(self, cue: Cue, start: int, end: int) -> float:
        """Return the steps from *cue* to the value at *start* to *end*, 0 when they touch or the cue is part of it."""
        first, last = self._places(start, end)
        if cue.end <= first:
            if cue.first in self._ends and self._tokens[cue.end].text == "of":
                return NEVER  # the 15 of "3 sets of 15" are no sets
            if cue.side == "left" or self._is_apart(cue, cue.end, first):
                return NEVER
            return self._until[first] - self._until[cue.end] + cue.penalty
        if cue.first >= last:
            if cue.side == "right" or self._is_apart(cue, last, cue.first):
                return NEVER
            return self._until[cue.first] - self._until[last] + cue.penalty + self._after_step(cue)
        return cue.penalty

    def _is_apart(self, cue: Cue, first: int, last: int) -> bool:
        """Return whether *cue* is a mere "for {}" with a word or a mark between it and its value."""
        is_light = all(token.text in LIGHT for token in self._tokens[cue.first : cue.end])
        return is_light and self._until[last] - self._until[first] >= _WORD_STEP

    def _after_step(self, cue: Cue) -> float:
        """Return what speaks against *cue* following its value: little, unless another value follows right on it."""
        if cue.side == "left":
            return _AFTER_STEP
        place = bisect_left(self._ordered, cue.end)
        following = self._ordered[place] if place < len(self._ordered) else None
        if following is None or self._until[following] - self._until[cue.end] > _RIGHT_ON:
            return _AFTER_STEP
        is_apart = any(token.text in _APART for token in self._tokens[cue.end : following])
        return _AFTER_STEP if is_apart else _LEADING_STEP


def _step(token: Token) -> float:
    if not token.is_word:
        return _MARKS.get(token.text, 0.5)
    if token.text in _CLAUSE:
        return _CLAUSE_STEP
    return _LIGHT_STEP if token.text in LIGHT else _WORD_STEP
