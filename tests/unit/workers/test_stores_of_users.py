"""Each key that a user leaves something in is one of a store that forgets it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.memory.declarations import StoreKey
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.stores import STORES
from tasklore.workers.forgetting.stores import all_stores

#: Stores of what lies elsewhere than in Redis.
_ELSEWHERE = {"messages", "evidence files"}


def forgetting_stores() -> set[str]:
    """Return the names of all stores, of which nothing is asked."""
    nobody: Any = SimpleNamespace()
    redis = Redis()
    documents = DocumentStore(redis, Kinds.load())
    made = all_stores(
        nobody, redis, nobody, documents, Path(), ledger=Ledger(redis), deadline_s=1.0
    )
    return {store.name for store in made}


KEYS = [key for store in STORES for key in store.keys]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.names[0])
def test_what_a_user_leaves_in_a_key_is_forgotten(key: StoreKey) -> None:
    """By a store of the table of stores, whatever else is forgotten as well."""
    named = set(key.forgotten_as)
    missing = named - forgetting_stores()
    assert not missing, (
        f"{key.names[0]} is declared as forgotten as {sorted(missing)}, which nothing forgets: give its store "
        "`of_users`, or add it to all_stores in workers/forgetting/stores.py where that takes more than Redis"
    )
    is_of_user = any("{token}" in name for name in key.names)
    assert named or key.ends_by_itself or not is_of_user, (
        f"{key.names[0]} is a user's, by its token: say in its declaration what it is forgotten as"
    )
    assert not (key.ends_by_itself and "none" in key.lasts), (
        f"{key.names[0]} has no end by itself"
    )


def test_each_store_in_redis_has_a_key() -> None:
    named = {name for key in KEYS for name in key.forgotten_as}
    unnamed = forgetting_stores() - _ELSEWHERE - named
    assert not unnamed, f"no key is declared as forgotten as {sorted(unnamed)}"
