"""What of a language model's reading stands in the text: every quote is looked up and every digit compared by value."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contracts.errors import InvalidAmount
from quantities.numerals import parse_number
from supervisor.understanding.outcome import Span
from supervisor.interpretation.values.amounts import Doubt, value_in
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.plain_values import NEGATIONS
from supervisor.interpretation.values.scene import Item, Scene
from supervisor.interpretation.words import Token, stems_of, tokens_of

#: Words before a choice or a text within which a negation is about it ("do not ever greet Bob").
_NEGATION_REACH = 4
#: Words before it that turn it down, beside those of `plain_values`.
_TURNED_DOWN = NEGATIONS | {
    "isn't",
    "wasn't",
    "nobody",
    "none",
    "instead",
    "except",
    "nor",
    "neither",
    "cannot",
    "can't",
}
#: After a value, these take it back ("Bob, no, Ada").
_TAKEN_BACK = re.compile(
    r"[\s,.;:()\u2013\u2014-]*\b(?:no|sorry|wait|rather|i mean|i meant|actually|scratch that|make (?:that|it)"
    r"|correction|was wrong|not any ?more)\b",
    re.IGNORECASE,
)
#: Characters; a longer quote is the whole text handed back, which proves nothing.
_LONGEST_QUOTE = 2_000


#: Amounts that belong to a field already: where each was said, and at which character.
Used = set[tuple[str | None, int]]


@dataclass(frozen=True, slots=True)
class Source:
    """A text that may be quoted: the sentence, an earlier turn with its id, or what is remembered at a place.

    Of what is remembered, *names*, *heading* and *is_sure* are those of `recollection.Remembered`.
    """

    scene: Scene
    turn_id: str | None = None
    memory: str | None = None
    names: tuple[str, ...] = ()
    heading: str = ""
    is_sure: bool = True

    @property
    def name(self) -> str | None:
        """What tells it from the others; None for the sentence itself."""
        return self.memory or self.turn_id

    def span(self, field: FieldShape, start: int, end: int) -> Span:
        """Return that the value of *field* rests on these characters."""
        return Span(field.name, start, end, self.scene.text[start:end], self.turn_id, self.memory)


@dataclass(frozen=True, slots=True)
class Proven:
    """A *value* whose every part stands in the text, at *spans*."""

    value: Any
    spans: tuple[Span, ...]


def prove(field: FieldShape, said: Sequence[str], quote: str, sources: Sequence[Source], used: Used) -> Proven | None:
    """Return *said* as the value of *field*, or None when *quote* does not stand in a source or does not hold it.

    Amounts whose place is in *used* belong to other fields already and prove nothing.
    """
    if not quote.strip() or len(quote) > _LONGEST_QUOTE:
        return None
    for source in sources:
        for start in _places(quote, source.scene.text):
            proven = _prove_at(field, said, source, start, start + len(quote), used)
            if proven is not None:
                return proven
    return None


def _places(quote: str, text: str) -> Iterator[int]:
    """Yield where *quote* stands in *text*, never cutting a word or a number in two."""
    start = text.find(quote)
    while start >= 0:
        end = start + len(quote)
        cuts_before = start > 0 and text[start - 1].isalnum() and quote[0].isalnum()
        cuts_after = end < len(text) and text[end].isalnum() and quote[-1].isalnum()
        if not cuts_before and not cuts_after:
            yield start
        start = text.find(quote, start + 1)


def _prove_at(
    field: FieldShape, said: Sequence[str], source: Source, start: int, end: int, used: Used
) -> Proven | None:
    quote = source.scene.text[start:end]
    if field.is_list and not said:
        is_denied = any(token.text in NEGATIONS or token.text == "none" for token in tokens_of(quote))
        return Proven([], (source.span(field, start, end),)) if is_denied else None
    if not said or (len(said) > 1 and not field.is_list):
        return None
    if field.is_numeric:
        return _prove_amounts(field, said, source, start, end, used)
    if field.kind == "choice":
        return None if _is_turned_down(source.scene, start, end) else _prove_choices(field, said, source, start, quote)
    if field.kind == "text":
        return _prove_texts(field, said, source, start, quote)
    # A quote can show that a yes or a date was spoken of, not which: those are left to the rules and to asking.
    return None


def _prove_amounts(
    field: FieldShape, said: Sequence[str], source: Source, start: int, end: int, used: Used
) -> Proven | None:
    free = [
        item
        for item in source.scene.items
        if start <= item.found.start and item.found.end <= end and (source.name, item.found.start) not in used
    ]
    whole, taken = list(free), list[Item]()
    for text in said:
        item = next((item for item in free if _is_worth(item, text, source.scene)), None)
        if item is None:
            return None
        free.remove(item)
        taken.append(item)
    if field.is_list and not _is_whole(taken, whole, source, used):
        return None
    values = [value_in(field, item, source.scene) for item in taken]
    if any(isinstance(value, Doubt) for value in values):
        return None
    spans = tuple(source.span(field, item.found.start, item.found.end) for item in taken)
    return Proven(values if field.is_list else values[0], spans)


def _is_whole(taken: list[Item], whole: list[Item], source: Source, used: Used) -> bool:
    """Return whether *taken* is the list as it was said: every amount of its quote, in order, and none cut off."""
    runs = {item.run for item in taken}
    places = {item.found.start for item in taken}
    is_cut = any(
        item.run in runs and item.found.start not in places and (source.name, item.found.start) not in used
        for item in source.scene.items
    )
    return taken == whole and not is_cut


def _is_turned_down(scene: Scene, start: int, end: int) -> bool:
    """Return whether what stands there is denied ("not Bob") or taken back ("Bob, no, Ada")."""
    first = scene.index_at(start)
    before = scene.tokens[max(first - _NEGATION_REACH, 0) : first]
    within = scene.tokens[first : scene.index_at(end - 1) + 1]
    is_denied = any(token.text in _TURNED_DOWN for token in _same_clause(before))
    is_undone = bool(_TAKEN_BACK.match(scene.text, end))
    return is_denied or is_undone or (len(within) > 1 and within[0].text in _TURNED_DOWN)


def _same_clause(before: Sequence[Token]) -> Sequence[Token]:
    """Return those of *before* that no mark parts from what follows."""
    ends = [place for place, token in enumerate(before) if token.text in {",", ".", ";", "!", "?", "\n", ":"}]
    return before[ends[-1] + 1 :] if ends else before


def _is_worth(item: Item, text: str, scene: Scene) -> bool:
    try:
        return item.found.value is not None and parse_number(text, decimal_mark=scene.decimal_mark) == item.found.value
    except InvalidAmount:
        return False


def _prove_choices(field: FieldShape, said: Sequence[str], source: Source, start: int, quote: str) -> Proven | None:
    tokens = tokens_of(quote)
    stems = {token.stem for token in tokens}
    if any(token.text in _TURNED_DOWN for token in tokens):
        return None
    by_name = {str(choice): choice for choice in field.choices}
    if not all(text in by_name and stems_of(text) and set(stems_of(text)) <= stems for text in said):
        return None
    values = [by_name[text] for text in said]
    return Proven(values if field.is_list else values[0], (source.span(field, start, start + len(quote)),))


def _prove_texts(field: FieldShape, said: Sequence[str], source: Source, start: int, quote: str) -> Proven | None:
    spans = []
    for text in said:
        place = next(_places(text, quote), -1) if text.strip() else -1
        if place < 0 or _is_turned_down(source.scene, start + place, start + place + len(text)):
            return None
        spans.append(source.span(field, start + place, start + place + len(text)))
    return Proven(list(said) if field.is_list else said[0], tuple(spans))
