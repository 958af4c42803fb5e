"""Edits and undos are carried over later changes: moved places are found again, collisions refused."""

from typing import Any

import pytest

from tasklore.contracts.edits import Delete, Edit, Insert, Update
from tasklore.contracts.errors import EditRefused, UndoRefused
from tasklore.memory.documents.edits import apply_changes, apply_edits, inverse
from tasklore.memory.documents.rebase import PlanChanges, cross, rebase_edits, take_back

FOOD: Any = {
    "food": {"likes": [{"item": letter} for letter in "abcde"], "diet": None},
    "grid": [[1, 2], [3, 4]],
}


def rebased(edit: Edit, *over: Edit, body: Any = FOOD) -> str:
    """Return the path of *edit* after *over*, and check that both ways to say where it was agree."""
    changes = apply_edits(body, over).changes
    (without,) = rebase_edits([edit], changes)
    (resolved,) = rebase_edits([edit], changes, body)
    after = apply_edits(body, over).body

    assert apply_edits(after, [without]) == apply_edits(after, [resolved])
    return without.path


def history_of(*plans: list[Edit], body: Any = FOOD) -> tuple[Any, list[PlanChanges]]:
    """Apply *plans*, each to what the one before left; return the body, and what "plan 0", "plan 1" and so on did."""
    history: list[PlanChanges] = []
    for number, edits in enumerate(plans):
        outcome = apply_edits(body, edits)
        history.append(PlanChanges(f"plan {number}", outcome.changes))
        body = outcome.body
    return body, history


def undo(body: Any, history: list[PlanChanges], plan_id: str) -> Any:
    """Return *body* without what *plan_id* did, and add the undo to *history* as "undo of" it."""
    back = take_back(history, plan_id)
    history.append(PlanChanges(f"undo of {plan_id}", back, plan_id))
    return apply_changes(body, back)


def undone(plan: list[Edit], *later: list[Edit], body: Any = FOOD) -> Any:
    """Apply *plan* and all *later* ones, and return the body after its undo; both ways to work that out agree."""
    after, history = history_of(plan, *later, body=body)
    over = [change for deed in history[1:] for change in deed.changes]

    assert take_back(history, "plan 0") == cross(inverse(history[0].changes), over)[0]
    return undo(after, history, "plan 0")


@pytest.mark.parametrize(
    ("path", "over", "expected"),
    [
        ("food.likes[2]", Insert(path="food.likes[0]", new_value=1), "food.likes[3]"),
        ("food.likes[2]", Insert(path="food.likes[2]", new_value=1), "food.likes[3]"),
        ("food.likes[2]", Insert(path="food.likes[3]", new_value=1), "food.likes[2]"),
        ("food.likes[2]", Delete(path="food.likes[0]"), "food.likes[1]"),
        ("food.likes[2].item", Delete(path="food.likes[1]"), "food.likes[1].item"),
        ("grid[1][0]", Delete(path="grid[0]"), "grid[0][0]"),
        ("food.diet", Insert(path="food.drinks", new_value=1), "food.diet"),
        (
            "$['food']['diet']",
            Insert(path="food.drinks", new_value=1),
            "$['food']['diet']",
        ),
    ],
)
def test_a_place_moves_along_with_what_stands_there(
    path: str, over: Edit, expected: str
) -> None:
    """For an update and for a delete."""
    assert rebased(Delete(path=path), over) == expected
    assert rebased(Update(path=path, new_value=7), over) == expected


@pytest.mark.parametrize(
    ("path", "over", "expected"),
    [
        ("food.likes[2]", Insert(path="food.likes[2]", new_value=1), "food.likes[3]"),
        ("food.likes[2]", Insert(path="food.likes[3]", new_value=1), "food.likes[2]"),
        ("food.likes[2]", Delete(path="food.likes[1]"), "food.likes[1]"),
        ("food.likes[2]", Update(path="food.likes[2]", new_value=1), "food.likes[2]"),
        ("food.likes", Delete(path="food.likes[2]"), "food.likes"),
        ("food.likes[-]", Insert(path="food.likes", new_value=1), "food.likes[-]"),
        ("grid[1][-]", Delete(path="grid[0]"), "grid[0][-]"),
    ],
)
def test_where_an_insert_goes_moves_along(path: str, over: Edit, expected: str) -> None:
    assert rebased(Insert(path=path, new_value=9), over) == expected


@pytest.mark.parametrize(
    ("edit", "over"),
    [
        (
            Update(path="food.diet", new_value="x"),
            Update(path="food.diet", new_value="y"),
        ),
        (
            Update(path="food.likes[2].item", new_value="x"),
            Delete(path="food.likes[2]"),
        ),
        (
            Update(path="food.likes[2]", new_value="x"),
            Update(path="food.likes[2].item", new_value="y"),
        ),
        (
            Delete(path="food.likes[2]"),
            Insert(path="food.likes[2].note", new_value="y"),
        ),
        (Delete(path="food.likes[2]"), Delete(path="food.likes[2]")),
        (
            Insert(path="food.likes[0]", new_value="x"),
            Update(path="food", new_value={}),
        ),
        (
            Insert(path="food.new", new_value="x"),
            Insert(path="food.new", new_value="y"),
        ),
        (Update(path="$", new_value="x"), Update(path="food.diet", new_value="y")),
    ],
)
def test_edits_that_meet_a_change_are_refused(edit: Edit, over: Edit) -> None:
    """At one place, or one in what the other replaced or deleted; the message names the place."""
    with pytest.raises(
        EditRefused, match="has changed since the edit was planned"
    ) as refused:
        rebased(edit, over)
    assert refused.value.reason == "overlap"


def test_an_index_from_the_end_needs_the_older_body_where_its_list_has_changed() -> (
    None
):
    edit = Delete(path="food.likes[-1]")
    longer = apply_edits(FOOD, [Insert(path="food.likes", new_value=1)]).changes
    elsewhere = apply_edits(FOOD, [Delete(path="grid[0]")]).changes

    assert rebase_edits([edit], longer, FOOD) == (Delete(path="food.likes[4]"),)
    assert rebase_edits([edit], elsewhere) == (edit,)
    with pytest.raises(EditRefused) as refused:
        rebase_edits([edit], longer)
    assert refused.value.reason == "overlap"


def test_inserts_that_come_to_one_place_keep_the_order_they_had_in_the_list() -> None:
    """Not that of the plan, when what stood between them is gone."""
    first = apply_edits(
        FOOD, [Delete(path="food.likes[2]"), Delete(path="food.likes[3]")]
    )
    second = [
        Insert(path="food.likes[4]", new_value="third"),
        Insert(path="food.likes[2]", new_value="first"),
        Update(path="food.diet", new_value="x"),
        Insert(path="food.likes[-2]", new_value="second"),
        Insert(path="food.likes[4]", new_value="fourth"),
    ]
    body: Any = apply_edits(first.body, rebase_edits(second, first.changes, FOOD)).body

    items = [
        {"item": "a"},
        {"item": "b"},
        "first",
        "second",
        "third",
        "fourth",
        {"item": "e"},
    ]
    assert body["food"]["likes"] == items


def test_an_undo_passes_over_what_others_changed_elsewhere() -> None:
    """Deleted items come back between those that are left, inserted ones go, wherever they are now."""
    plan: list[Edit] = [
        Delete(path="food.likes[1]"),
        Insert(path="food.likes", new_value="new"),
        Update(path="food.diet", new_value="vegan"),
    ]
    body = undone(
        plan,
        [Insert(path="food.likes[0]", new_value="first")],
        [Delete(path="food.likes[1]")],
        [
            Insert(path="food.likes", new_value="last"),
            Delete(path="grid[0]"),
            Insert(path="food.drinks", new_value=[]),
        ],
    )

    assert body["food"]["likes"] == [
        "first",
        {"item": "b"},
        {"item": "c"},
        {"item": "d"},
        {"item": "e"},
        "last",
    ]
    assert body["food"]["diet"] is None
    assert (body["food"]["drinks"], body["grid"]) == ([], [[3, 4]])


@pytest.mark.parametrize(
    ("plan", "later", "place"),
    [
        (
            Update(path="food.diet", new_value="x"),
            Update(path="food.diet", new_value="y"),
            "food.diet",
        ),
        (
            Insert(path="food.likes[0]", new_value={}),
            Insert(path="food.likes[0].item", new_value="y"),
            "food.likes[0]",
        ),
        (
            Delete(path="food.diet"),
            Insert(path="food.diet", new_value="y"),
            "food.diet",
        ),
        (Delete(path="food.likes[0]"), Delete(path="food.likes"), "food.likes[0]"),
        (Update(path="$", new_value={"a": 1}), Update(path="a", new_value=2), "$"),
    ],
)
def test_an_undo_of_what_was_changed_again_is_refused_with_its_place(
    plan: Edit, later: Edit, place: str
) -> None:
    """The later edit is to be undone first."""
    with pytest.raises(UndoRefused) as refused:
        undone(
            [plan],
            [Insert(path="unrelated", new_value=0)] if plan.path != "$" else [],
            [later],
        )
    assert f"{place!r} was changed again by plan" in str(refused.value)


def test_an_undo_is_free_again_when_the_later_plan_was_undone() -> None:
    """Even with others in between, and when the place has moved meanwhile."""
    body, history = history_of(
        [Insert(path="food.likes", new_value={"item": "f"})],
        [
            Update(path="food.likes[5].item", new_value="g"),
            Insert(path="food.likes[5].note", new_value=1),
        ],
        [
            Insert(path="food.likes[0]", new_value="front"),
            Update(path="food.diet", new_value="y"),
        ],
    )
    with pytest.raises(
        UndoRefused,
        match=r"'plan 0' cannot .* 'food\.likes\[5\]' was changed again by plan 'plan 1'",
    ):
        take_back(history, "plan 0")
    body = undo(body, history, "plan 1")
    body = undo(body, history, "plan 0")

    assert body["food"]["likes"] == ["front", *FOOD["food"]["likes"]]
    with pytest.raises(UndoRefused, match="'undo of plan 0'"):
        take_back(history, "plan 0")


def test_what_somebody_puts_back_by_hand_is_another_thing() -> None:
    with pytest.raises(UndoRefused):
        undone(
            [Update(path="food.likes[2].item", new_value="C")],
            [Delete(path="food.likes[2]")],
            [Insert(path="food.likes[2]", new_value={"item": "C"})],
        )
