"""Undo and redo of plans: the latest, an older one beneath later ones, all documents or none."""

import asyncio

import pytest
from redis.asyncio import Redis

from contracts.edits import Delete, Insert, Update
from contracts.errors import UndoRefused
from memory.documents.storage.history import PlanRecord
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
    liked,
    plan,
    store_on,
)


@pytest.fixture
def store(redis: Redis) -> DocumentStore:
    """Return a store on a server."""
    return store_on(redis)


def about(display: str) -> Insert:
    """Return an edit of another document."""
    return Insert(path="general.about", new_value=item(display), file=GENERAL)


async def test_the_latest_plan_is_undone_as_a_revision_of_its_own(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Eggs")))
    before = content(await body_of(store))
    await commit(store, plan("p2", like("Ham"), Delete(path="food.likes[0]", file=FOOD)))
    record = await store.undo(USER, by="anna", at=NOW)
    assert content(await body_of(store)) == before
    assert (record.kind, record.undoes, record.revisions, record.origin.by) == ("undo", "p2", {FOOD: 3}, "anna")
    assert [(one.plan_id, one.undone_by) for one in await store.history(USER)] == [
        (record.plan_id, None),
        ("p2", record.plan_id),
        ("p1", None),
    ]
    await store.redo(USER, at=NOW)
    assert [one.undone_by for one in await store.history(USER)][-2:] == [None, None]
    with pytest.raises(UndoRefused, match="no plan that could be applied again"):
        await store.redo(USER, at=NOW)


async def test_a_plan_of_several_documents_is_undone_in_all(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Tofu"), about("Vegan")))
    record = await store.undo(USER, at=NOW)
    assert record.revisions == {FOOD: 2, GENERAL: 2}
    assert await liked(store) == []
    assert (await body_of(store, GENERAL))["general"]["about"] == []


async def test_a_plan_that_cannot_be_undone_in_one_document_is_undone_in_none(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Tofu"), about("Vegan")))
    await commit(store, plan("p2", Update(path="general.about[0].display", new_value="Vegetarian", file=GENERAL)))
    with pytest.raises(UndoRefused, match=r"'p1' cannot be taken back.*general.*'p2'"):
        await store.undo(USER, "p1", at=NOW)
    assert await liked(store) == ["Tofu"]
    assert len(await store.history(USER)) == 2


async def test_an_older_plan_is_undone_beneath_the_later_ones(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    await commit(store, plan("p3", Insert(path="food.likes[0]", new_value=item("Tea"), file=FOOD)))
    await store.undo(USER, "p1", at=NOW)
    assert await liked(store) == ["Tea", "Ham"]
    await commit(store, plan("p4", like("Rice")))
    await store.redo(USER, "p1", at=NOW)
    assert await liked(store) == ["Tea", "Eggs", "Ham", "Rice"]


async def test_a_plan_that_a_later_one_touched_is_refused_with_its_name(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    await commit(store, plan("p3", Update(path="food.likes[0].display", new_value="Fried eggs", file=FOOD)))
    await commit(store, plan("p4", like("Tea")))
    with pytest.raises(UndoRefused, match=r"food\.likes\[0\].*'p3'"):
        await store.undo(USER, "p1", at=NOW)
    await store.undo(USER, "p3", at=NOW)
    await store.undo(USER, "p1", at=NOW)
    assert await liked(store) == ["Ham", "Tea"]


async def test_a_plan_is_undone_once_until_it_is_applied_again(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    with pytest.raises(UndoRefused, match="'p1' stands"):
        await store.redo(USER, "p1", at=NOW)
    back = await store.undo(USER, "p1", at=NOW)
    for name in ("p1", back.plan_id):
        with pytest.raises(UndoRefused, match="is taken back already"):
            await store.undo(USER, name, at=NOW)
    await store.redo(USER, back.plan_id, at=NOW)
    assert await liked(store) == ["Eggs", "Ham"]
    await store.undo(USER, "p1", at=NOW)
    assert await liked(store) == ["Ham"]


async def test_an_unknown_plan_or_that_of_another_user_is_refused(store: DocumentStore) -> None:
    await commit(store, plan("p1", like("Eggs")), user="neighbour")
    for name in ("p1", "p9"):
        with pytest.raises(UndoRefused, match=name):
            await store.undo(USER, name, at=NOW)
    with pytest.raises(UndoRefused, match="no plan"):
        await store.undo(USER, at=NOW)
    assert await liked(store, "neighbour") == ["Eggs"]


async def test_a_plan_older_than_the_history_is_refused(redis: Redis) -> None:
    store = store_on(redis, keep_revisions=3)
    await commit(store, plan("p1", like("Tofu"), about("Vegan")))
    for number in range(3):
        await commit(store, plan(f"q{number}", like(f"{number}")))
    with pytest.raises(UndoRefused, match="older than the history of 'resource_user_food_prefs'"):
        await store.undo(USER, "p1", at=NOW)
    assert (await body_of(store, GENERAL))["general"]["about"] != []


async def test_concurrent_undos_undo_one_plan_each(store: DocumentStore) -> None:
    for number in range(8):
        await commit(store, plan(f"p{number}", like(f"{number}")))
    records = await asyncio.gather(*(store.undo(USER, at=NOW) for _ in range(8)))
    assert sorted(str(record.undoes) for record in records) == [f"p{number}" for number in range(8)]
    assert await liked(store) == []


async def test_an_undo_that_another_overtook_undoes_the_plan_before(
    store: DocumentStore, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    history, other = store.history, store_on(redis)

    async def overtaken(user_id: str, *, limit: int) -> tuple[PlanRecord, ...]:
        monkeypatch.undo()
        found = await history(user_id, limit=limit)
        await other.undo(USER, at=NOW)
        return found

    monkeypatch.setattr(store, "history", overtaken)
    assert (await store.undo(USER, at=NOW)).undoes == "p1"
    assert await liked(store) == []


async def test_plans_far_back_in_a_long_history_are_undone(store: DocumentStore) -> None:
    await commit(store, plan("p0", like("First")))
    for number in range(1, 16):
        await commit(store, plan(f"p{number}", like(f"{number}")))
    for _ in range(16):
        await store.undo(USER, at=NOW)
    assert await liked(store) == []
    assert ids(await store.history(USER, limit=1_000))[-1] == "p0"
    await store.redo(USER, "p0", at=NOW)
    assert await liked(store) == ["First"]
