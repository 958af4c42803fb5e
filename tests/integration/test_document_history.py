"""The history of documents: every plan with its reasons, and the plans that touched a place."""

from datetime import timedelta
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from contracts.edits import Delete, Insert, Update
from contracts.errors import InvalidInput, UnknownPath
from memory import keys
from memory.documents.edits import ABSENT, apply_changes
from memory.documents.items import Body
from memory.documents.storage.history import MAX_RECORD
from memory.documents.storage.store import DocumentStore
from tests.integration.documents import (
    FOOD,
    GENERAL,
    NOW,
    USER,
    body_of,
    commit,
    content,
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


async def test_the_history_is_listed_newest_first(store: DocumentStore) -> None:
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
    """A model's answer that is too long is replaced by a mark."""
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
    await commit(store, plan("p2", like("Ham"), finder={"model": "nano", "said": "x" * MAX_RECORD}, editor=["x"]))
    (record,) = await store.history(USER, limit=1)
    assert (record.origin.finder, record.origin.editor) == ({"model": "nano", "omitted": True}, None)


async def test_an_unknown_revision_or_place_is_refused(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Eggs")))
    for revision in (-1, 2):
        with pytest.raises(InvalidInput, match="from 0 to 1"):
            await store.at(USER, FOOD, revision)
    with pytest.raises(InvalidInput, match="no_such"):
        await store.at(USER, "no_such", 0)
    with pytest.raises(UnknownPath, match=r"food\.likes"):
        await store.explain(USER, FOOD, "food.likes[4]")


async def test_the_difference_of_two_revisions_is_few_changes(store: DocumentStore) -> None:
    await commit(store, plan("p1", *(like(f"{number}") for number in range(5))))
    await commit(store, plan("p2", Delete(path="food.likes[1]", file=FOOD)))
    await commit(store, plan("p3", Update(path="food.likes[2].display", new_value="three", file=FOOD)))
    forth, back = await store.diff(USER, FOOD, 1, 3), await store.diff(USER, FOOD, 3, 1)
    assert [str(change.path) for change in forth] == ["food.likes[3].display", "food.likes[1]"]
    first, last = await store.at(USER, FOOD, 1), await store.at(USER, FOOD, 3)
    assert content(cast("Body", apply_changes(first.body, forth))) == content(last.body)
    assert content(cast("Body", apply_changes(last.body, back))) == content(first.body)
    assert await store.diff(USER, FOOD, 2, 2) == ()


async def test_a_place_is_explained_wherever_its_list_has_moved_it(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    await commit(store, plan("p3", Insert(path="food.likes[0]", new_value=item("Tea"), file=FOOD)))
    await commit(store, plan("p4", Update(path="food.likes[2].confidence", new_value=0.5, file=FOOD)))
    await commit(store, plan("p5", Delete(path="food.likes[1]", file=FOOD)))
    assert ids(await store.explain(USER, FOOD, "food.likes[1]")) == ["p4", "p2"]
    assert ids(await store.explain(USER, FOOD, "food.likes[-2]")) == ["p3"]
    assert ids(await store.explain(USER, FOOD, "food.likes[1].display")) == ["p2"]
    assert ids(await store.explain(USER, FOOD, "$.food.likes")) == ["p5", "p4", "p3", "p2", "p1"]
    assert await store.explain(USER, FOOD, "food.diets") == ()


async def test_a_value_that_an_undo_brought_back_is_explained_through_the_undo(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Eggs"), like("Ham")), plan("p2", like("Tea")))
    await commit(store, plan("p3", Update(path="food.likes[1].confidence", new_value=0.5, file=FOOD)))
    await commit(store, plan("p4", Delete(path="food.likes[1]", file=FOOD)))
    await commit(store, plan("p5", Insert(path="food.likes[0]", new_value=item("Rice"), file=FOOD)))
    back = await store.undo(USER, "p4", at=NOW)
    assert (await body_of(store))["food"]["likes"][2]["display"] == "Ham"
    assert ids(await store.explain(USER, FOOD, "food.likes[2]")) == [back.plan_id, "p4", "p3", "p1"]


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


async def test_dropped_plans_leave_no_records_behind(redis: Redis) -> None:
    store = store_on(redis, keep_revisions=2)
    await commit(store, plan("p0", like("Both"), Insert(path="general.about", new_value=item("Both"), file=GENERAL)))
    await store.undo(USER, at=NOW)
    for number in range(2):
        about = Insert(path="general.about", new_value=item(f"{number}"), file=GENERAL)
        await commit(store, plan(f"p{number + 1}", like(f"{number}"), about))
    fields = {field.decode() for field in await redis.hkeys(keys.plans("dXNlci0x"))}
    assert fields == {"p1", "p2", "p1#", "p2#", "#last", "#resources"}
