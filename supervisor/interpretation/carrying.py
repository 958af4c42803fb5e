"""What a sentence carries over from earlier tasks: values that it changes, and those that it refers back to."""

from collections.abc import Sequence

from quantities.amounts import canonical
from supervisor.interpretation.conclusions import lacking
from supervisor.interpretation.earlier_tasks.arithmetic import changed
from supervisor.interpretation.earlier_tasks.changes import Change, changes_in, without_amounts_of
from supervisor.interpretation.earlier_tasks.references import Past, Reference, reference_in
from supervisor.interpretation.inheriting import inherit, take
from supervisor.understanding.outcome import Span
from supervisor.interpretation.questions import (
    ask_unknown_reference,
    ask_which_value,
    ask_whose,
)
from supervisor.interpretation.values.amounts import Doubt, value_in
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filling import Filled
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Prepared


def put_changed(
    scene: Scene,
    task: Prepared,
    filled: Filled,
    changes: Sequence[Change],
    pasts: Sequence[Past],
    asked: Sequence[FieldShape] = (),
) -> list[Doubt]:
    """Put into *filled* what *changes* make of values of *pasts*; return the doubts about those that are not there."""
    problems = []
    for change in changes:
        shape = change.field or _meant(task, pasts, change, asked)
        if shape is None:
            numeric = [one for one in task.shape.fields if one.is_numeric and not one.is_list]
            if numeric:
                filled.unplaced = ask_whose(scene.text[change.start : change.end], numeric)
            continue
        past = next((past for past in pasts if shape.name in past.call.parameters or shape.is_list), None)
        said = filled.values.get(shape.name)
        if said is None and past is None:
            problems.append(Doubt(shape, ask_unknown_reference(shape)))
            continue
        if past is None and not change.is_multiple:
            # "Me and three more guests, four in all": what is said in full says it.
            continue
        earlier = said if said is not None or past is None else past.call.parameters.get(shape.name, [])
        computed = changed(shape, change, earlier, scene)
        if isinstance(computed, Doubt):
            filled.doubt(computed)
        elif said is not None and shape.name not in filled.computed:
            filled.doubt(Doubt(shape, ask_which_value(shape, [said, computed.value])))
        else:
            words = f"{filled.computed[shape.name]}, {computed.words}" if said is not None else computed.words
            turn_id = past.turn.turn_id if past is not None else None
            filled.values[shape.name], filled.computed[shape.name] = computed.value, words
            text = scene.text[change.start : change.end]
            filled.spans.append(Span(shape.name, change.start, change.end, text, turn_id))
    return problems


def put_referred(
    scene: Scene,
    task: Prepared,
    filled: Filled,
    reference: Reference,
    pasts: Sequence[Past],
    changes: Sequence[Change] = (),
) -> list[Doubt]:
    """Take from *pasts* what *reference* asks for; return the doubts about what they do not hold.

    With *changes* of earlier values, all the others stay as they were.
    """
    problems = []
    for name, span in reference.fields.items():
        shape = task.shape.field(name)
        if shape is None or filled.has(shape):
            continue
        if not pasts:
            problems.append(Doubt(shape, ask_unknown_reference(shape)))
        elif name in pasts[0].call.parameters:
            take(filled, pasts[0], name, span, scene.text)
    wants_rest = reference.everything or (reference.again if lacking(task, filled) else None)
    if wants_rest is None and changes:
        wants_rest = changes[0].start, changes[0].end
    if wants_rest is None and pasts:
        wants_rest = _put_in_place(scene, task, filled, pasts[0])
    if wants_rest and pasts and not problems:
        inherit(filled, pasts[0], task, (wants_rest, scene.text), but=[problem.field for problem in problems])
        # "again with 45k": leaving the 45k out would answer another question.
        filled.unplaced = filled.unplaced or ask_left(filled, [s for s in task.shape.fields if s.is_numeric])
    return problems


def changes_of(scene: Scene, task: Prepared) -> tuple[Change, ...]:
    """Return the changes that *scene* says of fields of *task*; one without a field only where nothing else is said."""
    changes = tuple(
        change
        for change in changes_in(scene, task.cues.find(scene.tokens))
        if change.field is None or change.field.is_numeric
    )
    if any(change.field is None for change in changes) and without_amounts_of(scene, changes).items:
        return tuple(change for change in changes if change.field is not None)
    return changes


def refers_back(scene: Scene, task: Prepared) -> bool:
    """Return whether anything in *scene* may take a value of an earlier *task*, or change one."""
    cues = task.cues.find(scene.tokens)
    is_corrected = any(item.instead_of is not None for item in scene.items)
    return is_corrected or bool(reference_in(scene, cues)) or bool(changes_in(scene, cues))


def ask_left(filled: Filled, fields: Sequence[FieldShape]) -> str | None:
    """Return the question which of *fields* the first amount left over is for, None when none is left."""
    return ask_whose(filled.loose[0].found.text, fields) if filled.loose and fields else None


def _put_in_place(scene: Scene, task: Prepared, filled: Filled, past: Past) -> tuple[int, int] | None:
    """Give the 43000 of "not 42000 but 43000" to the field that had 42000 in *past*; return where the words stand."""
    span = None
    for item in scene.items:
        before = item.instead_of.value if item.instead_of is not None else None
        if before is None:
            continue
        had = [
            shape
            for shape in task.shape.fields
            if shape.is_numeric and not shape.is_list and str(past.call.parameters.get(shape.name)) == canonical(before)
        ]
        if len(had) != 1:
            continue
        if item in filled.loose and not filled.has(had[0]):
            value = value_in(had[0], item, scene)
            if isinstance(value, Doubt):
                filled.doubt(value)
            else:
                filled.values[had[0].name] = value
                filled.point(had[0].name, item.found.start, item.found.end, scene.text)
            filled.loose.remove(item)
        if filled.has(had[0]):
            span = item.start, item.end
    return span


def _meant(task: Prepared, pasts: Sequence[Past], change: Change, asked: Sequence[FieldShape]) -> FieldShape | None:
    """Return the one field that "10 % more" can be about: the one asked for, the only one, or the one changed last."""
    open_fields = [shape for shape in asked if shape.is_numeric]
    if len(open_fields) == 1:
        return open_fields[0]
    if not pasts:
        return None
    calls = [past.call.parameters for past in pasts]
    fields = [shape for shape in task.shape.fields if shape.is_numeric and not shape.is_list and shape.name in calls[0]]
    if change.item is None and not change.is_multiple:
        fields = [shape for shape in fields if shape.kind == "integer"] or fields
    if len(fields) > 1 and len(calls) > 1:
        fields = [shape for shape in fields if calls[0][shape.name] != calls[1].get(shape.name)]
    return fields[0] if len(fields) == 1 else None
