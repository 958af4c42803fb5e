"""Numbers that name rather than count: "volume 2", "Route 66", "The Seven Pillars", a postal code."""

import re
from collections.abc import Iterator
from decimal import Decimal

from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.plain_values import Reading
from supervisor.interpretation.values.scene import Item, Scene
from supervisor.interpretation.words import Token, word_set

#: The number after one of these tells which one it is.
_LABELS = word_set(
    "volume vol part chapter episode season section paragraph article verse psalm figure page track disc appendix"
    " number no nr exercise problem version room gate platform terminal suite apartment apt channel route highway"
    " interstate pier zip zipcode postcode invoice ticket account flight order ref reference receipt sku isbn book"
)
#: Of these the number after them may as well be how many are wanted, when somebody wants them done: "book 4".
_DEEDS = frozenset({"book", "order", "number", "ticket"})
_WANTING = word_set("to please i you we can could would and then just also or let's me us i'll we'll i'd")
#: "This chapter 4 stars": one that needs no number to be known.
_KNOWN = word_set("this that the my our your his her its current last previous first next latest whole a an each every")
#: What stands in a name besides words in capitals.
_SMALL = word_set("of the and in on at de la le du von & '")
_CALENDAR = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august"
    " september october november december mon tue tues wed thu thurs fri sat sun jan feb mar apr jun jul aug sep sept"
    " oct nov dec am pm i i'm i'd i've i'll people"
)
_PLACED_IN = frozenset({"in", "near", "nearby", "around", "to", "at"})
#: Digits of a postal code where nothing groups them.
_POSTAL_DIGITS = 5
#: Amounts looked at; what has more is no sentence.
_MOST_ITEMS = 32
#: Words in small letters, without which capitals show nothing.
_FEWEST_SMALL = 2
#: "#4711", "no. 4711" and "number: 4711" behind the name of a field.
_NUMBERED = re.compile(r"\s*(?:(?:number|no\.|nr\.?|id)\s*:?\s*#?|:?\s*#)\s?(\d{1,18})(?![\w.,]*\d|\w)", re.IGNORECASE)


def is_labelled(item: Item, scene: Scene, field: FieldShape | None = None) -> bool:
    """True when *item* tells which one ("page 7"); "order 4711" is a value of an `order` *field*."""
    first, end = scene.index_at(item.start), scene.index_at(item.end - 1) + 1
    label = scene.tokens[first - 1] if first else None
    if label is None or item.found.unit is not None or label.text not in _LABELS:
        return False
    following = scene.tokens[end].stem if end < len(scene.tokens) else ""
    is_own = field is not None and any(
        phrase.stems[-1] == label.stem or (phrase.side == "left" and phrase.stems[0] == following != "of")
        for phrase in field.phrases
    )
    return not is_own and _is_label(scene, first - 1, end)


def is_name(item: Item, scene: Scene) -> bool:
    """True when *item* stands in a name ("The Seven Pillars") or is a postal code."""
    if item.found.unit is not None and item.found.text[:1].islower():
        return False
    first, end = scene.index_at(item.start), scene.index_at(item.end - 1) + 1
    before = scene.tokens[first - 1] if first else None
    return _is_in_capitals(item, scene, first, end) or _is_postal(item, before)


def _is_label(scene: Scene, place: int, end: int) -> bool:
    word, before = scene.tokens[place].text, scene.tokens[place - 1].text if place else ""
    if word in _DEEDS and (not place or before in _WANTING or not scene.tokens[place - 1].is_word):
        return False
    if before not in _KNOWN:
        return True
    is_of = end + 1 < len(scene.tokens) and scene.tokens[end].text == "of"
    return is_of and not any(item.start == scene.tokens[end + 1].start for item in scene.items[:_MOST_ITEMS])


def _is_postal(item: Item, before: Token | None) -> bool:
    digits = item.found.text
    return before is not None and before.text in _PLACED_IN and digits.isdigit() and len(digits) == _POSTAL_DIGITS


def _is_in_capitals(item: Item, scene: Scene, first: int, end: int) -> bool:
    """True for "Sign of Four", "Two Sisters", "The 39 Steps" and "Slaughterhouse-Five"."""
    letter = scene.text[item.start]
    if not first or not (letter.isupper() or letter.isdigit()) or not _shows_names(scene):
        return False
    place = first - 1
    while place > 0 and scene.tokens[place].text in _SMALL and not _is_capital(scene, place):
        place -= 1
    is_after, is_before = _is_capital(scene, place), _is_capital(scene, end)
    if letter.isdigit():
        is_the = scene.tokens[first - 1].text == "the"
        return is_before and (is_the or (is_after and place == first - 1))
    is_joined = scene.tokens[first - 1].text == "-"
    return is_after or is_before or (is_joined and first > 1 and scene.tokens[first - 2].is_word)


def _is_capital(scene: Scene, place: int) -> bool:
    """True for a word in capitals that is no day, month or "I", and not there because a sentence begins."""
    if not 0 <= place < len(scene.tokens):
        return False
    token = scene.tokens[place]
    is_first = not place or scene.tokens[place - 1].text in {".", "!", "?", "\n"}
    return scene.text[token.start].isupper() and not is_first and token.text not in _CALENDAR


def _shows_names(scene: Scene) -> bool:
    small = 0
    for token in scene.tokens:
        small += scene.text[token.start].islower()
        if small >= _FEWEST_SMALL:
            return True
    return False


def numbered(scene: Scene, cues: tuple[Cue, ...]) -> Iterator[Reading]:
    """Yield the 4711 of "order #4711" and "order no. 4711", for a field of whole numbers named right before it."""
    for cue in cues:
        if cue.field.kind == "integer" and not cue.field.is_list and cue.side != "left":
            match = _NUMBERED.match(scene.text, scene.tokens[cue.end - 1].end)
            if match:
                yield Reading(cue.field, int(Decimal(match.group(1))), match.start(1), match.end(1))
