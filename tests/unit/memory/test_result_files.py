"""The file form: reading, keeping back, and export and import as each other's inverse."""

from collections.abc import Sequence

import pytest

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.long_term.result_files import (
    ResultEntry,
    TaskForm,
    entry_of,
    read_document,
)

BUDGET = TaskForm(("budget_limit", "spent", "history"), frozenset({"history"}))
FORMS = {
    "analyze_budget": BUDGET,
    "greet": TaskForm(("name",)),
    "share": TaskForm(("tickets",), frozenset({"tickets"})),
}

WHOLE = "analyze_budget:50000:42000:5000,7000,8000,6000"
MAYBE_CUT = "analyze_budget:100000:30000:5000,6000,7000,5000,25000"
ORIGINAL = {"tasks": {WHOLE: {"remaining": 8000.0}, MAYBE_CUT: {"remaining": 70000.0}}}


def test_a_key_is_read_back_into_raw_values_by_field() -> None:
    """They stay text: the parameters class knows how to read numbers."""
    entry = read_document(ORIGINAL, FORMS).entries[0]
    assert entry.task_name == "analyze_budget"
    assert entry.parameters == {
        "budget_limit": "50000",
        "spent": "42000",
        "history": ["5000", "7000", "8000", "6000"],
    }
    assert entry.result == {"remaining": 8000.0}


def test_an_entry_with_exactly_five_values_is_kept_back() -> None:
    """Its question may have had a sixth: the mean it answers with is not that of these five."""
    found = read_document(ORIGINAL, FORMS)
    assert [entry.key for entry in found.entries] == [WHOLE]
    assert [entry.key for entry in found.quarantined] == [MAYBE_CUT]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("unknown:1", "not one of"),
        ("greet:a:b", "2 values"),
        ("", "not one of"),
        ("greet:~json%5B", "escaped JSON"),
    ],
)
def test_a_key_that_fits_no_task_is_named_with_its_reason(
    key: str, reason: str
) -> None:
    """The rest of the file is imported all the same."""
    found = read_document({"tasks": {key: 1, "greet:ann": 2}}, FORMS)
    assert reason in found.refused[key]
    assert [entry.key for entry in found.entries] == ["greet:ann"]


VALUES = [
    ("analyze_budget", {"budget_limit": 50000, "spent": 0.5, "history": []}),
    (
        "analyze_budget",
        {
            "budget_limit": "12345678901234567890",
            "spent": -3,
            "history": [1, 2, 3, 4, 5],
        },
    ),
    (
        "analyze_budget",
        {
            "budget_limit": {"value": 5, "unit": "USD"},
            "spent": 1e-7,
            "history": [1] * 40,
        },
    ),
    ("share", {"tickets": [None]}),
    ("share", {"tickets": [None, None]}),
    ("share", {"tickets": None}),
    ("share", {"tickets": ["no_tickets"]}),
    ("share", {"tickets": ["", "~none", "a,b", "a:b", "{x}", "%", "~json"]}),
    ("share", {"tickets": [[1, 2], []]}),
    ("greet", {"name": ""}),
    ("greet", {"name": None}),
    ("greet", {"name": "~none"}),
    ("greet", {"name": "no_name"}),
    ("greet", {"name": "Zoë: 100 %, {ok}\n"}),
    ("greet", {"name": True}),
]


def document_of(entries: Sequence[ResultEntry]) -> dict[str, dict[str, object]]:
    """Return what an export of *entries* says, as an import reads it."""
    return {
        "tasks": {one.key: one.result for one in entries},
        "complete": {one.key: one.complete for one in entries},
    }


def test_what_was_exported_is_imported_whole_and_exported_alike() -> None:
    """Long lists, five values, units and awkward text included; the same entries give the same keys."""
    entries = [
        entry_of(task, FORMS[task], values, {"n": n})
        for n, (task, values) in enumerate(VALUES)
    ]
    document = document_of(entries)
    found = read_document(document, FORMS)
    assert (found.quarantined, found.refused) == ((), {})
    assert {entry.key: _as_text(entry) for entry in found.entries} == {
        entry.key: _as_text(entry) for entry in entries
    }
    assert len(found.entries) == len(VALUES)
    assert document_of(found.entries) == document


def test_five_values_that_another_writer_put_over_ours_are_kept_back_again() -> None:
    """The mark in the file is bound to the result, so a cut entry cannot inherit it."""
    values = {"budget_limit": 1, "spent": 2, "history": [1, 2, 3, 4, 5]}
    entry = entry_of("analyze_budget", BUDGET, values, {"mean": 3})
    document = document_of([entry])
    assert len(read_document(document, FORMS).entries) == 1
    document["tasks"][entry.key] = {"mean": 9}
    assert len(read_document(document, FORMS).quarantined) == 1


def test_an_entry_is_exported_with_every_field_or_not_at_all() -> None:
    """A gap would move the later values into the wrong fields."""
    with pytest.raises(InvalidInput, match="spent, history missing"):
        entry_of("analyze_budget", BUDGET, {"budget_limit": 1}, 1)


def _as_text(entry: ResultEntry) -> tuple[dict[str, object], object]:
    """Return the entry with scalars as the text a key spells them with."""
    return {
        name: _text(value) for name, value in entry.parameters.items()
    }, entry.result


def _text(value: object) -> object:
    if isinstance(value, list):
        return [_text(item) for item in value]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.7f}".rstrip("0")
    return str(value) if isinstance(value, int) else value
