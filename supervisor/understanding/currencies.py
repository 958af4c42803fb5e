"""The currencies of one task: two of them never meet, and a field for the currency takes the one that was said."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasklore.contracts.quantities.numerals import Found, find_amounts
from tasklore.contracts.quantities.units import CURRENCIES
from tasklore.supervisor.understanding.outcome import Span
from tasklore.supervisor.understanding.schema import Slot


def settle_currencies(
    slots: Sequence[Slot],
    spans: Sequence[Span],
    values: dict[str, Any],
    questions: dict[str, str],
) -> None:
    """Add a question for amounts in two currencies; give a field for the currency the one that was said.

    Without such a field one currency for all is as good as none, as in "$50,000, and 42k spent".
    """
    said = _currencies_said(slots, spans)
    if not said:
        return
    common = set.intersection(*({one.unit, *one.also} for one in said.values()))
    if not common:
        _ask_for_one(slots, said, values, questions)
        return
    first = next(iter(said.values()))
    for slot in filter(_is_currency, slots):
        fitting = [
            code
            for code in slot.choices or sorted(filter(None, common))
            if code in common
        ]
        is_open = slot.name not in values and slot.name not in questions
        if is_open and fitting:
            values[slot.name] = first.unit if first.unit in fitting else fitting[0]
        elif values.get(slot.name) not in common:
            values.pop(slot.name, None)
            questions[slot.name] = f"What is {slot.label}? You wrote {first.text!r}."


def _currencies_said(slots: Sequence[Slot], spans: Sequence[Span]) -> dict[str, Found]:
    """Return an amount in a currency for each field without a unit of its own that was given one."""
    free = {slot.name for slot in slots if slot.is_numeric and slot.unit is None}
    said: dict[str, Found] = {}
    for span in spans:
        for found in find_amounts(span.text) if span.field in free else ():
            if found.unit in CURRENCIES:
                said.setdefault(span.field, found)
    return said


def _ask_for_one(
    slots: Sequence[Slot],
    said: Mapping[str, Found],
    values: dict[str, Any],
    questions: dict[str, str],
) -> None:
    """Ask for all amounts that were *said*: which of them is to be said again is unknown."""
    labels = {slot.name: slot.label for slot in slots if slot.name in said}
    told = [f"{labels[name]} {found.text!r}" for name, found in said.items()]
    for name in labels:
        values.pop(name, None)
        questions[name] = ""
    questions[next(iter(labels))] = (
        f"You wrote {' and '.join(told)}, in two currencies. What are"
        f" {' and '.join(labels.values())} in one of them?"
    )


def _is_currency(slot: Slot) -> bool:
    """Return whether *slot* takes the code of a currency."""
    if slot.choices:
        return all(choice in CURRENCIES for choice in slot.choices)
    return slot.kind == "text" and "currency" in slot.name.lower().split("_")
