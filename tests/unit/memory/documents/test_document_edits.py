"""Edits of a document: each at the place it names in the document as given, all of them or none, and back again."""

import json
from copy import deepcopy
from typing import Any

import pytest

from contracts.edits import Delete, Edit, Insert, NoChange, Update
from contracts.errors import EditRefused, InvalidInput
from memory.documents.edits import (
    ABSENT,
    Applied,
    Change,
    apply_changes,
    apply_edits,
    dump_changes,
    inverse,
    load_changes,
    place_of,
)
from memory.documents.paths import Path, parse

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
    assert load_changes(json.loads(json.dumps(dump_changes(outcome.changes)))) == outcome.changes
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
        ("food.likes[5]", ["pasta", "omelettes", "eggs", "fish", "rice", "new"]),
        ("food.likes[0]", ["new", "pasta", "omelettes", "eggs", "fish", "rice"]),
        ("$.food.likes[2]", ["pasta", "omelettes", "new", "eggs", "fish", "rice"]),
        ("food.likes[-1]", ["pasta", "omelettes", "eggs", "fish", "new", "rice"]),
    ],
)
def test_an_insert_goes_to_the_end_of_a_list_or_before_an_item(path: str, expected: list[str]) -> None:
    """The list itself and [-] are the end, an index is in front of what is there now."""
    assert likes(Insert(path=path, new_value="new")) == expected


def test_an_index_last_in_a_path_is_a_place_in_its_list_even_when_a_list_stands_there() -> None:
    """To append to a list in a list one says [-]."""
    before: Any = applied(Insert(path="food.grid[1]", new_value=0)).body
    behind: Any = applied(Insert(path="food.grid[1][-]", new_value=0)).body

    assert before["food"]["grid"] == [[1, 2], 0, [3]]
    assert behind["food"]["grid"] == [[1, 2], [3, 0]]


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


def test_the_whole_document_can_be_replaced() -> None:
    """By a value of any kind."""
    assert applied(Update(path="$", new_value=[1])).body == [1]
    assert applied(Insert(path="$", new_value=2), body=[1]).body == [1, 2]
    assert applied(Update(path="$", new_value=None), body=3).body is None


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


def test_an_edit_in_an_item_meets_it_where_it_was() -> None:
    """Whatever is inserted or deleted before it."""
    body: Any = applied(
        Insert(path="food.grid[0]", new_value="new"),
        Update(path="food.grid[1][0]", new_value=33),
        Delete(path="food.grid[0][0]"),
        Insert(path="food.grid[1]", new_value="between"),
    ).body

    assert body["food"]["grid"] == ["new", [2], "between", [33]]


def test_no_change_changes_nothing() -> None:
    """Wherever it points, even alone; an update to what is there is none either."""
    outcome = applied(NoChange(path="nowhere[*]"), NoChange(), Update(path="note", new_value="x"))

    assert outcome.body is FOOD
    assert outcome.changes == ()


def test_an_update_to_the_same_number_of_another_kind_is_one() -> None:
    """1, 1.0 and true are different JSON."""
    for old, new in ((1, True), (1, 1.0), (0, False), ([1], [True]), ({"a": 0}, {"a": 0.0})):
        outcome = applied(Update(path="a", new_value=new), body={"a": old})
        assert json.dumps(outcome.body) == json.dumps({"a": new})


@pytest.mark.parametrize(
    ("edit", "reason", "says"),
    [
        (Insert(path="food.likes[", new_value=1), "path", "character 12: found the end"),
        (Insert(path="food.*", new_value=1), "path", "selects any number of places"),
        (Insert(path="note", new_value=1), "path", "something at 'note' already; use update"),
        (Insert(path="food", new_value=1), "path", "use update"),
        (Insert(path="$", new_value=1), "path", "use update"),
        (Delete(path="$"), "path", "cannot be deleted"),
        (Insert(path="drinks.hot", new_value=1), "missing", "there is no 'drinks.hot'"),
        (Insert(path="food.likes[6]", new_value=1), "missing", "is a list of 5"),
        (Insert(path="food.likes[-6]", new_value=1), "missing", "is a list of 5"),
        (Insert(path="food.likes.eggs", new_value=1), "missing", "whose items have an [index]"),
        (Insert(path="food[0]", new_value=1), "missing", "no index"),
        (Insert(path="note.more", new_value=1), "missing", "holds nothing further"),
        (Update(path="food.like", new_value=1), "missing", "nearest is 'food.likes'"),
        (Update(path="food.likes[5]", new_value=1), "missing", "nearest is 'food.likes[4]'"),
        (Update(path="food.likes[-]", new_value=1), "missing", "[-] is where to insert"),
        (Delete(path="food.likes[7]"), "missing", "is a list of 5"),
        (Delete(path="food.likes[-]"), "missing", "[-] is where to insert"),
    ],
)
def test_an_edit_that_does_not_fit_refuses_the_whole_plan(edit: Edit, reason: str, says: str) -> None:
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
        [Update(path="note", new_value=1), Delete(path="note")],
        [Insert(path="new", new_value=1), Insert(path="new", new_value=2)],
        [Delete(path="food"), Update(path="food.diet", new_value=1)],
        [Insert(path="food.likes", new_value=1), Delete(path="food.likes")],
        [Update(path="food.likes", new_value=[]), Insert(path="food.likes[0]", new_value=1)],
        [Insert(path="food.new", new_value=1), Update(path="food", new_value={})],
        [Update(path="$", new_value={}), Insert(path="new", new_value=1)],
        [Delete(path="food.grid[0]"), Delete(path="food.grid[0][1]")],
    ],
)
def test_two_edits_that_meet_are_refused(edits: list[Edit]) -> None:
    """At one place, or one inside what the other replaces or deletes, in either order."""
    for plan in (edits, edits[::-1]):
        with pytest.raises(EditRefused, match="keep one of") as refused:
            applied(*plan)
        assert refused.value.reason == "overlap"


def test_what_did_not_change_is_shared_with_the_old_document() -> None:
    """Only the containers on the way to a change are copied, each once."""
    outcome: Any = applied(*(Delete(path=f"food.likes[{index}]") for index in range(4))).body

    assert outcome["food"]["grid"] is FOOD["food"]["grid"]
    assert outcome["food"]["dislikes"] is FOOD["food"]["dislikes"]
    assert outcome["food"] is not FOOD["food"]


def test_a_value_that_was_inserted_is_not_written_to_by_later_changes() -> None:
    """The edit that brought it in keeps its own."""
    edit = Insert(path="food.new", new_value={"deep": [1]})
    first = applied(edit)
    second = apply_edits(first.body, [Delete(path="food.new.deep[0]"), Insert(path="food.new.more", new_value=2)])
    again = apply_changes(FOOD, (*first.changes, *second.changes))

    assert edit.new_value == {"deep": [1]}
    assert again == second.body


def test_changes_say_what_happened_in_the_order_it_did() -> None:
    """Each with a path that holds when its turn comes, and what was there before and after."""
    changes = applied(
        Delete(path="food.likes[1]"), Delete(path="food.likes[3]"), Insert(path="food.likes[3]", new_value="x")
    ).changes

    assert [(str(change.path), change.before, change.after, change.place) for change in changes] == [
        ("food.likes[3]", "fish", ABSENT, "list"),
        ("food.likes[3]", ABSENT, "x", "list"),
        ("food.likes[1]", "omelettes", ABSENT, "list"),
    ]
    assert applied(Delete(path="food.diet")).changes == (Change(parse("food.diet"), None, ABSENT, ahead="grid"),)
    assert applied(Update(path="$", new_value=1)).changes[0].place == "root"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"food": {"likes": ["pasta"]}}, "missing"),
        ({"food": {"likes": ["pasta", "OMELETTES"]}}, "overlap"),
        ({"food": {"likes": {"1": "omelettes"}}}, "missing"),
        ({"food": None}, "missing"),
        (None, "missing"),
    ],
)
def test_changes_are_refused_by_a_document_they_were_not_made_of(body: Any, reason: str) -> None:
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
        (Change(parse("food.likes[-1]"), ABSENT, "y"), "missing"),
        (Change(parse("food.likes[-1]"), "rice", "y"), "missing"),
        (Change(parse("food.likes[-]"), ABSENT, "y"), "missing"),
        (Change(parse("food.likes.new"), ABSENT, "y"), "missing"),
        (Change(parse("food[0]"), ABSENT, "y"), "missing"),
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
        ["a"],
        [{"after": 1}],
        [{"path": 1, "after": 1}],
        [{"path": "a"}],
        [{"path": "a[", "after": 1}],
        [{"path": "a", "after": 1, "ahead": 2}],
        [{"path": "a", "after": 1, "more": 2}],
    ],
)
def test_a_damaged_record_of_changes_is_refused(record: Any) -> None:
    """Nothing is guessed."""
    with pytest.raises(InvalidInput):
        load_changes(record)


def test_null_is_recorded_as_a_value() -> None:
    """To set null and to delete are two things, before and after."""
    record = dump_changes(applied(Delete(path="food.diet"), Insert(path="food.x", new_value=None)).changes)

    assert record == [
        {"path": "food.diet", "before": None, "ahead": "grid"},
        {"path": "food.x", "after": None},
    ]


def test_a_name_comes_back_between_its_neighbours() -> None:
    """When several neighbours went together too; when the neighbour is gone, at the end."""
    body = {"a": 1, "b": 2, "c": 3, "d": 4}
    for names in ("abc", "cba", "bd", "acd"):
        applied(*(Delete(path=name) for name in names), body=body)

    changes = applied(Delete(path="b"), body=body).changes
    back: Any = apply_changes({"a": 1, "d": 4}, inverse(changes))
    assert list(back) == ["a", "d", "b"]


def test_the_place_of_an_edit_counts_from_the_front() -> None:
    """An insert has the place where its value would stand."""
    assert str(place_of(FOOD, Insert(path="food.likes", new_value=1))) == "food.likes[5]"
    assert str(place_of(FOOD, Delete(path="food.likes[-1]"))) == "food.likes[4]"


def test_a_plan_of_as_many_edits_as_allowed_copies_a_list_once() -> None:
    """Five hundred edits of one list of two thousand are one copy of it, not five hundred."""

    class Counting(list[int]):
        """Counts its copies."""

        copies = 0

        def copy(self) -> "Counting":
            Counting.copies += 1
            return Counting(self)

    edits = tuple(Delete(path=f"$[{index}]") for index in range(0, 2000, 4))
    outcome: Any = apply_edits(Counting(range(2000)), edits).body

    assert len(outcome) == 1500
    assert outcome[:4] == [1, 2, 3, 5]
    assert Counting.copies == 1
