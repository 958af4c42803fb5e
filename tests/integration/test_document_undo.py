"""Taking plans back: the latest, an older one beneath what followed, all documents or none, and forth again."""

import asyncio

import pytest
from redis.asyncio import Redis

from contracts.edits import Delete, Edit, Insert, Update
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


async def test_the_latest_plan_is_taken_back(store: DocumentStore) -> None:
    """As a revision of its own, which says what it took back, who and when."""
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


async def test_a_plan_of_several_documents_is_taken_back_in_all(store: DocumentStore) -> None:
    """One undo, one revision each."""
    await commit(store, plan("p1", like("Tofu"), about("Vegan")))
    record = await store.undo(USER, at=NOW)
    assert record.revisions == {FOOD: 2, GENERAL: 2}
    assert await liked(store) == []
    assert (await body_of(store, GENERAL))["general"]["about"] == []


async def test_what_cannot_be_taken_back_in_one_document_stays_in_all(store: DocumentStore) -> None:
    """No half of it."""
    await commit(store, plan("p1", like("Tofu"), about("Vegan")))
    await commit(store, plan("p2", Update(path="general.about[0].display", new_value="Vegetarian", file=GENERAL)))
    with pytest.raises(UndoRefused, match=r"'p1' cannot be taken back.*general.*'p2'"):
        await store.undo(USER, "p1", at=NOW)
    assert await liked(store) == ["Tofu"]
    assert len(await store.history(USER)) == 2


async def test_step_by_step_everything_is_taken_back(store: DocumentStore) -> None:
    """Also plans that touched the same place one after the other; then nothing is left to take back."""
    seen = [content(await body_of(store))]
    edits: list[Edit] = [
        like("Eggs"),
        Update(path="food.likes[0].display", new_value="Boiled eggs", file=FOOD),
        Update(path="food.likes[0].display", new_value="Fried eggs", file=FOOD),
        Insert(path="food.likes[0]", new_value=item("Tea"), file=FOOD),
        Delete(path="food.likes[1]", file=FOOD),
    ]
    for number, edit in enumerate(edits):
        await commit(store, plan(f"p{number}", edit))
        seen.append(content(await body_of(store)))
    for expected in reversed(seen[:-1]):
        await store.undo(USER, at=NOW)
        assert content(await body_of(store)) == expected
    with pytest.raises(UndoRefused, match="no plan that could be taken back"):
        await store.undo(USER, at=NOW)
    for expected in seen[1:]:
        await store.redo(USER, at=NOW)
        assert content(await body_of(store)) == expected
    with pytest.raises(UndoRefused, match="no plan that could be applied again"):
        await store.redo(USER, at=NOW)


async def test_back_and_forth_ends_where_it_began(store: DocumentStore) -> None:
    """However often; the plan stands or does not, whatever came between."""
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    for _ in range(3):
        await store.undo(USER, at=NOW)
        assert await liked(store) == ["Eggs"]
        assert (await store.history(USER))[-2].undone_by is not None
        await store.redo(USER, at=NOW)
        assert await liked(store) == ["Eggs", "Ham"]
        assert (await store.history(USER))[-2].undone_by is None
    await store.undo(USER, at=NOW)
    await store.undo(USER, at=NOW)
    assert await liked(store) == []


async def test_an_older_plan_is_taken_back_beneath_the_later_ones(store: DocumentStore) -> None:
    """What moved since is found where it is now."""
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    await commit(store, plan("p3", Insert(path="food.likes[0]", new_value=item("Tea"), file=FOOD)))
    await store.undo(USER, "p1", at=NOW)
    assert await liked(store) == ["Tea", "Ham"]
    await commit(store, plan("p4", like("Rice")))
    await store.redo(USER, "p1", at=NOW)
    assert await liked(store) == ["Tea", "Eggs", "Ham", "Rice"]


async def test_an_older_plan_that_a_later_one_touched_stays(store: DocumentStore) -> None:
    """The message names the later one and the place; once that is taken back, so can this be."""
    await commit(store, plan("p1", like("Eggs")), plan("p2", like("Ham")))
    await commit(store, plan("p3", Update(path="food.likes[0].display", new_value="Fried eggs", file=FOOD)))
    await commit(store, plan("p4", like("Tea")))
    with pytest.raises(UndoRefused, match=r"food\.likes\[0\].*'p3'"):
        await store.undo(USER, "p1", at=NOW)
    await store.undo(USER, "p3", at=NOW)
    await store.undo(USER, "p1", at=NOW)
    assert await liked(store) == ["Ham", "Tea"]


async def test_what_was_put_back_beside_it_stands_where_it_stood(store: DocumentStore) -> None:
    """Two neighbours deleted one after the other come back in their order."""
    await commit(store, plan("p1", like("Eggs"), like("Ham")))
    await commit(store, plan("p2", Delete(path="food.likes[1]", file=FOOD)))
    await commit(store, plan("p3", Delete(path="food.likes[0]", file=FOOD)))
    await store.undo(USER, at=NOW)
    await store.undo(USER, at=NOW)
    assert await liked(store) == ["Eggs", "Ham"]


@pytest.mark.parametrize("oldest_first", [True, False])
async def test_neighbours_come_back_in_their_order_whichever_is_taken_back_first(
    store: DocumentStore, oldest_first: bool
) -> None:
    """Deleted by two plans, at one index; and what was deleted comes and goes again in either order."""
    await commit(store, plan("p1", like("Eggs"), like("Ham"), like("Tea")))
    for name in ("p2", "p3"):
        await commit(store, plan(name, Delete(path="food.likes[0]", file=FOOD)))
    order = ("p2", "p3") if oldest_first else ("p3", "p2")
    for _ in range(2):
        for name in order:
            await store.undo(USER, name, at=NOW)
        assert await liked(store) == ["Eggs", "Ham", "Tea"]
        for name in order:
            await store.redo(USER, name, at=NOW)
        assert await liked(store) == ["Tea"]


async def test_a_plan_is_taken_back_once(store: DocumentStore) -> None:
    """Named again it is refused, until it was applied again; and a plan that stands cannot be applied again."""
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


async def test_a_plan_that_nobody_knows_cannot_be_taken_back(store: DocumentStore) -> None:
    """Neither can that of another user."""
    await commit(store, plan("p1", like("Eggs")), user="neighbour")
    for name in ("p1", "p9"):
        with pytest.raises(UndoRefused, match=name):
            await store.undo(USER, name, at=NOW)
    with pytest.raises(UndoRefused, match="no plan"):
        await store.undo(USER, at=NOW)
    assert await liked(store, "neighbour") == ["Eggs"]


async def test_plans_older_than_the_history_cannot_be_taken_back(redis: Redis) -> None:
    """Not in the documents that still remember them either."""
    store = store_on(redis, keep_revisions=3)
    await commit(store, plan("p1", like("Tofu"), about("Vegan")))
    for number in range(3):
        await commit(store, plan(f"q{number}", like(f"{number}")))
    with pytest.raises(UndoRefused, match="older than the history of 'resource_user_food_prefs'"):
        await store.undo(USER, "p1", at=NOW)
    assert (await body_of(store, GENERAL))["general"]["about"] != []


async def test_many_who_take_back_at_once_take_back_one_plan_each(store: DocumentStore) -> None:
    """None is taken back twice."""
    for number in range(8):
        await commit(store, plan(f"p{number}", like(f"{number}")))
    records = await asyncio.gather(*(store.undo(USER, at=NOW) for _ in range(8)))
    assert sorted(str(record.undoes) for record in records) == [f"p{number}" for number in range(8)]
    assert await liked(store) == []


async def test_an_undo_that_another_overtook_takes_back_the_plan_before(
    store: DocumentStore, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan that it had found is taken back once its logs are read; it looks again instead of being refused."""
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


async def test_a_long_history_is_searched_for_what_stands(store: DocumentStore) -> None:
    """Further back than one look reaches."""
    await commit(store, plan("p0", like("First")))
    for number in range(1, 16):
        await commit(store, plan(f"p{number}", like(f"{number}")))
    for _ in range(16):
        await store.undo(USER, at=NOW)
    assert await liked(store) == []
    assert ids(await store.history(USER, limit=1_000))[-1] == "p0"
    await store.redo(USER, "p0", at=NOW)
    assert await liked(store) == ["First"]
