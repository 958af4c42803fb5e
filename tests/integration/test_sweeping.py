"""Expired items are swept out of the documents of all users, and undo brings them back."""

from datetime import UTC, datetime, timedelta

from redis.asyncio import Redis

from tasklore.contracts.edits import Insert
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.guard import DocumentLimits
from tasklore.memory.documents.items import make_item, slug
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Origin, Plan
from tasklore.memory.documents.storage.reader import DocumentOwners
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.workers.listening.sweep import Sweeper
from tests.integration.documents import liked
from tests.servers import PATIENCE_S

FOOD = "resource_user_food_prefs"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


async def remember(
    store: DocumentStore, user: str, display: str, expires: bool
) -> None:
    """Store a like of *user* as of yesterday."""
    yesterday = NOW - timedelta(days=1)
    expiry = yesterday.date() if expires else None
    liked = make_item(display, added=yesterday.date(), expiry=expiry, source="told")
    edit = Insert(path="food.likes", new_value=liked, file=FOOD)
    plan = Plan(
        plan_id=f"plan-{slug(user)}-{expires}",
        edits=(edit,),
        origin=Origin(by="person", at=yesterday),
    )
    draft = Draft(await store.snapshot(user), DocumentLimits(), now=yesterday)
    draft.apply(plan)
    await store.commit(draft)


async def test_a_sweep_removes_expired_items_of_all_users(redis: Redis) -> None:
    store = DocumentStore(redis, Kinds.load(), deadline_s=PATIENCE_S)
    users = [f"user {number}" for number in range(12)]
    for user in users:
        await remember(store, user, "soup today", expires=True)
        await remember(store, user, "pasta", expires=False)
    sweeper = Sweeper(store, DocumentOwners(redis), lambda: NOW, every_s=3600)

    assert await sweeper.sweep_all() == len(users)
    assert [await liked(store, user) for user in users] == [["pasta"]] * len(users)
    assert await sweeper.sweep_all() == 0

    await store.undo(users[0], at=NOW)
    assert await liked(store, users[0]) == ["soup today", "pasta"]
    assert await sweeper.sweep_all() == 0
