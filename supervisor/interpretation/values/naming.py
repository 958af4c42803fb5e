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
#: Of these also the number in "my reference is 4471".
_IDENTIFIERS = word_set("ref reference zip zipcode postcode isbn sku code pin id password extension phone telephone")
_LINKS = word_set("is was : = number no # nr s")
_MOST_LINKS = 4
#: Groups of digits, one of which begins with a nought.
_TELEPHONE = re.compile(r"(?<![\w.,])(?:\d{2,5}[ -]){0,3}0\d{2,11}(?:[ -]\d{2,6}){0,3}(?![\w]|[.,]\d)")
_FEWEST_DIALLED, _LONGEST_NUMBER = 3, 24
#: Up to this "at 7" tells the hour.
_HOURS = 24
_FROM_TO = re.compile(
    r"\bfrom \d{1,2} (?:to|till|until) \d{1,2}(?=\s*(?:[.,;!?]|$)|\s+(?:please|on|today|tonight|tomorrow)\b)",
    re.IGNORECASE,
)
_IN_SPAN = frozenset({"from", "to", "till", "until"})
_AFTER_CLOCK = word_set("please for with and or on in tonight today tomorrow sharp thanks ish by under but if then")
#: Days in digits, and what is before them: "on 4/5".
_SLASHED_DAY = re.compile(r"(?:0?[1-9]|[12]\d|3[01])/(?:0?[1-9]|[12]\d|3[01])")
_BEFORE_DAY = word_set("on by until till since from before after dated date")
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
#: What a shop gives, and how many of it is paid: "2 for 1 vouchers", "3-for-2".
_OFFER = re.compile(
    r"(?<![\w.,])(?:\d|two|three|four|five|six)"
    r"(?:-for-(?:\d|one|two|three|four|five)\b| for (?:\d|one|two|three|four|five)\s+(?:[a-z]+\s+)?"
    r"(?:vouchers?|coupons?|deals?|offers?|specials?|promos?|promotions?|discounts?|cocktails|drinks|meals|mains|pizzas"
    r"|happy hour)\b)",
    re.IGNORECASE,
)
_LONGEST_OFFER = 40
#: "#4711", "no. 4711" and "number: 4711" behind the name of a field.
_NUMBERED = re.compile(r"\s*(?:(?:number|no\.|nr\.?|id)\s*:?\s*#?|:?\s*#)\s?(\d{1,18})(?![\w.,]*\d|\w)", re.IGNORECASE)


def is_labelled(item: Item, scene: Scene, field: FieldShape | None = None) -> bool:
    """True when *item* tells which one ("page 7"); "order 4711" is a value of an `order` *field*."""
    first, end = scene.index_at(item.start), scene.index_at(item.end - 1) + 1
    label = scene.tokens[first - 1] if first else None
    if item.found.unit is None and (
        _is_telephone(item, scene) or _is_identifier(scene, first - 1) or _is_offered(item, scene, first, end)
    ):
        return True
    if label is None or item.found.unit is not None or label.text not in _LABELS:
        return False
    following = scene.tokens[end].stem if end < len(scene.tokens) else ""
    is_own = field is not None and any(
        phrase.stems[-1] == label.stem or (phrase.side == "left" and phrase.stems[0] == following != "of")
        for phrase in field.phrases
    )
    return not is_own and _is_label(scene, first - 1, end)


def _is_offered(item: Item, scene: Scene, first: int, end: int) -> bool:
    """True for both numbers of "2 for 1 vouchers"."""
    beside = {token.text for token in (*scene.tokens[max(first - 2, 0) : first], *scene.tokens[end : end + 2])}
    if "for" not in beside:
        return False
    start = scene.tokens[max(first - 4, 0)].start
    offers = _OFFER.finditer(scene.text, start, item.end + _LONGEST_OFFER)
    return any(offer.start() <= item.start < offer.end() for offer in offers)


def is_clock(item: Item, scene: Scene) -> bool:
    """True for the 7 of "at 7" and "from 7 to 9", which is a time of day more often than a count."""
    found, first = item.found, scene.index_at(item.start)
    if found.unit is not None or found.value is None or not 0 <= found.value <= _HOURS or not first:
        return False
    if scene.tokens[first - 1].text in _IN_SPAN:
        spans = _FROM_TO.finditer(scene.text, max(item.start - _LONGEST_NUMBER, 0), item.end + _LONGEST_NUMBER)
        return any(span.start() < item.start < span.end() for span in spans)
    if scene.tokens[first - 1].text not in {"at", "@"}:
        return False
    after = scene.index_at(item.end - 1) + 1
    return after >= len(scene.tokens) or not scene.tokens[after].is_word or scene.tokens[after].text in _AFTER_CLOCK


def is_known_thing(scene: Scene, place: int) -> bool:
    """True for the "textbook" at token *place* of "this current textbook": small letters, and a word that points."""
    start = scene.tokens[place].start if 0 < place < len(scene.tokens) else -1
    if start < 0 or not scene.text[start].islower() or scene.tokens[place].text in _LABELS - {"book"}:
        return False
    return any(token.text in _KNOWN - {"a", "an", "each", "every"} for token in scene.tokens[max(place - 2, 0) : place])


def is_date_in_digits(item: Item, scene: Scene) -> bool:
    """True for the "4/5" of "on 4/5", which is no fraction."""
    if "/" not in item.found.text or not _SLASHED_DAY.fullmatch(item.found.text):
        return False
    first = scene.index_at(item.start)
    return first > 0 and scene.tokens[first - 1].text in _BEFORE_DAY


def is_name(item: Item, scene: Scene) -> bool:
    """True when *item* stands in a name ("The Seven Pillars") or is a postal code."""
    if item.found.unit is not None and item.found.text[:1].islower():
        return False
    first, end = scene.index_at(item.start), scene.index_at(item.end - 1) + 1
    before = scene.tokens[first - 1] if first else None
    return _is_in_capitals(item, scene, first, end) or _is_postal(item, before)


def _is_telephone(item: Item, scene: Scene) -> bool:
    """True for both numbers of "555 0199": nobody counts with a nought before the rest."""
    if not item.found.text.isdigit() or len(item.found.text) < _FEWEST_DIALLED:
        return False
    start = max(item.start - _LONGEST_NUMBER, 0)
    numbers = _TELEPHONE.finditer(scene.text, start, min(item.end + _LONGEST_NUMBER, len(scene.text)))
    return any(number.start() <= item.start < number.end() for number in numbers)


def _is_identifier(scene: Scene, place: int) -> bool:
    """True for a number behind token *place* that only tells one thing from another: "my booking reference is 4471"."""
    start = place
    while place >= 0 and start - place < _MOST_LINKS and scene.tokens[place].text in _LINKS:
        place -= 1
    said = {token.text for token in scene.tokens[place + 1 : start + 1]}
    if place == start or place < 0:
        return False
    # "My room number is 214"; "the number is 4" may be any.
    is_numbered = "number" in said and not said.isdisjoint({"is", "was", ":"}) and scene.tokens[place].text in _LABELS
    return is_numbered or scene.tokens[place].text in _IDENTIFIERS


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
    if not first or not (letter.isupper() or letter.isdigit()) or not scene.shows_names:
        return False
    place = first - 1
    while place > 0 and scene.tokens[place].text in _SMALL and not _is_capital(scene, place):
        place -= 1
    is_after, is_before = _is_capital(scene, place), _is_capital(scene, end)
    if letter.isupper() and not is_before and end + 1 < len(scene.tokens) and scene.tokens[end].text in _SMALL:
        # "Six of Crows", not "Four of Six stars"
        numbers = {scene.index_at(one.start) for one in scene.items[:_MOST_ITEMS]}
        is_before = end + 1 not in numbers and _is_capital(scene, end + 1)
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


def numbered(scene: Scene, cues: tuple[Cue, ...]) -> Iterator[Reading]:
    """Yield the 4711 of "order #4711" and "order no. 4711", for a field of whole numbers named right before it."""
    for cue in cues:
        if cue.field.kind == "integer" and not cue.field.is_list and cue.side != "left":
            match = _NUMBERED.match(scene.text, scene.tokens[cue.end - 1].end)
            if match:
                yield Reading(cue.field, int(Decimal(match.group(1))), match.start(1), match.end(1))
