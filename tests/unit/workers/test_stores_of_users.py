"""Each key that a user leaves something in is one of a store that forgets it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.ledger.ledger import Ledger
from tasklore.workers.forgetting.stores import all_stores
from tests.key_table import ITS_END, NOTHING, KeyRow, read_rows

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


@pytest.mark.parametrize("row", read_rows(), ids=lambda row: row.keys[0])
def test_what_a_user_leaves_in_a_key_is_forgotten(row: KeyRow) -> None:
    """By a store of the table of stores, whatever else is forgotten as well."""
    named = set(row.stores)
    missing = named - forgetting_stores() - {NOTHING, ITS_END}
    assert not missing, (
        f"memory/keys.py says that {row.keys[0]} is forgotten as {sorted(missing)}, which is no store of all_stores "
        "in workers/forgetting/stores.py: add it there"
    )
    is_of_user = any("{token}" in key for key in row.keys)
    assert not (is_of_user and NOTHING in named), (
        f"{row.keys[0]} is a user's, by its token: say in its row of memory/keys.py which store of "
        "workers/forgetting/stores.py forgets it"
    )
    if ITS_END in named:
        assert "none" not in row.time_to_live, f"{row.keys[0]} has no end by itself"


def test_each_store_in_redis_has_a_key() -> None:
    named = {store for row in read_rows() for store in row.stores}
    unnamed = forgetting_stores() - _ELSEWHERE - named
    assert not unnamed, f"no row of memory/keys.py is forgotten as {sorted(unnamed)}"
