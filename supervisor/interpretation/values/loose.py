"""Amounts that nothing in the sentence announces: answers to a question, and the one amount for the one field left."""

from collections.abc import Sequence

from quantities.units import CURRENCIES
from supervisor.interpretation.values.amounts import Claim
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.naming import is_known_thing, is_labelled, is_name
from supervisor.interpretation.values.said_of import has_rivals, is_of_something_else, is_of_time
from supervisor.interpretation.values.scene import Item, Scene, runs_of
from supervisor.interpretation.values.worth import fits_type
from supervisor.interpretation.wishes.routing import Prepared
from supervisor.interpretation.words import LIGHT, word_set

#: Words before an amount that nothing announces which still let it be the one value that is missing.
_BEFORE_LOOSE = LIGHT | word_set(
    "between among amongst against than and but with say said saying mean meant make made need needs want wants take"
    " do put there's give we're they're it'll that'll"
)
_AFTER_LOOSE = frozenset(
    {"not", "instead", "rather", "or", "today", "tonight", "tomorrow", "thanks", "max", "altogether", "within", "near"}
    | {"nearby", "around", "beside", "close", "next", "inside", "outside"}
)
_NOT_BEFORE_LOOSE = frozenset({"in", "at", "@", "on", "last", "per", "over", "during"})
#: Politeness before an order.
_BEFORE_ORDER = word_set(
    "please pls kindly can could would will you i i'd i'll like want to let's just now ok okay hey hi"
)


def asked_for(scene: Scene, fields: list[FieldShape], loose: list[Item], asked: Sequence[FieldShape]) -> list[Claim]:
    """Return loose amounts as the plain answers to what was asked, in the order of the question."""
    names = {shape.name for shape in asked}
    wanted = [shape for shape in fields if shape.name in names]
    if len(wanted) == 1 and wanted[0].is_list:
        return [Claim(wanted[0], item, 0.0) for item in loose]
    scalars = [shape for shape in wanted if not shape.is_list]
    if len(scalars) == 1 and scalars[0].counts:
        # "At six" is when they come, "Rosa Nine" who.
        loose = [item for item in loose if not (_is_at(scene, item) or is_name(item, scene))]
    if len(scalars) == 1 and len({(item.found.value, item.found.unit) for item in loose}) == 1:
        # "nine or so, put down 9"
        loose = loose[-1:]
    if not scalars or len(scalars) != len(loose):
        return []
    return [Claim(shape, item, 0.0) for shape, item in zip(scalars, loose, strict=True)]


def _is_at(scene: Scene, item: Item) -> bool:
    first = scene.index_at(item.start)
    return first > 0 and scene.tokens[first - 1].text in {"at", "@"}


def by_type(fields: list[FieldShape], loose: list[Item]) -> list[Claim]:
    """Return the one loose percentage for the one field of percentages, and the like for measures."""
    claims = []
    for shape in fields:
        fitting = [item for item in loose if fits_type(shape, item)]
        others = [other for other in fields if other is not shape and fitting and fits_type(other, fitting[0])]
        if len(fitting) == 1 and not others and not shape.is_list:
            claims.append(Claim(shape, fitting[0], None))
    return claims


def by_elimination(
    scene: Scene,
    task: Prepared,
    fields: list[FieldShape],
    claims: list[Claim],
    loose: list[Item],
    cues: tuple[Cue, ...],
) -> list[Claim]:
    """Return the one list of amounts for the one list field left, and the one bare amount for the one value left.

    None where it is said of a thing that no field is called by, and another field could hold it as well.
    """
    lists = [shape for shape in fields if shape.is_list]
    brackets = {item.bracket for item in loose if item.bracket is not None}
    if len(lists) == 1 and len(brackets) == 1:
        return [Claim(lists[0], item, 1.0) for item in loose if item.bracket is not None]
    taken = {claim.item.run for claim in claims}
    runs = [
        run for number, run in runs_of(tuple(loose)).items() if number not in taken and _may_be_value(scene, run, task)
    ]
    runs = runs or _said_last(scene, task, claims, loose)
    if len(runs) != 1:
        return []
    run = runs[0]
    # A bare number is no percentage and no measure unless something says so.
    needed = [shape for shape in fields if shape.is_required]
    if any(shape.kind in {"percent", "quantity"} and shape.unit is None for shape in needed):
        return []
    if any(has_rivals(shape, task.shape.fields) for shape in needed) and is_of_something_else(
        scene, run, cues, task.names
    ):
        return []
    if len(needed) == 1 and (needed[0].is_list or len(run) == 1):
        return [Claim(needed[0], item, None) for item in run]
    return [Claim(lists[0], item, None) for item in run] if len(lists) == 1 and not needed and len(run) > 1 else []


def _said_last(scene: Scene, task: Prepared, claims: list[Claim], loose: list[Item]) -> list[list[Item]]:
    """Return the one number that an order ends with: the six of "rate my current textbook six".

    Digits may be the end of the name before them ("rate Terminator 2").
    """
    bare = [item for item in loose if not (is_name(item, scene) or is_labelled(item, scene))]
    order = next((token for token in scene.tokens if token.text not in _BEFORE_ORDER), None)
    if claims or len(bare) != 1 or order is None or order.stem not in task.names:
        return []
    item, last = bare[0], next((token for token in reversed(scene.tokens) if token.is_word), None)
    first = scene.index_at(item.start)
    is_word = item.found.text.isalpha() and item.found.text.islower()
    # Of "this textbook 6" nothing is a name: a known thing needs no number.
    is_told = is_word or (item.found.text.isdigit() and is_known_thing(scene, first - 1))
    before = scene.tokens[first - 1]
    follows_noun = before.is_word and before.text not in LIGHT and before.text not in _BEFORE_LOOSE
    is_last = item.found.unit is None and last is not None and last.end == item.end
    return [[item]] if is_told and follows_noun and is_last else []


def _may_be_value(scene: Scene, run: list[Item], task: Prepared) -> bool:
    """True when nothing shows that *run* counts something else ("in 2026", "page 7", "for 3 months", "3 apples")."""
    first, last = scene.index_at(run[0].start), scene.index_at(run[-1].end - 1) + 1
    is_counting = all(shape.kind == "integer" for shape in task.shape.required)
    if any(item.found.unit is not None and (is_counting or item.found.unit not in CURRENCIES) for item in run):
        return False
    if is_counting and is_of_time(scene, run):
        return False
    if any(is_name(item, scene) or is_labelled(item, scene) for item in run):
        return False
    before = scene.tokens[first - 1] if first else None
    may_follow = before is None or not before.is_word or before.text in _BEFORE_LOOSE or before.stem in task.names
    if not may_follow or (before is not None and before.text in _NOT_BEFORE_LOOSE):
        return False
    after = scene.tokens[last] if last < len(scene.tokens) else None
    return after is None or not after.is_word or after.text in _BEFORE_LOOSE or after.text in _AFTER_LOOSE
