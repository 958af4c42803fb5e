"""What tests of stored documents share: a user, a day, and plans that are applied and committed in a line."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from pydantic import JsonValue
from redis.asyncio import Redis

from tasklore.contracts.edits import Edit, Insert
from tasklore.memory.documents.draft import Draft, Origin, Plan
from tasklore.memory.documents.guard import LIMITS
from tasklore.memory.documents.items import METADATA, Body, make_item
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.history import json_bytes
from tasklore.memory.documents.storage.store import Committed, DocumentStore

USER = "user-1"
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FOOD = "resource_user_food_prefs"
ROUTINE = "resource_user_routine"
HEALTH = "resource_user_health"
GENERAL = "resource_user_general_prefs"
KINDS = Kinds.load()


def store_on(client: Redis, **options: Any) -> DocumentStore:
    """Return a store that waits for a busy machine."""
    return DocumentStore(client, KINDS, deadline_s=60.0, **options)


def item(display: str, **fields: JsonValue) -> Body:
    """Return an item that was told."""
    return {**make_item(display, added=NOW.date(), source="told"), **fields}


def like(display: str, **fields: JsonValue) -> Insert:
    """Return an edit that adds *display* to what the user likes."""
    return Insert(path="food.likes", new_value=item(display, **fields), file=FOOD)


def plan(plan_id: str, *edits: Edit, **origin: Any) -> Plan:
    """Return a plan of *edits*, made by rules now unless *origin* says otherwise."""
    return Plan(
        plan_id=plan_id,
        edits=edits,
        origin=Origin(**{"by": "rules", "at": NOW, **origin}),
    )


async def drafted(store: DocumentStore, *plans: Plan, user: str = USER) -> Draft:
    """Return a draft of all documents of *user* with *plans* applied."""
    draft = Draft(await store.snapshot(user), LIMITS, NOW)
    for one in plans:
        draft.apply(one)
    return draft


async def commit(store: DocumentStore, *plans: Plan, user: str = USER) -> Committed:
    """Apply and store *plans*, which nothing is in the way of."""
    done = await store.commit(await drafted(store, *plans, user=user))
    assert isinstance(done, Committed), done
    return done


async def body_of(store: DocumentStore, resource: str = FOOD, user: str = USER) -> Any:
    """Return the body of a document."""
    return (await store.snapshot(user, [resource])).documents[resource].body


async def liked(store: DocumentStore, user: str = USER) -> list[str]:
    """Return what the user likes, in order."""
    return [
        one["display"] for one in (await body_of(store, FOOD, user))["food"]["likes"]
    ]


def content(body: Body) -> bytes:
    """Return *body* to the byte, apart from what every revision is stamped with."""
    metadata = cast("Body", body[METADATA])
    kept: JsonValue = {
        name: value
        for name, value in metadata.items()
        if name not in ("revision", "last_updated")
    }
    return json_bytes({**body, METADATA: kept})


def ids(records: Sequence[Any]) -> list[str]:
    """Return the plan ids of *records*."""
    return [record.plan_id for record in records]
