"""An imported document need not have every place of its kind: what is added there makes it."""

from contracts.edits import Delete, Insert
from memory.documents.edits import apply_edits
from workers.agents.memory_worker.places import with_missing_places

BODY = {"food": {"likes": ["eggs"]}}


def test_what_goes_to_places_that_are_not_there_makes_them() -> None:
    """Two items for one missing list make it once; whole branches are made; the other edits stay as they are."""
    edits = [
        Delete(path="food.likes[0]", file="f"),
        Insert(path="food.diets", new_value="vegan", file="f"),
        Insert(path="food.diets", new_value="low-carb", file="f"),
        Insert(path="health.needs", new_value="sleep", file="f"),
        Insert(path="food.likes", new_value="tofu", file="f"),
    ]

    made = with_missing_places(edits, lambda _: dict(BODY))

    assert apply_edits(BODY, made).body == {
        "food": {"likes": ["tofu"], "diets": ["vegan", "low-carb"]},
        "health": {"needs": ["sleep"]},
    }
