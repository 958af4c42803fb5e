"""What has expired is taken out of everybody's documents, and can be brought back."""

from datetime import UTC, datetime, timedelta

from redis.asyncio import Redis

from contracts.edits import Insert
from memory.documents.draft import Draft
from memory.documents.guard import Limits
from memory.documents.items import make_item, slug
from memory.documents.kinds import Kinds
from memory.documents.plans import Origin, Plan
from memory.documents.storage.reader import DocumentOwners
from memory.documents.storage.store import DocumentStore
from tests.servers import PATIENCE_S
from workers.listening.sweep import Sweeper

FOOD = "resource_user_food_prefs"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


async def _remember(store: DocumentStore, user: str, display: str, expires: bool) -> None:
    yesterday = NOW.date() - timedelta(days=1)
    item = make_item(display, added=yesterday, expiry=yesterday if expires else None, source="told")
    plan = Plan(
        plan_id=f"plan-{slug(user)}-{expires}",
        edits=(Insert(path="food.likes", new_value=item, file=FOOD),),
        origin=Origin(by="person", at=NOW - timedelta(days=1)),
    )
    draft = Draft(await store.snapshot(user), Limits(), now=NOW - timedelta(days=1))
    draft.apply(plan)
    await store.commit(draft)


async def _likes(store: DocumentStore, user: str) -> list[object]:
    food = (await store.snapshot(user)).documents[FOOD].body["food"]
    assert isinstance(food, dict)
    likes = food["likes"]
    assert isinstance(likes, list)
    return [item["display"] for item in likes if isinstance(item, dict)]


async def test_a_sweep_takes_what_has_expired_from_everybody(redis: Redis) -> None:
    """Everybody keeps the lasting item and loses the other; a second sweep finds nothing, and undo brings it back."""
    store = DocumentStore(redis, Kinds.load(), deadline_s=PATIENCE_S)
    users = [f"user {number}" for number in range(30)]
    for user in users:
        await _remember(store, user, "soup today", expires=True)
        await _remember(store, user, "pasta", expires=False)
    sweeper = Sweeper(store, DocumentOwners(redis), lambda: NOW, every_s=3600)

    assert await sweeper.sweep_all() == len(users)
    assert [await _likes(store, user) for user in users] == [["pasta"]] * len(users)
    assert await sweeper.sweep_all() == 0

    await store.undo(users[0], at=NOW)
    assert await _likes(store, users[0]) == ["soup today", "pasta"]
    assert await sweeper.sweep_all() == 0
