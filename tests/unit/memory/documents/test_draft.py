"""A draft: plans worked out one after the other, each whole or not at all, on a copy of the document."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tasklore.contracts.edits import Delete, Edit, Insert, Update
from tasklore.contracts.errors import EditRefused
from tasklore.memory.documents.draft import Document, Draft, Origin, Plan, Snapshot
from tasklore.memory.documents.guard import LIMITS, DocumentLimits
from tasklore.memory.documents.stamps import stamp, unstamp, with_stamp_of
from tasklore.memory.documents.storage.history import json_bytes

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FOOD = "resource_user_food_prefs"
ROUTINE = "resource_user_routine"


def body(*likes: Any) -> dict[str, Any]:
    """Return a document with *likes*."""
    metadata = {
        "resource_id": FOOD,
        "revision": 4,
        "last_updated": "2026-01-01",
        "tags": ["food"],
    }
    return {"_metadata": metadata, "food": {"likes": list(likes), "diets": []}}


def draft_of(
    *likes: Any, limits: DocumentLimits = LIMITS, known: tuple[str, ...] = ()
) -> Draft:
    """Return a draft of two documents of which the first has *likes*."""
    documents = {
        FOOD: Document(resource_id=FOOD, revision=4, body=body(*likes)),
        ROUTINE: Document(
            resource_id=ROUTINE, revision=0, body={"routine": {"daily": []}}
        ),
    }
    return Draft(Snapshot("u", documents), limits, NOW, known=known)


def plan(plan_id: str, *edits: Edit) -> Plan:
    """Return a plan of *edits*."""
    return Plan(plan_id=plan_id, edits=edits, origin=Origin(by="rules", at=NOW))


def insert(value: Any, path: str = "food.likes", file: str | None = FOOD) -> Insert:
    """Return an edit that adds *value*."""
    return Insert(path=path, new_value=value, file=file)


def likes(draft: Draft) -> Any:
    """Return what is liked by now."""
    food: Any = draft.documents[FOOD].body["food"]
    return food["likes"]


def test_plans_build_on_each_other() -> None:
    """Paths refer to what the plans before have left; every plan is a revision."""
    draft = draft_of("tea")
    draft.apply(plan("p1", insert("rice", "food.likes[0]")))
    second = draft.apply(
        plan("p2", Delete(path="food.likes[0]", file=FOOD), insert("jam"))
    )
    assert likes(draft) == ["tea", "jam"]
    assert second.revisions == {FOOD: 6}
    assert [str(change.path) for change in second.changes[FOOD]] == [
        "food.likes[2]",
        "food.likes[0]",
    ]
    assert [applied.plan.plan_id for applied in draft.applied] == ["p1", "p2"]


def test_the_snapshot_is_left_as_it_was() -> None:
    """Down to the last value, and whatever is shared with it."""
    draft = draft_of("tea", {"display": "Eggs"})
    before = json_bytes(draft.snapshot.documents[FOOD].body)
    draft.apply(
        plan(
            "p1",
            Update(path="food.likes[1].display", new_value="Ham", file=FOOD),
            insert("rice"),
        )
    )
    assert json_bytes(draft.snapshot.documents[FOOD].body) == before
    food: Any = draft.snapshot.documents[FOOD].body["food"]
    assert draft.body(FOOD)["food"]["diets"] is food["diets"]  # type: ignore[index,call-overload]


def test_paths_can_refer_to_an_earlier_state() -> None:
    """Several plans made for one snapshot are applied in turn, each where its places are by then."""
    draft = draft_of("a", "b", "c")
    draft.apply(plan("p1", Delete(path="food.likes[0]", file=FOOD)), as_of=0)
    draft.apply(
        plan(
            "p2", Delete(path="food.likes[-1]", file=FOOD), insert("d", "food.likes[1]")
        ),
        as_of=0,
    )
    draft.apply(
        plan("p3", Update(path="food.likes[1]", new_value="B", file=FOOD)), as_of=0
    )
    assert likes(draft) == ["d", "B"]
    draft.apply(
        plan(
            "p4", insert("e", "food.likes[1]"), Delete(path="food.likes[0]", file=FOOD)
        ),
        as_of=2,
    )
    assert likes(draft) == ["e", "B"]


def test_two_plans_made_for_one_state_cannot_touch_one_place() -> None:
    """The second is refused, and the draft is as it was."""
    draft = draft_of("a", "b")
    draft.apply(plan("p1", Delete(path="food.likes[0]", file=FOOD)))
    with pytest.raises(EditRefused) as refused:
        draft.apply(
            plan("p2", Update(path="food.likes[0]", new_value="A", file=FOOD)), as_of=0
        )
    assert refused.value.reason == "overlap"
    assert (likes(draft), len(draft.applied)) == (["b"], 1)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (insert("x", file=None), "file"),
        (insert("x", file="resource_user_health"), "file"),
        (insert("x", "_metadata.owner"), "protected"),
        (Update(path="_metadata.revision", new_value=1, file=FOOD), "protected"),
        (Update(path="food.likes", new_value="all", file=FOOD), "type"),
        (insert("x" * 2_001), "size"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_with_its_whole_plan(
    edit: Edit, reason: str
) -> None:
    """By one word, and the draft is as it was, its other documents too."""
    draft = draft_of("tea")
    before = dict(draft.documents)
    with pytest.raises(EditRefused) as refused:
        draft.apply(plan("p1", insert("early", "routine.daily", ROUTINE), edit))
    assert refused.value.reason == reason
    assert draft.documents == before
    assert draft.applied == ()


def test_a_document_cannot_outgrow_its_limit() -> None:
    """Neither by one plan nor by many small ones, whether its size was known or not."""
    for size in (None, len(json_bytes(body()))):
        document = Document(resource_id=FOOD, revision=4, body=body(), size=size)
        draft = Draft(
            Snapshot("u", {FOOD: document}), DocumentLimits(max_bytes=1_000), NOW
        )
        for number in range(8):
            draft.apply(plan(f"p{number}", insert("x" * 80)))
        with pytest.raises(EditRefused, match="1000") as refused:
            draft.apply(plan("p", insert("x" * 200)))
        assert refused.value.reason == "size"
        assert len(json_bytes(draft.documents[FOOD].body)) + 203 > 900
        draft.apply(
            plan("q", Delete(path="food.likes[0]", file=FOOD), insert("x" * 150))
        )


def test_new_items_say_when_they_were_added() -> None:
    draft = draft_of({"display": "Eggs", "added": "2025-01-01"})
    draft.apply(
        plan("p1", insert({"confidence": 1.0, "display": "Ham", "item": "ham"}))
    )
    draft.apply(
        plan(
            "p2",
            insert({"display": "Tea", "added": "2020-02-02"}),
            insert({"count": 1}),
        )
    )
    draft.apply(
        plan(
            "p3",
            Update(
                path="food.likes[0]", new_value={"display": "Fried eggs"}, file=FOOD
            ),
        )
    )
    draft.apply(plan("p4", insert([{"display": "Soy"}, "milk"], "food.vegan")))
    assert likes(draft) == [
        {"display": "Fried eggs", "added": "2025-01-01"},
        {"display": "Ham", "item": "ham", "added": "2026-03-01", "confidence": 1.0},
        {"display": "Tea", "added": "2020-02-02"},
        {"count": 1},
    ]
    food: Any = draft.documents[FOOD].body["food"]
    assert food["vegan"] == [{"display": "Soy", "added": "2026-03-01"}, "milk"]


def test_a_plan_is_applied_once() -> None:
    draft = draft_of(known=("p2",))
    first = draft.apply(plan("p1", insert("tea")))
    assert draft.apply(plan("p1", insert("tea"))) is first
    assert draft.apply(plan("p2", insert("rice"))).known
    assert (likes(draft), len(draft.applied)) == (["tea"], 2)


@pytest.mark.parametrize(
    "before",
    [
        {
            "_metadata": {"revision": 1, "last_updated": "2025-01-01", "tags": []},
            "a": 1,
        },
        {"a": 1, "_metadata": {"tags": [], "last_updated": "2025-01-01"}},
        {"a": 1, "_metadata": {}},
        {"a": 1},
    ],
)
def test_a_stamp_can_be_taken_off(before: dict[str, Any]) -> None:
    """To the byte, whatever the metadata was."""
    stamped, overwritten = stamp(before, FOOD, 7, NOW.date())
    metadata: Any = stamped["_metadata"]
    assert (metadata["revision"], metadata["last_updated"]) == (7, "2026-03-01")
    assert json_bytes(unstamp(stamped, overwritten)) == json_bytes(before)


def test_the_metadata_of_a_file_gets_the_stamps_that_are_there() -> None:
    """The rest of it is the file's; a file without any gets all."""
    former = {
        "_metadata": {"tags": ["a"], "revision": 3, "last_updated": "2026-01-01"},
        "x": 1,
    }
    file = {"_metadata": {"revision": 9, "tags": ["b"]}, "x": 2}
    metadata = {"revision": 3, "tags": ["b"], "last_updated": "2026-01-01"}
    assert with_stamp_of(file, former) == {"_metadata": metadata, "x": 2}
    assert with_stamp_of({"x": 2}, former) == {"_metadata": former["_metadata"], "x": 2}
    assert with_stamp_of(file, {}) == {"_metadata": {"tags": ["b"]}, "x": 2}
