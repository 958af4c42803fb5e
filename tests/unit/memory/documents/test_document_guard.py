"""What no edit may do to a document: write its metadata, lose its shape, hold what JSON cannot, outgrow its limits."""

import json
from typing import Any

import pytest

from tasklore.contracts.edits import Delete, Edit, Insert, Update
from tasklore.contracts.errors import EditRefused
from tasklore.memory.documents.edits import apply_edits
from tasklore.memory.documents.guard import (
    LIMITS,
    DocumentLimits,
    check,
    check_document,
    growth_of,
    size_of,
)

ITEM: Any = {
    "item": "pasta", "display": "Pasta", "added": "2025-12-28", "expiry": None, "confidence": 0.9,
    "durability": "long_term", "source": "told", "tags": ["quick"],
}  # fmt: skip
FOOD: Any = {
    "_metadata": {
        "resource_id": "resource_user_food_prefs",
        "tags": ["food"],
        "revision": 3,
    },
    "food": {
        "likes": [ITEM, {"item": "eggs", "display": "Eggs"}],
        "dislikes": [],
        "style": "slow",
        "diet": None,
    },
    "routine": {
        "daily": {
            "morning": {
                "item": "run",
                "display": "Run",
                "days": ["mon"],
                "details": {"pace": "slow", "places": ["park"]},
            }
        }
    },
    "age": 40,
}


def refusal(
    *edits: Edit,
    body: Any = FOOD,
    limits: DocumentLimits = LIMITS,
    size: int | None = None,
) -> tuple[str, str] | None:
    """Return the word and the message with which *edits* are refused, None when they are not."""
    outcome = apply_edits(body, edits)
    try:
        check(body, outcome.body, outcome.changes, limits, size=size)
    except EditRefused as error:
        return error.reason, str(error)
    return None


@pytest.mark.parametrize(
    "edit",
    [
        Insert(path="food.likes", new_value=ITEM),
        Update(
            path="food.likes[0]",
            new_value={"item": "rice", "display": "Rice", "confidence": 1, "new": [1]},
        ),
        Update(path="food.likes[0].expiry", new_value="2026-01-01"),
        Update(path="food.diet", new_value=["vegan"]),
        Update(path="food.style", new_value=None),
        Update(
            path="routine.daily.morning", new_value={"item": "swim", "display": "Swim"}
        ),
        Update(
            path="routine.daily.morning",
            new_value={"item": "run", "display": "Run", "details": {"pace": None}},
        ),
        Delete(path="food.likes[0]"),
        Delete(path="food.likes[0].expiry"),
        Delete(path="routine.daily.morning"),
    ],
)
def test_what_keeps_the_shape_is_allowed(edit: Edit) -> None:
    """Items come, change and go; a null may become something."""
    assert refusal(edit) is None


@pytest.mark.parametrize(
    "edits",
    [
        [Update(path="_metadata.revision", new_value=9)],
        [Insert(path="_metadata.tags", new_value="health")],
        [Insert(path="$['_metadata'].new", new_value=1)],
        [Delete(path="_metadata")],
        [Update(path="$", new_value=[])],
        [Update(path="$", new_value={"food": FOOD["food"], "routine": {}, "age": 1})],
        [
            Update(
                path="$",
                new_value={**FOOD, "_metadata": {**FOOD["_metadata"], "revision": 3.0}},
            )
        ],
    ],
)
def test_the_metadata_of_a_document_is_written_by_no_edit(edits: list[Edit]) -> None:
    """Not through a quoted name and not with the whole document either."""
    word, says = refusal(*edits) or ("", "")

    assert word == "protected"
    assert "'_metadata'" in says


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (
            Update(path="food.likes", new_value="eggs"),
            "'food.likes' is a list and cannot become a text; write a list",
        ),
        (
            Update(path="food", new_value=[]),
            "'food' is an object and cannot become a list",
        ),
        (Update(path="food.style", new_value=1), "a text and cannot become a number"),
        (
            Update(path="age", new_value=True),
            "a number and cannot become true or false",
        ),
        (
            Update(path="food.likes[0]", new_value={"note": "eggs"}),
            "is an item and would be none",
        ),
        (
            Update(path="food.likes[0]", new_value={**ITEM, "confidence": "high"}),
            "'food.likes[0].confidence' is a number",
        ),
        (
            Update(path="food.likes[0]", new_value={**ITEM, "tags": "quick"}),
            "'food.likes[0].tags' is a list",
        ),
        (
            Update(path="food.likes[0].confidence", new_value=None),
            "a number and cannot become null",
        ),
        (
            Update(path="food.likes[0].expiry", new_value={"on": "friday"}),
            "null and cannot become an object",
        ),
        (
            Update(path="food", new_value={"likes": [], "style": "x"}),
            "'food.dislikes' is a place for items and stays",
        ),
        (
            Delete(path="food.likes"),
            "'food.likes' is a place for items and stays; delete what is in its lists",
        ),
        (
            Delete(path="food.likes[0].display"),
            "says what the item is; delete the whole item",
        ),
    ],
)
def test_lists_sections_and_items_stay_what_they_are(edit: Edit, says: str) -> None:
    word, message = refusal(edit) or ("", "")

    assert word == "type"
    assert says in message


@pytest.mark.parametrize(
    "value",
    [
        float("nan"), float("inf"), -float("inf"), 2**53, -(2**53), 10**400, "\ud800", "a\udfffb",
        {1: "x"}, {None: "x"}, {"\ud800": "x"}, (1, 2), {1, 2}, b"x", object(), {"deep": [{"x": float("nan")}]},
    ],
)  # fmt: skip
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    """Wherever it stands in a new value; other readers would choke on it or change it."""
    edit = Insert.model_construct(
        path="food.likes", new_value=value, reason="", file=None
    )

    assert (refusal(edit) or ("",))[0] == "value"
    with pytest.raises(EditRefused) as refused:
        check_document({"a": [value]})
    assert refused.value.reason == "value"


def nested(levels: int) -> Any:
    """Return lists in lists, *levels* of them."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_document_is_as_deep_as_allowed_and_no_deeper() -> None:
    """Wherever the depth is added; a value of ten thousand levels costs no recursion."""
    limits = DocumentLimits(max_depth=5)

    assert check_document(nested(5), limits) == 10
    assert (
        refusal(Insert(path="food.dislikes", new_value=nested(2)), limits=limits)
        is None
    )
    for levels in (3, 4, 10_000):
        edit = Insert.model_construct(
            path="food.dislikes", new_value=nested(levels), reason="", file=None
        )
        word, says = refusal(edit, limits=limits) or ("", "")
        assert word == "depth"
        assert "'food.dislikes[0][0][0]' is deeper than 5 levels" in says


def test_lists_objects_texts_and_names_are_as_long_as_allowed() -> None:
    """One more is refused with its place."""
    limits = DocumentLimits(max_items=3, max_text=10, max_name=6)
    body: Any = {"list": [1, 2], "dict": {"a": 1, "b": 2}}

    assert refusal(Insert(path="list", new_value=3), body=body, limits=limits) is None
    assert (
        refusal(
            Insert(path="dict.second", new_value="0123456789"),
            body=body,
            limits=DocumentLimits(max_text=10),
        )
        is None
    )
    for edits, says in (
        (
            [Insert(path="list", new_value=3), Insert(path="list[0]", new_value=4)],
            "'list' would have 4 entries of at most 3",
        ),
        (
            [Insert(path="dict.c", new_value=3), Insert(path="dict.d", new_value=4)],
            "'dict' would have 4 entries",
        ),
        (
            [Insert(path="list", new_value=[1, 2, 3, 4])],
            "'list[2]' would have 4 entries",
        ),
        (
            [Insert(path="dict.c", new_value="01234567890")],
            "'dict.c' has 11 characters of at most 10",
        ),
        (
            [Insert(path="dict.longname", new_value=1)],
            "a name in 'dict' has more than 6 characters",
        ),
        (
            [Insert(path="list", new_value={"a": {"longname": 1}})],
            "a name in 'list[2].a' has more",
        ),
    ):
        word, message = refusal(*edits, body=body, limits=limits) or ("", "")
        assert word == "size"
        assert says in message


def test_what_was_too_much_already_may_be_made_less() -> None:
    body: Any = {"list": list(range(10)), "text": "long" * 10, "other": 1}
    limits = DocumentLimits(max_items=3, max_text=10, max_bytes=20)

    assert (
        refusal(
            Delete(path="list[0]"),
            Update(path="other", new_value=2),
            body=body,
            limits=limits,
        )
        is None
    )
    assert (
        refusal(Update(path="text", new_value="short"), body=body, limits=limits)
        is None
    )
    assert (
        refusal(Insert(path="list", new_value=1), body=body, limits=limits) or ("",)
    )[0] == "size"
    assert (
        refusal(Update(path="other", new_value=10), body=body, limits=limits) or ("",)
    )[0] == "size"


@pytest.mark.parametrize("known", [True, False])
def test_a_document_grows_to_its_last_byte(known: bool) -> None:
    """Whether its size is known beforehand or measured."""
    body: Any = {"a": ["ü"], "b": {}}
    size = len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())
    edit = Insert(path="b.c", new_value="x\n")
    limits = DocumentLimits(max_bytes=size + len('"c":"x\\n"'))
    below = DocumentLimits(max_bytes=limits.max_bytes - 1)

    assert size_of(body) == check_document(body) == size
    assert refusal(edit, body=body, limits=limits, size=size if known else None) is None
    word, says = refusal(
        edit, body=body, limits=below, size=size if known else None
    ) or ("", "")
    assert word == "size"
    assert (
        f"would have {limits.max_bytes} bytes of the {below.max_bytes} it may have"
        in says
    )


@pytest.mark.parametrize(
    "edit",
    [
        Insert(path="food.likes", new_value=ITEM),
        Insert(path="food.mood", new_value="calm"),
        Update(path="food.style", new_value="quick and easy"),
        Delete(path="food.likes[0]"),
        Delete(path="food.style"),
        Delete(path="age"),
    ],
)
def test_growth_is_what_a_change_adds_or_a_byte_more(edit: Edit) -> None:
    """A document that is read with its size is measured anew only where that may not be enough."""
    outcome = apply_edits(FOOD, [edit])
    grown = size_of(outcome.body) - size_of(FOOD)
    assert growth_of(outcome.changes) - grown in (0, 1)


def test_a_value_that_holds_one_part_many_times_is_not_walked_to_the_end() -> None:
    """Forty lists can stand for a million million entries."""
    bomb: Any = ["x"] * 40
    for _ in range(7):
        bomb = [bomb] * 40
    edit = Insert.model_construct(
        path="food.dislikes", new_value=bomb, reason="", file=None
    )

    word, says = refusal(edit) or ("", "")
    assert word == "size"
    assert "more than 262144 bytes" in says


def test_a_value_that_holds_itself_is_refused() -> None:
    """It is endlessly deep."""
    ring: Any = []
    ring.append(ring)

    assert (
        refusal(
            Insert.model_construct(
                path="food.dislikes", new_value=ring, reason="", file=None
            )
        )
        or ("",)
    )[0] == "depth"


def test_metadata_cannot_be_added_by_an_edit_and_may_be_replaced_by_the_same() -> None:
    assert (refusal(Insert(path="_metadata", new_value={}), body={"a": 1}) or ("",))[
        0
    ] == "protected"
    assert refusal(Update(path="$", new_value={**FOOD, "age": 41})) is None
