"""`tasklore memory tell` and `facts` on real servers: a turn is kept and its outcome awaited."""

import json
from collections.abc import Callable

import pytest
from nats.aio.client import Client
from redis.asyncio import Redis

from contracts.messages import ExtractedFacts, Fact
from memory.documents.storage.store import DocumentStore
from memory.queues.claims import Closing
from memory.queues.queue import PersonalQueue
from runtime.messaging.connection import connected
from runtime.messaging.streams import Sizes, declare_streams
from runtime.servers.embedded import EmbeddedServers
from tasklore.exits import FAILED, OK
from tasklore.memory import tell as telling
from tasklore.memory.stores import user_memory
from tasklore.memory.tell import make_turn, outcome_of, publish_turn, tell
from tasklore.memory.views import print_facts
from tests.integration.documents import NOW, commit, like, plan, store_on
from tests.servers import PATIENCE_S

USER = "ana"


pytestmark = pytest.mark.usefixtures("command_servers")


@pytest.fixture
def store(redis: Redis) -> DocumentStore:
    """Return the store that the commands look into."""
    return store_on(redis)


@pytest.fixture
async def nats(servers: EmbeddedServers) -> Client:  # type: ignore[misc]  # it yields one
    """Connect to NATS, with the streams of a system that runs."""
    async with connected(servers.nats_url, "test") as client:
        await declare_streams(client, Sizes())
        yield client


async def test_a_turn_that_no_worker_takes_is_kept_and_the_command_fails(
    nats: Client, printed: Callable[[], str]
) -> None:
    assert await tell("I like eggs", USER, conversation=None, wait_s=0, as_json=False) == FAILED
    assert printed().startswith("Kept as turn ")
    assert await tell("I like eggs", USER, conversation=None, wait_s=0, as_json=True) == FAILED
    assert json.loads(printed())["state"] is None
    assert (await nats.jetstream().stream_info("TURNS")).state.messages >= 1


async def test_the_outcome_of_a_turn_is_awaited_until_its_facts_are_decided(
    nats: Client, redis: Redis, store: DocumentStore, printed: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = make_turn("I like eggs", USER)
    await publish_turn(nats, turn)
    turns, facts = (PersonalQueue(redis, name, deadline_s=PATIENCE_S) for name in ("turns", "facts"))
    fact = Fact(fact_id="f-1", text="User likes eggs")
    extracted = ExtractedFacts(turn_id=turn.turn_id, conversation_id="c", user_id=USER, facts=(fact,), at=NOW)
    async with user_memory() as memory:
        assert (await outcome_of(memory, turn, 0)).state is None
        await turns.append(USER, [(turn.turn_id, turn.model_dump_json().encode())])
        assert (await outcome_of(memory, turn, 0)).state == "waiting"
        await close(turns, turn.turn_id, "learned")
        outcome = await outcome_of(memory, turn, 0)
        assert (outcome.state, outcome.is_settled) == ("waiting", False)
        await facts.append(USER, [("f-1", extracted.model_dump_json().encode())])
        await commit(store, plan("f-1", like("Eggs")), user=USER)
        await close(facts, "f-1", "tells like: eggs", plan_id="f-1")
        outcome = await outcome_of(memory, turn, 30)
    assert outcome.is_settled
    monkeypatch.setattr(telling, "make_turn", lambda *_: turn)
    assert await tell("I like eggs", USER, conversation=None, wait_s=30, as_json=False) == OK
    assert printed().splitlines() == ["done        User likes eggs", "  + food.likes[0]: Eggs", "  tells like: eggs"]
    await print_facts(USER, 20, as_json=False)
    assert "User likes eggs  done" in printed()
    await print_facts(USER, 20, as_json=True)
    assert json.loads(printed())[0]["plan_id"] == "f-1"


async def close(queue: PersonalQueue, row_id: str, reason: str, plan_id: str | None = None) -> None:
    """Close a row as done."""
    claim = await queue.claim(USER, holder="test", limit=1, lease_ms=30_000, now_ms=0)
    assert await queue.close(claim, [Closing(row_id, "done", reason, plan_id)])
    await queue.release(claim)
