"""`tasklore memory audit` with an embedder: it proposes pairs and changes nothing."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.commands.memory.review import print_audit
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.documents import FOOD, NOW, item, store_on

USER = "ana"
HEADING = "perhaps the same (proposed by embeddings; nothing is merged)"


class Agreeing:
    def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]


@pytest.fixture(autouse=True)
def _place(
    servers: EmbeddedServers, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKLORE_NATS_URL", servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", servers.redis_url)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: capsys.readouterr().out


@pytest.fixture
async def store(redis: Redis) -> DocumentStore:
    """Return a store with what may be the same, what may not, and what says the contrary in the same words."""
    store = store_on(redis)
    likes = [
        item("photography"),
        item("taking photos"),
        item("taking 3 photos"),
        item("Photography"),
    ]
    food: dict[str, Any] = {"likes": likes, "dislikes": [item("photos")], "pets": 2}
    content = json.dumps({"_metadata": {"resource_id": FOOD}, "food": food})
    await store.import_document(USER, content.encode(), at=NOW)
    return store


async def test_an_audit_proposes_pairs_of_one_list_and_changes_nothing(
    store: DocumentStore, printed: Callable[[], str]
) -> None:
    before = await store.snapshot(USER)
    await print_audit(USER, None, as_json=False, load=Agreeing)
    told = printed()
    assert told[told.index(HEADING) :].splitlines() == [
        HEADING,
        f"  {FOOD} food.likes[0]: photography",
        f"    and {FOOD} food.likes[1]: taking photos",
        f"  {FOOD} food.likes[1]: taking photos",
        f"    and {FOOD} food.likes[3]: Photography",
    ]
    await print_audit(USER, None, as_json=True, load=Agreeing)
    pairs = json.loads(printed())["alike"]
    assert [len(pair) for pair in pairs] == [2, 2]
    assert pairs[0][0] == {
        "resource": FOOD,
        "path": "food.likes[0]",
        "text": "photography",
    }
    assert await store.snapshot(USER) == before


async def test_without_an_embedder_no_pairs_are_mentioned(
    store: DocumentStore, printed: Callable[[], str]
) -> None:
    await print_audit(USER, None, as_json=False, load=lambda: None)
    assert "perhaps" not in printed()
    await print_audit(USER, None, as_json=True, load=lambda: None)
    assert "alike" not in json.loads(printed())

    def must_not_load() -> None:
        raise AssertionError

    await print_audit("nobody", None, as_json=False, load=must_not_load)
    assert printed() == "Nothing is remembered of nobody yet.\n"
