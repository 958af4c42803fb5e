"""What became of documents can be told: every plan and its reasons, every revision, and who touched a place."""

from datetime import timedelta
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from contracts.edits import Delete, Insert, Update
from contracts.errors import InvalidInput, UnknownPath
from memory import keys
from memory.documents.differences import differences
from memory.documents.edits import ABSENT, apply_changes
from memory.documents.items import Body
from memory.documents.storage.history import MAX_RECORD, json_bytes
from memory.documents.storage.store import DocumentStore
from tests.integration.documents import (
    FOOD,
    GENERAL,
    KINDS,
    NOW,
    USER,
    body_of,
    commit,
    content,
    drafted,
    ids,
    item,
    like,
    plan,
    store_on,
)


@pytest.fixture
def store(redis: Redis) -> DocumentStore:
    """Return a store on a server."""
    return store_on(redis)


async def test_the_history_is_told_newest_first(store: DocumentStore) -> None:
    """As far back as asked, of all documents or of one."""
    about = Insert(path="general.about", new_value=item("Vegan"), file=GENERAL)
    await commit(store, plan("p1", like("Eggs")), plan("p2", about))
    await commit(store, plan("p3", like("Ham"), Delete(path="general.about[0]", file=GENERAL)))
    await commit(store, plan("p4", like("Tea")))
    assert ids(await store.history(USER)) == ["p4", "p3", "p2", "p1"]
    assert ids(await store.history(USER, limit=2)) == ["p4", "p3"]
    assert ids(await store.history(USER, GENERAL)) == ["p3", "p2"]
    assert ids(await store.history(USER, FOOD + ".json", limit=1)) == ["p4"]
    assert await store.history(USER, limit=0) == ()
    assert [record.number for record in await store.history(USER)] == [4, 3, 2, 1]


async def test_a_record_has_its_changes_in_every_document(store: DocumentStore) -> None:
    """Also when only one of them was asked for, and the other has moved on far since."""
    await commit(store, plan("p1", like("Eggs"), Insert(path="general.about", new_value=item("Vegan"), file=GENERAL)))
    for number in range(5):
        await commit(store, plan(f"q{number}", like(f"{number}")))
    (record,) = await store.history(USER, GENERAL, limit=1)
    assert record.revisions == {FOOD: 1, GENERAL: 1}
    assert {resource: [str(change.path) for change in changes] for resource, changes in record.changes.items()} == {
        FOOD: ["food.likes[0]"],
        GENERAL: ["general.about[0]"],
    }
    assert record.changes[FOOD][0].before is ABSENT


async def test_a_record_says_who_when_and_why(store: DocumentStore) -> None:
    """What the finder and the editor answered is kept apart, each with its model and temperature."""
    finder = {"model": "nano", "temperature": 0.1, "locations": [{"path": "food.likes"}]}
    editor = {"model": "mini", "temperature": 0.2, "decision": "proceed"}
    wanted = plan(
        "p1",
        Insert(path="food.likes", new_value=item("Eggs"), file=FOOD, reason="said so"),
        by="mini",
        at=NOW - timedelta(seconds=1),
        turn_id="t1",
        fact_id="f1",
        fact_text="User likes eggs",
        evidence="I like eggs",
        reasoning="not known yet",
        finder=finder,
        editor=editor,
    )
    await commit(store, wanted)
    (record,) = await store.history(USER)
    assert record.origin == wanted.origin
    assert record.edits == wanted.edits
    assert (record.kind, record.undoes, record.undone_by) == ("edit", None, None)


async def test_an_answer_of_a_model_that_is_too_long_is_not_kept(store: DocumentStore) -> None:
    """The plan is stored all the same, and its record says what was left out."""
    await commit(store, plan("p1", like("Eggs"), finder={"model": "nano", "said": "x" * MAX_RECORD}, editor=["x"]))
    (record,) = await store.history(USER)
    assert (record.origin.finder, record.origin.editor) == ({"model": "nano", "omitted": True}, None)


async def test_every_revision_can_be_seen_again(store: DocumentStore) -> None:
    """Byte for byte, back to the template."""
    seen = [json_bytes(await body_of(store))]
    edits = [
        like("Eggs"),
        like("Ham"),
        Update(path="food.likes[0].display", new_value="Fried eggs", file=FOOD),
        Insert(path="food.likes[0]", new_value=item("Tea"), file=FOOD),
        Delete(path="food.likes[-1]", file=FOOD),
    ]
    for number, edit in enumerate(edits):
        await commit(store, plan(f"p{number}", edit))
        seen.append(json_bytes(await body_of(store)))
    await store.undo(USER, at=NOW)
    seen.append(json_bytes(await body_of(store)))
    found = [await store.at(USER, FOOD, revision) for revision in range(len(seen))]
    assert [json_bytes(document.body) for document in found] == seen
    assert [document.revision for document in found] == list(range(len(seen)))
    assert json_bytes(found[0].body) == json_bytes(KINDS.by_id[FOOD].template)


async def test_a_revision_that_never_was_is_refused(store: DocumentStore) -> None:
    """The message says which there are."""
    await commit(store, plan("p1", like("Eggs")))
    for revision in (-1, 2):
        with pytest.raises(InvalidInput, match="from 0 to 1"):
            await store.at(USER, FOOD, revision)
    with pytest.raises(InvalidInput, match="no_such"):
        await store.at(USER, "no_such", 0)


async def test_the_difference_of_two_revisions_is_few_changes(store: DocumentStore) -> None:
    """Either way round; each leads from one to the other, and metadata is no difference."""
    await commit(store, plan("p1", *(like(f"{number}") for number in range(5))))
    await commit(store, plan("p2", Delete(path="food.likes[1]", file=FOOD)))
    await commit(store, plan("p3", Update(path="food.likes[2].display", new_value="three", file=FOOD)))
    forth, back = await store.diff(USER, FOOD, 1, 3), await store.diff(USER, FOOD, 3, 1)
    assert [str(change.path) for change in forth] == ["food.likes[3].display", "food.likes[1]"]
    first, last = await store.at(USER, FOOD, 1), await store.at(USER, FOOD, 3)
    assert content(cast("Body", apply_changes(first.body, forth))) == content(last.body)
    assert content(cast("Body", apply_changes(last.body, back))) == content(first.body)
    assert await store.diff(USER, FOOD, 2, 2) == ()


async def test_a_place_is_explained_wherever_it_was(store: DocumentStore) -> None:
    """Inserts and deletes before it in its list move it; what touched its neighbours is not its business."""
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    await commit(store, plan("p3", Insert(path="food.likes[0]", new_value=item("Tea"), file=FOOD)))
    await commit(store, plan("p4", Update(path="food.likes[2].confidence", new_value=0.5, file=FOOD)))
    await commit(store, plan("p5", Delete(path="food.likes[1]", file=FOOD)))
    assert ids(await store.explain(USER, FOOD, "food.likes[1]")) == ["p4", "p2"]
    assert ids(await store.explain(USER, FOOD, "food.likes[-2]")) == ["p3"]
    assert ids(await store.explain(USER, FOOD, "food.likes[1].display")) == ["p2"]
    assert ids(await store.explain(USER, FOOD, "$.food.likes")) == ["p5", "p4", "p3", "p2", "p1"]
    assert await store.explain(USER, FOOD, "food.diets") == ()


async def test_what_an_undo_brought_back_is_explained_further_back(store: DocumentStore) -> None:
    """Through the undo and what it undid to what was there before, whatever moved in between."""
    await commit(store, plan("p1", like("Eggs"), like("Ham")), plan("p2", like("Tea")))
    await commit(store, plan("p3", Update(path="food.likes[1].confidence", new_value=0.5, file=FOOD)))
    await commit(store, plan("p4", Delete(path="food.likes[1]", file=FOOD)))
    await commit(store, plan("p5", Insert(path="food.likes[0]", new_value=item("Rice"), file=FOOD)))
    back = await store.undo(USER, "p4", at=NOW)
    assert (await body_of(store))["food"]["likes"][2]["display"] == "Ham"
    assert ids(await store.explain(USER, FOOD, "food.likes[2]")) == [back.plan_id, "p4", "p3", "p1"]


async def test_a_value_that_replaced_another_is_explained_with_it(store: DocumentStore) -> None:
    """What was put into an item by a later update begins there."""
    await commit(store, plan("p1", like("Eggs")))
    value = item("Eggs", note="soft")
    await commit(store, plan("p2", Update(path="food.likes[0]", new_value=value, file=FOOD)))
    assert ids(await store.explain(USER, FOOD, "food.likes[0].display")) == ["p2", "p1"]
    assert ids(await store.explain(USER, FOOD, "food.likes[0].note")) == ["p2"]


async def test_nothing_can_be_explained_where_nothing_is(store: DocumentStore) -> None:
    """The nearest place is named."""
    await commit(store, plan("p1", like("Eggs")))
    with pytest.raises(UnknownPath, match=r"food\.likes"):
        await store.explain(USER, FOOD, "food.likes[4]")


async def test_the_history_is_bounded(redis: Redis) -> None:
    """Old log entries are dropped, and their plans with the last of them."""
    store = store_on(redis, keep_revisions=3)
    await commit(store, plan("p0", like("Both"), Insert(path="general.about", new_value=item("Both"), file=GENERAL)))
    for number in range(1, 6):
        await commit(store, plan(f"p{number}", like(f"{number}")))
    assert ids(await store.history(USER)) == ["p5", "p4", "p3", "p0"]
    record = (await store.history(USER))[-1]
    assert (record.revisions, list(record.changes)) == ({FOOD: 1, GENERAL: 1}, [GENERAL])
    oldest: Any = (await store.at(USER, FOOD, 3)).body
    assert len(oldest["food"]["likes"]) == 3
    with pytest.raises(InvalidInput, match="older than its history, which goes from 3 to 6"):
        await store.at(USER, FOOD, 2)
    assert ids(await store.explain(USER, FOOD, "food.likes[0]")) == []
    for number in range(3):
        await commit(store, plan(f"q{number}", Insert(path="general.about", new_value=item(f"{number}"), file=GENERAL)))
    assert "p0" not in ids(await store.history(USER))


async def test_what_is_dropped_leaves_nothing_behind(redis: Redis) -> None:
    """Neither records nor marks of who took them back."""
    store = store_on(redis, keep_revisions=2)
    await commit(store, plan("p0", like("Both"), Insert(path="general.about", new_value=item("Both"), file=GENERAL)))
    await store.undo(USER, at=NOW)
    for number in range(2):
        about = Insert(path="general.about", new_value=item(f"{number}"), file=GENERAL)
        await commit(store, plan(f"p{number + 1}", like(f"{number}"), about))
    fields = {field.decode() for field in await redis.hkeys(keys.plans("dXNlci0x"))}
    assert fields == {"p1", "p2", "p1#", "p2#", "#last", "#resources"}


async def test_the_log_of_a_draft_that_was_refused_is_not_kept(store: DocumentStore) -> None:
    """A stale draft has no history."""
    late = await drafted(store, plan("late", like("Late")))
    await commit(store, plan("p1", like("Early")))
    await store.commit(late)
    assert ids(await store.history(USER)) == ["p1"]


def test_differences_know_names_and_items() -> None:
    """Few of them, and none where nothing differs."""
    before = {"a": [1, 2, 3], "b": {"x": 1}, "c": 1}
    after = {"a": [2, 3, 4], "b": {"y": 1}, "c": 1.0, "d": None}
    changes = list(differences(before, after))
    assert [(str(change.path), change.before, change.after) for change in changes] == [
        ("a[3]", ABSENT, 4),
        ("a[0]", 1, ABSENT),
        ("b.x", 1, ABSENT),
        ("b.y", ABSENT, 1),
        ("c", 1, 1.0),
        ("d", ABSENT, None),
    ]
    assert json_bytes(apply_changes(before, changes)) == json_bytes(after)
