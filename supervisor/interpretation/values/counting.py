"""Who is named in a sentence, added up: "me, my wife and 2 kids" is 4, "a party of six" is 6.

A list with a member that nobody counted ("me and my friends") has no number: it is asked for, never guessed.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from quantities.numerals import Found
from supervisor.interpretation.values.corrections import is_correction, is_denied, is_either
from supervisor.interpretation.values.members import Party
from supervisor.interpretation.values.parties import ONLY, parties
from supervisor.interpretation.values.people import EVERYBODY
from supervisor.interpretation.values.scene import Item, Scene
from supervisor.interpretation.words import word_set

#: The unit of an amount that was added up here.
PERSON = "person"
_PART = re.compile(
    r"\s+of\s+(?:them|whom|which|those|these|us (?:are|is) (?:an? )?(?:kids?|child(?:ren)?|bab(?:y|ies)|adults?"
    r"|toddlers?|teens?|seniors?|vegetarians?|vegans?|celiacs?|coeliacs?|allergic|pregnant|diabetic))\b",
    re.IGNORECASE,
)
_INCLUDING = word_set("including incl includes counting")
_WHOLE = re.compile(r"\b(?:the|all)\s+$", re.IGNORECASE)
#: What a person does who is not counted but speaks ("my wife and I would like a table for 6").
_DOES = word_set(
    "would will want wants need needs like have has are were am was can could should is plan made booked reserved"
)


def with_people(scene: Scene) -> tuple[Scene, bool]:
    """Return *scene* with each list of people as one amount of unit `PERSON`, and whether one has no number.

    Where several are named, a total goes before its parts, and what was said first before what was corrected goes away.
    """
    parts = _parts(scene)
    named = tuple(party for party in parties(scene) if scene.tokens[party.first].start not in parts)
    groups = _standing(scene, named)
    parts |= _outdated(scene, named, groups)
    if not groups and not parts:
        return scene, False
    items, places = [], [(scene.tokens[group.first].start, scene.tokens[group.end - 1].end) for group in groups]
    place = 0
    for item in scene.items:
        while place < len(places) and places[place][1] <= item.start:
            place += 1
        if (place == len(places) or item.end <= places[place][0]) and item.start not in parts:
            items.append(item)
    items += [_item(scene, group, span) for group, span in zip(groups, places, strict=True) if group.value is not None]
    items.sort(key=lambda item: item.start)
    return scene.with_items(tuple(_in_runs(items, scene.text))), any(group.value is None for group in groups)


def _in_runs(items: list[Item], text: str) -> Iterator[Item]:
    """Yield *items* with people in no list of amounts, unless they are one of two ("5 or 6 people")."""
    run = max((item.run for item in items), default=0)
    last: Item | None = None
    for item in items:
        if item.found.unit == PERSON:
            run += 1
            item = replace(item, run=last.run if last is not None and is_either(text, last, item) else run)
        yield item
        last = item


def _parts(scene: Scene) -> frozenset[int]:
    """Return where a number tells a part of the people told before ("10 people, 4 of them kids")."""
    return frozenset(
        item.start
        for item in scene.items[1:]
        if _PART.match(scene.text, item.end) and not _WHOLE.search(scene.text, max(item.start - 8, 0), item.start)
    )


def _outdated(scene: Scene, named: tuple[Party, ...], groups: tuple[Party, ...]) -> frozenset[int]:
    """Return where a number of people stands that is no longer so: the 3 of "booked for 3 people, but we are 4"."""
    told = {group.value for group in groups if group.is_total}
    past = [
        group
        for group in named
        if group not in groups
        and (
            (told and group.value not in told and scene.tokens[group.end - 1].text in EVERYBODY)
            or _is_included(scene, group)
        )
    ]
    spans = [(scene.tokens[group.first].start, scene.tokens[group.end - 1].end) for group in past]
    return frozenset(item.start for item in scene.items if any(start <= item.start < end for start, end in spans))


def _item(scene: Scene, group: Party, span: tuple[int, int]) -> Item:
    start, end = span
    value = Decimal(group.value or 0)
    return Item(Found(value, PERSON, start, end, scene.text[start:end], (value,)), start, end, 0, None)


# -- which of several lists stands --------------------------------------------------------------------------------


def _standing(scene: Scene, groups: tuple[Party, ...]) -> tuple[Party, ...]:
    kept: list[Party] = []
    for group in groups:
        start = scene.tokens[group.first].start
        if is_denied(scene.text, start) or _is_included(scene, group):
            continue
        if kept and is_correction(scene.text[scene.tokens[kept[-1].end - 1].end : start]):
            kept.pop()
        kept.append(group)
    if any(group.is_total for group in kept):
        return tuple(group for group in kept if group.is_total)
    is_numbered = any(group.has_number for group in kept) or _is_number_said(scene, kept)
    return tuple(group for group in kept if group.has_number or not is_numbered or not _acts(scene, group))


def _is_included(scene: Scene, group: Party) -> bool:
    """True for the kids of "6, including two kids", who are among those told before."""
    if not group.first or scene.tokens[group.first - 1].text not in _INCLUDING:
        return False
    before = scene.tokens[group.first - 1].start
    return any(item.end <= before and item.found.unit is None for item in scene.items[:32])


def _is_number_said(scene: Scene, groups: list[Party]) -> bool:
    """True when a number is left beside *groups*, which may well be the one that counts."""
    spans = [(scene.tokens[group.first].start, scene.tokens[group.end - 1].end) for group in groups]
    return any(item.found.unit is None and not any(a <= item.start < b for a, b in spans) for item in scene.items[:32])


def _acts(scene: Scene, group: Party) -> bool:
    """True for who speaks of the party rather than is it ("my wife and I would like a table for 6")."""
    before = scene.tokens[group.first - 1].text if group.first else ""
    after = scene.tokens[group.end].text if group.end < len(scene.tokens) else ""
    return before not in ONLY and after in _DOES
