"""Cues: the words that announce a slot, their distance from a value, and the ones that a card's examples teach."""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tasklore.contracts.messages import TaskCard
from tasklore.supervisor.understanding.proper_names import names_in
from tasklore.supervisor.understanding.schema import Phrase, Side, Slot, TaskSchema
from tasklore.supervisor.understanding.utterance import LIGHT, ReadUtterance, Token

#: Steps that a mark between a cue and a value counts; a full stop separates more than a comma.
_MARKS = {
    ",": 2.0, ";": 3.0, ".": 4.0, "!": 4.0, "?": 4.0, "\n": 2.0, ":": 0.2, "=": 0.0, '"': 0.0, "'": 0.0, "-": 0.3,
    "\u2013": 0.3, "\u2014": 0.3, "(": 0.3, ")": 0.6, "[": 0.1, "]": 0.1, "{": 0.1, "}": 0.6, "$": 0.0, "_": 0.0,
}  # fmt: skip
_LIGHT_STEP = 0.15
_WORD_STEP = 1.0
#: Another cue in between most likely owns the value.
_CUE_STEP = 2.5
#: A value in between certainly does.
_VALUE_STEP = 8.0
#: "limit 50000" is a little likelier than "50000 limit" where both could be.
_AFTER_STEP = 0.05
#: In "50000 limit 42000" the cue may as well lead the second value.
_LEADING_STEP = 1.0
FAR = 4.0
#: A value on the side where a cue has none.
NEVER = 100.0
#: Examples that are learned from.
_MOST_EXAMPLES = 50
#: A frame says less than a cue that the author declared.
_LEARNED = 0.5
#: Small words that lead a value by themselves.
_LEADING = frozenset(
    {"to", "from", "at", "in", "for", "with", "by", "about", "into", "of", "on", "as"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
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
        """Return the cues among *tokens*; a longer phrase hides the shorter ones inside it."""
        found = []
        for first, token in enumerate(tokens):
            for phrase, slot in self._phrases.get(token.stem, ()):
                end = _end_of(phrase.stems, tokens, first)
                if end:
                    found.append(
                        Cue(
                            slot=slot,
                            first=first,
                            end=end,
                            penalty=phrase.penalty,
                            side=phrase.side,
                        )
                    )
        longest: dict[int, int] = {}
        for cue in found:
            for place in range(cue.first, cue.end):
                longest[place] = max(longest.get(place, 0), cue.end - cue.first)
        return tuple(
            cue
            for cue in found
            if min(longest[place] for place in range(cue.first, cue.end))
            <= cue.end - cue.first
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

    def __init__(
        self,
        utterance: ReadUtterance,
        cues: Sequence[Cue],
        values: Iterable[tuple[int, int]],
    ) -> None:
        self._tokens = utterance.tokens
        steps = [
            _MARKS.get(token.text, 0.5)
            if not token.is_word
            else _LIGHT_STEP
            if token.text in LIGHT
            else _WORD_STEP
            for token in self._tokens
        ]
        for cue in cues:
            steps[cue.first] = _CUE_STEP
        self._utterance = utterance
        self._starts = set()
        self._ends = set()
        for start, end in values:
            first, last = self._places(start, end)
            steps[first:last] = [_VALUE_STEP] + [0.0] * (last - first - 1)
            self._starts.add(first)
            self._ends.add(last)
        self._until = [0.0, *accumulate(steps)]

    def _places(self, start: int, end: int) -> tuple[int, int]:
        first = self._utterance.index_at(start)
        return first, max(self._utterance.index_at(end - 1) + 1, first + 1)

    def between(self, cue: Cue, start: int, end: int) -> float:
        """Return the steps from *cue* to the value at *start* to *end*, 0 when they touch or the cue is part of it."""
        first, last = self._places(start, end)
        if cue.end <= first:
            if cue.first in self._ends and self._tokens[cue.end].text == "of":
                return NEVER  # the 15 of "3 sets of 15" are no sets
            if cue.side == "left":
                return NEVER
            return self._until[first] - self._until[cue.end] + cue.penalty
        if cue.first >= last:
            if cue.side == "right":
                return NEVER
            after = _LEADING_STEP if cue.end in self._starts else _AFTER_STEP
            return self._until[cue.first] - self._until[last] + cue.penalty + after
        return cue.penalty


def learn_phrases(
    card: TaskCard, schema: TaskSchema, known: frozenset[str]
) -> list[tuple[Phrase, Slot]]:
    """Return the phrases after which the examples of *card* have the texts of its slots."""
    texts = [slot for slot in schema.slots if slot.kind == "text" and not slot.is_list]
    declared = {phrase.stems for slot in schema.slots for phrase in slot.phrases}
    found: dict[tuple[str, ...], dict[str, Slot]] = defaultdict(dict)
    examples = [ReadUtterance(example) for example in card.examples[:_MOST_EXAMPLES]]
    for example in examples:
        for slot in texts:
            for start in _starts(example, slot, known, is_only=len(texts) == 1):
                if not _begins_earlier(example, slot, start) and (
                    frame := _before(example, start)
                ):
                    found[frame][slot.name] = slot
    return [
        (Phrase(frame, _LEARNED, "right"), next(iter(slots.values())))
        for frame, slots in found.items()
        if len(slots) == 1 and frame not in declared
    ]


def _starts(
    example: ReadUtterance, slot: Slot, known: frozenset[str], *, is_only: bool
) -> Iterator[int]:
    for value in slot.examples:
        pattern = (
            rf"(?<!\w){re.escape(value)}(?!\w)"
            if isinstance(value, str) and value
            else ""
        )
        if pattern and (match := re.search(pattern, example.text, re.IGNORECASE)):
            yield match.start()
    if is_only and not slot.examples:
        spans = example.quotations or names_in(example, known)
        if len(spans) == 1:
            yield spans[0][0]


def _begins_earlier(example: ReadUtterance, slot: Slot, start: int) -> bool:
    """Return whether the text of *slot* begins before the name at *start*: behind its own "to" in "to call Ann"."""
    place = example.index_at(start)
    cues = {phrase.stems[-1] for phrase in slot.phrases}
    between = itertools.takewhile(
        lambda one: one.stem not in cues, reversed(example.tokens[:place])
    )
    words = [one for one in between if one.is_word]
    return len(words) < sum(one.is_word for one in example.tokens[:place]) and any(
        one.text not in LIGHT for one in words
    )


def _before(example: ReadUtterance, start: int) -> tuple[str, ...]:
    place = example.index_at(start)
    while place and not example.tokens[place - 1].is_word:
        place -= 1
    before = [
        token for token in example.tokens[max(place - 2, 0) : place] if token.is_word
    ]
    if not before:
        return ()
    last = before[-1]
    is_enough = last.text in _LEADING or last.text not in LIGHT
    return (
        (last.stem,)
        if is_enough
        else tuple(token.stem for token in before)
        if len(before) == 2
        else ()
    )
