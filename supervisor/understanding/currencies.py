"""The currencies of one task: two of them never meet, and a field for the currency takes the one that was said."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasklore.contracts.messages import ChatTurn, TaskCall
from tasklore.contracts.parameters.currencies import codes_named, currency_of
from tasklore.contracts.quantities.amounts.money import currencies_meant
from tasklore.contracts.quantities.numerals import FoundAmount, find_amounts
from tasklore.contracts.quantities.units import CURRENCIES, Unit, unit_named
from tasklore.supervisor.understanding.outcome import (
    Clarification,
    TextSpan,
    Understood,
)
from tasklore.supervisor.understanding.questions import ask_value
from tasklore.supervisor.understanding.schema import Slot

#: Words of the longest name of a currency: "new Turkish lira".
LONGEST_NAME = 3


def settle_currencies(
    slots: Sequence[Slot],
    spans: Sequence[TextSpan],
    values: dict[str, Any],
    questions: dict[str, str],
) -> None:
    """Add a question for amounts in two currencies; give a field for the currency the one that was said.

    Without such a field one currency for all is as good as none, as in "$50,000, and 42k spent".
    """
    said = _currencies_said(slots, spans)
    if not said:
        return
    common = frozenset.intersection(*map(_codes, said.values()))
    if not common:
        labels = {slot.name: slot.label for slot in slots if slot.name in said}
        for name in labels:
            values.pop(name, None)
            questions[name] = ""
        questions[next(iter(labels))] = _ask_for_one(labels, said)
        return
    first = next(iter(said.values()))
    fields = [slot for slot in slots if slot.is_currency]
    if any(not common.isdisjoint(codes_named(values.get(one.name))) for one in fields):
        return
    open_fields = [
        one for one in fields if one.name not in values and one.name not in questions
    ]
    code = None
    if len(open_fields) == 1:
        units = [Unit(one.unit, also=one.also) for one in said.values() if one.unit]
        code = currency_of(units, open_fields[0].choices)
    if code is not None:
        values[open_fields[0].name] = code
        return
    for slot in open_fields or fields:
        values.pop(slot.name, None)
        questions[slot.name] = f"{ask_value(slot)} You wrote {first.text!r}."


def currency_named(text: str) -> str | None:
    """Return the one currency that *text* names ("Swedish kronor", "SEK"), None for none or several."""
    words = [word.strip(".,;:!?()'\"") for word in text.split()]
    for length in range(LONGEST_NAME, 0, -1):
        named = {
            currencies_meant(currency_called(" ".join(words[at : at + length])))
            for at in range(len(words) - length + 1)
        }
        if named := named - {()}:
            codes = {code for meant in named for code in meant}
            return codes.pop() if len(codes) == 1 else None
    return None


def currency_called(name: str) -> Unit | None:
    """Return the currency that *name* is the name of as a whole; None for others, and for parts of one as cents."""
    unit = unit_named(name)
    is_whole = unit is not None and unit.is_currency and unit.factor == 1
    return unit if is_whole else None


def settle_earlier(
    found: Understood | Clarification,
    call: TaskCall,
    slots: Sequence[Slot],
    previous: Sequence[ChatTurn],
) -> Understood | Clarification:
    """Return *found*, of *call*, or a question where amounts are in another currency than those of *previous* turns."""
    kept = {span.field for span in found.spans if span.turn_id is not None}
    earlier = [slot for slot in slots if slot.takes_money and slot.name in kept]
    now = _currencies_said(slots, found.spans)
    before = _latest_currency(previous) if earlier and now else None
    if before is None or all(
        not _codes(before).isdisjoint(_codes(one)) for one in now.values()
    ):
        return found
    said = {**{slot.name: before for slot in earlier}, **now}
    labels = {slot.name: slot.label for slot in slots if slot.name in said}
    return Clarification(
        _ask_for_one(labels, said),
        agent_id=found.agent_id,
        task_name=call.name,
        known={
            name: value for name, value in call.parameters.items() if name not in labels
        },
        missing=tuple(labels),
        spans=tuple(span for span in found.spans if span.field not in labels),
    )


def _latest_currency(previous: Sequence[ChatTurn]) -> FoundAmount | None:
    """Return the amount in a currency that a person said last in *previous*."""
    for turn in reversed(previous):
        if turn.speaker == "person":
            for found in find_amounts(turn.text):
                if found.unit in CURRENCIES:
                    return found
    return None


def _currencies_said(
    slots: Sequence[Slot], spans: Sequence[TextSpan]
) -> dict[str, FoundAmount]:
    """Return an amount in a currency for each field that takes money and was given some, in no earlier turn."""
    free = {slot.name for slot in slots if slot.is_numeric and slot.takes_money}
    said: dict[str, FoundAmount] = {}
    for span in spans:
        if span.field in free and span.turn_id is None:
            for found in find_amounts(span.text):
                if found.unit in CURRENCIES:
                    said.setdefault(span.field, found)
    return said


def _codes(found: FoundAmount) -> frozenset[str]:
    return frozenset(filter(None, (found.unit, *found.also)))


def _ask_for_one(labels: Mapping[str, str], said: Mapping[str, FoundAmount]) -> str:
    """Return the question for all amounts that were *said*: which of them is to be said again is not known."""
    told = [f"{label} {said[name].text!r}" for name, label in labels.items()]
    return (
        f"You wrote {' and '.join(told)}, in two currencies. What should"
        f" {' and '.join(labels.values())} be in one of them?"
    )
