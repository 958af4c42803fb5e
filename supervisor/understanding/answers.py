"""Answers of a language model, and the check of their form and grounding."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import BaseModel

from tasklore.contracts.quantities.numerals import DecimalMark
from tasklore.memory.grounding import Passage, locate, quotations_in
from tasklore.supervisor.understanding.conclusion import Filled
from tasklore.supervisor.understanding.evidence import (
    Evidence,
    Grounded,
    Ungrounded,
    Why,
    ground,
)
from tasklore.supervisor.understanding.prompt import NOW, Quotable, card
from tasklore.supervisor.understanding.routing import Router, RoutingTask
from tasklore.supervisor.understanding.schema import Slot

#: Characters of a memory that a question shows.
_MOST_RECALLED = 200
#: Tasks that one utterance starts at most.
MOST_INTENTS = 8


class SlotAnswer(BaseModel):
    """One value: of which field, how it was said, and in which source."""

    field: str
    value: str
    quotation: str
    source: str


class IntentAnswer(BaseModel):
    """One task that the utterance asks for."""

    agent_id: str
    task_name: str
    slots: tuple[SlotAnswer, ...]


class Reading(BaseModel):
    """All that the utterance asks for; `unfit` quotes wishes that no task is for."""

    reasoning: str
    intents: tuple[IntentAnswer, ...]
    unfit: tuple[str, ...]


@dataclass
class CheckedAnswer:
    """A reading after the check: *intents*, places of *unfit* wishes, and *faults* as `FIELD: complaint`."""

    intents: list[Filled] = field(default_factory=list)
    unfit: list[Passage] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def check(
    reading: Reading,
    router: Router,
    sources: Mapping[str, Quotable],
    decimal_mark: DecimalMark | None = None,
    names: AbstractSet[tuple[str, str]] = frozenset(),
) -> CheckedAnswer:
    """Check the form and grounding of *reading*; *names* are the tasks that were shown by name only."""
    answer = CheckedAnswer()
    evidence = {name: Evidence(shown, decimal_mark) for name, shown in sources.items()}
    if len(reading.intents) > MOST_INTENTS:
        # Some of them would be dropped without a word.
        most = f"give none, as one utterance starts {MOST_INTENTS} at most"
        answer.faults.append(f"intents: {len(reading.intents)} are too many; {most}")
        return answer
    for number, intent in enumerate(reading.intents):
        place = f"intents.{number}"
        task = router.find(intent.agent_id, intent.task_name)
        if task is None:
            name = f"{intent.agent_id[:64]}.{intent.task_name[:64]}"
            answer.faults.append(
                f"{place}: {name!r} is none of the tasks; name one that is listed, or leave it out"
            )
            continue
        if (intent.agent_id, intent.task_name) in names:
            answer.faults.append(
                f"{place}.slots: that task was listed by name; give its slots, which are\n{card(task)}"
            )
        checked = _check_intent(
            intent,
            task=task,
            evidence=evidence,
            at=f"{place}.slots",
            faults=answer.faults,
        )
        if checked.values not in [
            one.values for one in answer.intents if one.task is task
        ]:
            answer.intents.append(checked)
    for number, quotation in enumerate(reading.unfit[:MOST_INTENTS]):
        found = next(locate(quotation, sources[NOW].text), None)
        if found is None:
            answer.faults.append(
                f"unfit.{number}: {quotation[:80]!r} does not stand in the utterance; copy it from there"
            )
        else:
            answer.unfit.append(found)
    for left in _find_left(answer, evidence[NOW]) if answer.intents else ():
        # It is asked about with the last intent to begin before it.
        before = [one for one in answer.intents if start_of(one) <= left.start]
        (max(before, key=start_of) if before else answer.intents[0]).left.append(left)
    return answer


def start_of(intent: Filled) -> int:
    """Return where the utterance first speaks of *intent*."""
    return min((span.start for span in intent.spans if span.source is None), default=0)


def _check_intent(
    intent: IntentAnswer,
    task: RoutingTask,
    evidence: Mapping[str, Evidence],
    at: str,
    faults: list[str],
) -> Filled:
    """Return the grounded values of *intent*, and add the faults of the others to *faults*."""
    checked = Filled(task=task)
    taken: dict[str, list[Passage]] = {name: [] for name in evidence}
    turns: dict[str, set[str]] = {}
    for number, said in enumerate(intent.slots):
        slot = task.schema.slot(said.field)
        try:
            slot, source = _find_slot(said, checked, evidence)
            carried = source.value_in_call(task.offer.task.name, slot)
            found = ground(
                slot,
                said.value,
                said.quotation,
                source,
                carried=carried,
                taken=taken[said.source],
            )
        except Ungrounded as fault:
            faults.append(f"{at}.{number}.{fault}")
            checked.faulty |= {slot.name} if slot is not None else set()
            continue
        _take_value(checked, slot, found, source)
        if slot.is_numeric:
            taken[said.source].append(found.place)
        if (turn := source.shown.turn) is not None:
            turns.setdefault(turn.request_id or turn.turn_id, set()).add(slot.name)
    if len(turns) > 1:
        for name in set().union(*turns.values()):
            checked.unsure.setdefault(name, Why.SCATTERED)
    for name in checked.faulty & checked.values.keys():
        del checked.values[name]
    return checked


def _find_slot(
    said: SlotAnswer, checked: Filled, evidence: Mapping[str, Evidence]
) -> tuple[Slot, Evidence]:
    """Return the slot and the source that *said* names; raises Ungrounded when there is none, or it has a value."""
    slot = checked.task.schema.slot(said.field)
    source = evidence.get(said.source)
    if slot is None:
        raise Ungrounded(
            f"field: {said.field[:64]!r} is no field of {checked.task.offer.task.name}"
        )
    if slot.name in checked.values and not slot.is_list:
        raise Ungrounded("field: it has a value already; give one slot for each field")
    if slot.kind == "other":
        raise Ungrounded(f"field: {slot.name} cannot be said in words; leave it out")
    if source is None:
        raise Ungrounded(
            f"source: {said.source[:64]!r} is none; write one of {', '.join(evidence)}"
        )
    return slot, source


def _take_value(checked: Filled, slot: Slot, found: Grounded, source: Evidence) -> None:
    if slot.is_list:
        checked.values.setdefault(slot.name, []).append(found.value)
    else:
        checked.values[slot.name] = found.value
    checked.spans.append(source.span(slot.name, found.place))
    if found.why is not None:
        checked.unsure[slot.name] = found.why
    if (
        found.why is Why.REMEMBERED
        and (note := f'I remember "{source.shown.text[:_MOST_RECALLED]}".')
        not in checked.notes
    ):
        checked.notes.append(note)


def _find_left(answer: CheckedAnswer, utterance: Evidence) -> list[Passage]:
    """Return the numbers, times and quoted texts of *utterance* that no slot of *answer* rests on."""
    covered = [
        *answer.unfit,
        *(place for intent in answer.intents for place in _covered_places(intent)),
    ]
    read = utterance.utterance
    counts = [
        Passage(one.start, one.end)
        for one in read.amounts
        if one.value != 1 and not one.is_vague
    ]
    numbers = [Passage(one.start, one.end) for one in utterance.numbers]
    said = [*counts, *numbers, *quotations_in(read.text)]
    # "A month" counts nothing, and "now" is when everything is asked for.
    lengths = [Passage(one.start, one.end) for one in read.durations]
    said += [
        place
        for place in lengths
        if any(place.overlaps(*one) for one in (*counts, *numbers))
    ]
    today = read.now.date()
    said += [
        Passage(one.start, one.end)
        for one in read.moments
        if any(sign.isdigit() for sign in one.text)
        or all(
            (day.date() if isinstance(day, datetime) else day) != today
            for day in one.readings
        )
    ]
    left: list[Passage] = []
    for place in sorted(said, key=lambda place: (place.start, -place.end)):
        if not any(place.overlaps(*one) for one in (*covered, *left)):
            left.append(place)
    return left


def _covered_places(intent: Filled) -> Iterator[tuple[int, int]]:
    """Yield the words of the utterance that found their slot; those that only the model relates to a choice do not."""
    for span in intent.spans:
        slot = intent.task.schema.slot(span.field)
        is_unread = (
            span.field in intent.unsure
            and slot is not None
            and slot.kind in ("choice", "boolean")
        )
        if span.source is None and not is_unread:
            yield span.start, span.end
