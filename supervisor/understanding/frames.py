"""What a card's example sentences teach about where its texts stand: "translate {}", "to {}"."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile

from contracts.messages import TaskCard
from supervisor.understanding.schema import Phrase, Slot, TaskSchema
from supervisor.understanding.texts import names_in
from supervisor.understanding.utterance import LIGHT, Utterance

_MOST_EXAMPLES = 50
#: A frame says less than a cue that the author declared.
_LEARNED = 0.5
#: Small words that lead a value by themselves.
_LEADING = frozenset({"to", "from", "at", "in", "for", "with", "by", "about", "into", "of", "on", "as"})
#: Words of a beginning that all examples share, of which the last ones lead the text.
_LONGEST_FRAME = 3


def learned_phrases(card: TaskCard, schema: TaskSchema, known: frozenset[str]) -> list[tuple[Phrase, Slot]]:
    """Return the phrases after which the examples of *card* have the texts of its slots."""
    texts = [slot for slot in schema.slots if slot.kind == "text" and not slot.is_list]
    declared = {phrase.stems for slot in schema.slots for phrase in slot.phrases}
    found: dict[tuple[str, ...], dict[str, Slot]] = defaultdict(dict)
    examples = [Utterance(example) for example in card.examples[:_MOST_EXAMPLES]]
    for example in examples:
        for slot in texts:
            for start in _starts(example, slot, known, is_only=len(texts) == 1):
                if frame := _before(example, start):
                    found[frame][slot.name] = slot
    if not found and (frame := _shared_beginning(examples, texts)):
        found[frame][texts[0].name] = texts[0]
    return [
        (Phrase(frame, _LEARNED, "right"), next(iter(slots.values())))
        for frame, slots in found.items()
        if len(slots) == 1 and frame not in declared
    ]


def _starts(example: Utterance, slot: Slot, known: frozenset[str], *, is_only: bool) -> Iterator[int]:
    for value in slot.examples:
        pattern = rf"(?<!\w){re.escape(value)}(?!\w)" if isinstance(value, str) and value else ""
        if pattern and (match := re.search(pattern, example.text, re.IGNORECASE)):
            yield match.start()
    if is_only and not slot.examples:
        spans = [(one.start, one.end) for one in example.quoted] or names_in(example, known)
        if len(spans) == 1:
            yield spans[0][0]


def _before(example: Utterance, start: int) -> tuple[str, ...]:
    place = example.index_at(start)
    while place and not example.tokens[place - 1].is_word:
        place -= 1
    before = [token for token in example.tokens[max(place - 2, 0) : place] if token.is_word]
    if not before:
        return ()
    last = before[-1]
    is_enough = last.text in _LEADING or last.text not in LIGHT
    return (last.stem,) if is_enough else tuple(token.stem for token in before) if len(before) == 2 else ()


def _shared_beginning(examples: Sequence[Utterance], texts: Sequence[Slot]) -> tuple[str, ...]:
    if len(examples) < 2 or len(texts) != 1:
        return ()
    columns = takewhile(lambda words: len(set(words)) == 1, zip(*(example.stems for example in examples), strict=False))
    shared = [words[0] for words in columns]
    return tuple(shared[-_LONGEST_FRAME:]) if len(shared) > 1 else ()
