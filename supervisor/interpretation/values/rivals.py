"""Two amounts for one field: asked about, unless the second was plainly said in place of the first."""

import re
from bisect import bisect_left
from itertools import pairwise

from supervisor.interpretation.questions import ask_which_value
from supervisor.interpretation.values.amounts import RIGHT_BESIDE, Claim, Doubt, strangeness, value_in
from supervisor.interpretation.values.corrections import changes_to, corrects, is_either, replaces
from supervisor.interpretation.values.counting import PERSON
from supervisor.interpretation.values.cues import Cue, Distances
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.scene import Item, Scene
from supervisor.interpretation.words import LIGHT, word_set

#: Amounts named in a question about which of them is meant.
_MOST_RIVALS = 8
#: "6 people, 7 if my aunt comes": which of them is not known yet; "at 7 if possible" is a wish.
_IF = re.compile(
    r"(?:\s+of\s+us)?\s+(?:if|when|once|unless)\s+(?:my|our|his|her|their|the|i|we|he|she|they|everyone|everybody|all)\b",
    re.IGNORECASE,
)
_NO_THING = word_set("or and but if please thanks max maybe now total altogether then instead rather tonight today")
_MORE = frozenset({"and", "plus", "another", "+", "&"})


def settle_rivals(
    scene: Scene, cues: tuple[Cue, ...], claims: list[Claim], loose: list[Item], distances: Distances, filled: Filled
) -> None:
    """Raise a doubt where a second amount is as plainly meant for a field as the one it got, or take the correction."""
    _doubt_members(scene, claims, loose, filled)
    for claim in claims:
        if claim.field.is_list or claim.field.name not in filled.values:
            continue
        own = [cue for cue in cues if cue.field is claim.field]
        open_to = [item for item in loose[:_MOST_RIVALS] if not _is_text(scene, cues, item, filled)]
        rivals = [item for item in open_to if _is_rival(scene, claim, own, item, distances)]
        if not rivals:
            continue
        said = sorted([claim.item, *rivals], key=lambda item: item.start)
        if _is_settled(scene, said):
            _take_correction(scene, claim, said[-1], filled)
            loose[:] = [item for item in loose if item not in said]
        else:
            filled.doubt(Doubt(claim.field, ask_which_value(claim.field, [item.found.text for item in said])))


def _doubt_members(scene: Scene, claims: list[Claim], loose: list[Item], filled: Filled) -> None:
    """Raise a doubt about a list with a member that is one of two ("history 5k or 6k")."""
    members = sorted((claim for claim in claims if claim.field.is_list), key=lambda claim: claim.item.start)
    starts = [claim.item.start for claim in members]
    for item in loose[:_MOST_RIVALS]:
        place = bisect_left(starts, item.start)
        for claim in members[max(place - 1, 0) : place + 1]:
            if is_either(scene.text, claim.item, item):
                said = sorted([claim.item, item], key=lambda one: one.start)
                filled.doubt(Doubt(claim.field, ask_which_value(claim.field, [one.found.text for one in said])))


def _is_text(scene: Scene, cues: tuple[Cue, ...], item: Item, filled: Filled) -> bool:
    """True for the 1984 of "see the film 1984, 2 seats", which the cue of a text stands right before."""
    first = scene.index_at(item.start)
    return any(
        cue.end == first and cue.field.kind == "text" and cue.side != "left" and not filled.has(cue.field)
        for cue in cues
    )


def _is_rival(scene: Scene, claim: Claim, own: list[Cue], item: Item, distances: Distances) -> bool:
    if item.found.value == claim.item.found.value or strangeness(item, claim.field, scene):
        return False
    if any(distances.quantifies(cue, item) for cue in own):
        return False
    return (
        any(distances.between(cue, item) <= RIGHT_BESIDE for cue in own)
        or (item.run == claim.item.run and item.bracket is None and not _counts_another(scene, claim, item))
        or (_continues(scene, claim.item, item) and not _counts_another(scene, claim, item))
        or (_is_last_before(scene, claim.item, item) and _overrules(scene, claim.item, item))
        or changes_to(scene.text, claim.item, item)
        or is_either(scene.text, claim.item, item)
        or (item.found.unit in (None, claim.item.found.unit) and _IF.match(scene.text, item.end) is not None)
        or (replaces(scene.text, claim.item, item) and _is_beside(scene, claim.item, item))
    )


def _is_settled(scene: Scene, said: list[Item]) -> bool:
    """True when the last of *said* takes the place of all before it: "2 or maybe 3, let's say 3" too."""
    pairs = list(pairwise(said))
    return (said[-1].instead_of is not None or _overrules(scene, *pairs[-1])) and all(
        _overrules(scene, one, other) or is_either(scene.text, one, other) for one, other in pairs
    )


def _overrules(scene: Scene, earlier: Item, later: Item) -> bool:
    """True when *later* takes the place of *earlier*; a bare number after "to" may be a time, and is asked about."""
    if changes_to(scene.text, earlier, later) and later.found.unit != earlier.found.unit:
        # "From 2 people to 4" tells what changes.
        return scene.text[: earlier.start].rstrip().lower().endswith(" from") and later.found.unit is None
    return corrects(scene.text, earlier, later) or replaces(scene.text, earlier, later)


def _is_beside(scene: Scene, one: Item, other: Item) -> bool:
    """True when no amount stands between the two."""
    first, second = sorted((one, other), key=lambda item: item.start)
    return not any(first.end <= item.start < second.start for item in scene.items)


def _is_last_before(scene: Scene, claimed: Item, item: Item) -> bool:
    before = [other for other in scene.items if other.end <= item.start]
    return bool(before) and before[-1] is claimed and corrects(scene.text, claimed, item)


def _take_correction(scene: Scene, claim: Claim, item: Item, filled: Filled) -> None:
    filled.is_certain = False
    if item is claim.item:
        return
    value = value_in(claim.field, item, scene)
    if isinstance(value, Doubt):
        filled.doubt(value)
        return
    filled.spans = [span for span in filled.spans if span.field != claim.field.name]
    filled.values[claim.field.name] = value
    filled.point(claim.field.name, item.found.start, item.found.end, scene.text)


def _counts_another(scene: Scene, claim: Claim, item: Item) -> bool:
    """True for the 2 of "4 men and 2 dogs" and of "for 5 and 2 high chairs": no people."""
    after = scene.index_at(item.end - 1) + 1
    token = scene.tokens[after] if after < len(scene.tokens) else None
    is_counted = token is not None and token.is_word and token.text not in LIGHT and token.text not in _NO_THING
    return is_counted and (claim.item.found.unit == PERSON or claim.field.counts is not None)


def _continues(scene: Scene, claimed: Item, item: Item) -> bool:
    """True for the 5k of "spent 10k on food and 5k on rent": one more of what was just counted."""
    first = scene.index_at(item.start)
    if first == 0 or scene.tokens[first - 1].text not in _MORE:
        return False
    before = [other for other in scene.items if other.end <= item.start]
    return bool(before) and before[-1] is claimed
