"""An imported document may lack places of its kind: the first addition makes them."""

from tasklore.contracts.edits import Delete, Insert
from tasklore.memory.documents.edits import apply_edits
from tasklore.workers.agents.memory_worker.places import with_missing_places
from tests.memory_bench import item

BODY = {"food": {"likes": ["eggs"]}}


def test_what_goes_to_places_that_are_not_there_makes_them() -> None:
    """Two items for one missing list make it once; whole branches are made; the other edits stay as they are."""
    edits = [
        Delete(path="food.likes[0]", file="f"),
        Insert(path="food.diets", new_value=item("Vegan"), file="f"),
        Insert(path="food.diets", new_value=item("Low-carb"), file="f"),
        Insert(path="health.needs", new_value=item("Sleep"), file="f"),
        Insert(path="food.likes", new_value=item("Tofu"), file="f"),
    ]

    made = with_missing_places(edits, lambda _: dict(BODY))

    assert apply_edits(BODY, made).body == {
        "food": {"likes": [item("Tofu")], "diets": [item("Vegan"), item("Low-carb")]},
        "health": {"needs": [item("Sleep")]},
    }


def test_the_mark_of_a_conflict_is_no_place() -> None:
    """A field of an item is added to it as it is."""
    mark = Insert(path="food.likes[0].conflict", new_value="plan", file="f")

    assert with_missing_places(
        [mark], lambda _: {"food": {"likes": [item("Eggs")]}}
    ) == (mark,)
