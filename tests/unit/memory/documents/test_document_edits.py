"""Edits of a document: each at the place it names in the document as given, all of them or none, and back again."""

import json
from copy import deepcopy
from typing import Any

import pytest

from tasklore.contracts.edits import Delete, Edit, Insert, Update
from tasklore.contracts.errors import EditRefused, InvalidInput
from tasklore.memory.documents.edits import (
    ABSENT,
    Applied,
    Change,
    apply_changes,
    apply_edits,
    dump_changes,
    inverse,
    load_changes,
)
from tasklore.memory.documents.paths import Path, parse

FOOD: Any = {
    "food": {
        "likes": ["pasta", "omelettes", "eggs", "fish", "rice"],
        "dislikes": [],
        "diet": None,
        "grid": [[1, 2], [3]],
    },
    "note": "x",
}


def applied(*edits: Edit, body: Any = FOOD) -> Applied:
    """Apply *edits*, and check that the body given stays as it was and that the way back is exact, both ways."""
    given = deepcopy(body)
    outcome = apply_edits(body, edits)
    back = apply_changes(outcome.body, inverse(outcome.changes))

    assert json.dumps(body) == json.dumps(given)
    assert json.dumps(back) == json.dumps(given)
    assert json.dumps(apply_changes(back, outcome.changes)) == json.dumps(outcome.body)
    assert (
        load_changes(json.loads(json.dumps(dump_changes(outcome.changes))))
        == outcome.changes
    )
    return outcome


def likes(*edits: Edit) -> list[str]:
    """Return `food.likes` after *edits*."""
    body: Any = applied(*edits).body
    likes: list[str] = body["food"]["likes"]
    return likes


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("food.likes", ["pasta", "omelettes", "eggs", "fish", "rice", "new"]),
        ("food.likes[-]", ["pasta", "omelettes", "eggs", "fish", "rice", "new"]),
        ("food.likes[0]", ["new", "pasta", "omelettes", "eggs", "fish", "rice"]),
        ("$.food.likes[2]", ["pasta", "omelettes", "new", "eggs", "fish", "rice"]),
        ("food.likes[-1]", ["pasta", "omelettes", "eggs", "fish", "new", "rice"]),
    ],
)
def test_an_insert_goes_to_the_end_of_a_list_or_before_an_item(
    path: str, expected: list[str]
) -> None:
    assert likes(Insert(path=path, new_value="new")) == expected


def test_an_insert_adds_a_name_and_an_update_or_a_delete_needs_what_it_names() -> None:
    """Objects keep the order of their names."""
    body: Any = applied(
        Insert(path="food.drinks", new_value=["tea"]),
        Update(path="food.diet", new_value="vegan"),
        Delete(path="food.dislikes"),
        Insert(path="food.last", new_value=1),
    ).body

    assert list(body["food"]) == ["likes", "diet", "grid", "drinks", "last"]
    assert body["food"]["diet"] == "vegan"
    assert body["note"] == "x"


def test_the_edits_of_one_list_do_not_shift_each_other() -> None:
    """Every index is that of the list before the plan, in whatever order the edits come."""
    edits: list[Edit] = [
        Delete(path="food.likes[1]"),
        Insert(path="food.likes[1]", new_value="before 1"),
        Delete(path="food.likes[4]"),
        Update(path="food.likes[3]", new_value="FISH"),
        Insert(path="food.likes", new_value="end"),
        Insert(path="food.likes[3]", new_value="before 3"),
        Delete(path="food.likes[-5]"),
    ]
    expected = ["before 1", "eggs", "before 3", "FISH", "end"]

    assert likes(*edits) == expected
    assert likes(*reversed(edits)) == expected


def test_inserts_at_one_place_keep_the_order_of_the_plan() -> None:
    """In front of an item and at the end, however the end is spelled."""
    assert likes(
        Insert(path="food.likes", new_value="x"),
        Insert(path="food.likes[0]", new_value="a"),
        Insert(path="food.likes[-]", new_value="y"),
        Insert(path="food.likes[0]", new_value="b"),
        Insert(path="food.likes[5]", new_value="z"),
    ) == ["a", "b", "pasta", "omelettes", "eggs", "fish", "rice", "x", "y", "z"]


def test_an_update_to_the_same_number_of_another_kind_is_one() -> None:
    """1, 1.0 and true are different JSON."""
    for old, new in (
        (1, True),
        (1, 1.0),
        (0, False),
        ([1], [True]),
        ({"a": 0}, {"a": 0.0}),
    ):
        outcome = applied(Update(path="a", new_value=new), body={"a": old})
        assert json.dumps(outcome.body) == json.dumps({"a": new})


@pytest.mark.parametrize(
    ("edit", "reason", "says"),
    [
        (
            Insert(path="food.likes[", new_value=1),
            "path",
            "character 12: found the end",
        ),
        (Insert(path="food.*", new_value=1), "path", "selects any number of places"),
        (
            Insert(path="note", new_value=1),
            "path",
            "something at 'note' already; use update",
        ),
        (Insert(path="$", new_value=1), "path", "use update"),
        (Delete(path="$"), "path", "cannot be deleted"),
        (Insert(path="drinks.hot", new_value=1), "missing", "there is no 'drinks.hot'"),
        (Insert(path="food.likes[6]", new_value=1), "missing", "is a list of 5"),
        (Insert(path="food[0]", new_value=1), "missing", "no index"),
        (Update(path="food.like", new_value=1), "missing", "nearest is 'food.likes'"),
        (Delete(path="food.likes[-]"), "missing", "[-] is where to insert"),
    ],
)
def test_an_edit_that_does_not_fit_refuses_the_whole_plan(
    edit: Edit, reason: str, says: str
) -> None:
    """With its word and a cure; the edits beside it are not applied either."""
    with pytest.raises(EditRefused) as refused:
        applied(Update(path="note", new_value="y"), edit)

    assert refused.value.reason == reason
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "edits",
    [
        [Delete(path="food.likes[1]"), Delete(path="food.likes[-4]")],
        [Update(path="note", new_value=1), Update(path="$['note']", new_value=2)],
        [Insert(path="new", new_value=1), Insert(path="new", new_value=2)],
        [Delete(path="food"), Update(path="food.diet", new_value=1)],
        [
            Update(path="food.likes", new_value=[]),
            Insert(path="food.likes[0]", new_value=1),
        ],
        [Update(path="$", new_value={}), Insert(path="new", new_value=1)],
    ],
)
def test_two_edits_that_meet_are_refused(edits: list[Edit]) -> None:
    """At one place, or one inside what the other replaces or deletes, in either order."""
    for plan in (edits, edits[::-1]):
        with pytest.raises(EditRefused, match="keep one of") as refused:
            applied(*plan)
        assert refused.value.reason == "overlap"


def test_a_value_that_was_inserted_is_not_written_to_by_later_changes() -> None:
    """The edit that brought it in keeps its own."""
    edit = Insert(path="food.new", new_value={"deep": [1]})
    first = applied(edit)
    second = apply_edits(
        first.body,
        [Delete(path="food.new.deep[0]"), Insert(path="food.new.more", new_value=2)],
    )
    again = apply_changes(FOOD, (*first.changes, *second.changes))

    assert edit.new_value == {"deep": [1]}
    assert again == second.body


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"food": {"likes": ["pasta"]}}, "missing"),
        ({"food": {"likes": ["pasta", "OMELETTES"]}}, "overlap"),
        ({"food": {"likes": {"1": "omelettes"}}}, "missing"),
        ({"food": None}, "missing"),
    ],
)
def test_changes_are_refused_by_a_document_they_were_not_made_of(
    body: Any, reason: str
) -> None:
    """So that a stale record damages nothing."""
    changes = applied(Delete(path="food.likes[1]")).changes

    with pytest.raises(EditRefused) as refused:
        apply_changes(body, changes)
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (Change(parse("note"), ABSENT, "y"), "overlap"),
        (Change(parse("food.likes[6]"), ABSENT, "y"), "missing"),
        (Change(parse("food.likes[-1]"), "rice", "y"), "missing"),
        (Change(parse("nowhere.new"), ABSENT, "y"), "missing"),
        (Change(Path(), ABSENT, "y"), "overlap"),
    ],
)
def test_a_change_that_fits_nowhere_is_refused(change: Change, reason: str) -> None:
    """A record may be damaged."""
    with pytest.raises(EditRefused) as refused:
        apply_changes(FOOD, [change])
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    "record",
    [
        None,
        {"path": "a", "after": 1},
        [{"after": 1}],
        [{"path": "a[", "after": 1}],
        [{"path": "a", "after": 1, "more": 2}],
    ],
)
def test_a_damaged_record_of_changes_is_refused(record: Any) -> None:
    """Nothing is guessed."""
    with pytest.raises(InvalidInput):
        load_changes(record)
