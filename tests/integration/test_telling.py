"""`tasklore memory tell` and `facts` against real servers: a turn is kept, and what becomes of it is awaited."""

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


@pytest.fixture(autouse=True)
def _place(servers: EmbeddedServers, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands find the servers of the tests, with an empty store."""
    monkeypatch.setenv("TASKLORE_NATS_URL", servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", servers.redis_url)


@pytest.fixture
def store(redis: Redis) -> DocumentStore:
    """Return the store that the commands look into."""
    return store_on(redis)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """Return what returns what was printed since it was last called."""
    return lambda: capsys.readouterr().out


@pytest.fixture
async def nats(servers: EmbeddedServers) -> Client:  # type: ignore[misc]  # it yields one
    """Connect to NATS, with the streams of a system that runs."""
    async with connected(servers.nats_url, "test") as client:
        await declare_streams(client, Sizes())
        yield client


@pytest.mark.parametrize("as_json", [False, True])
async def test_a_turn_that_nobody_takes_is_kept_and_the_command_fails(
    nats: Client, as_json: bool, printed: Callable[[], str]
) -> None:
    """It says under which name."""
    assert await tell("I like eggs", USER, conversation=None, wait_s=0, as_json=as_json) == FAILED
    said = printed()
    assert json.loads(said)["state"] is None if as_json else said.startswith("Kept as turn ")
    assert (await nats.jetstream().stream_info("TURNS")).state.messages >= 1


async def test_what_becomes_of_a_turn_is_awaited_until_its_facts_are_decided(
    nats: Client, redis: Redis, store: DocumentStore, printed: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From waiting over learned without its fact to the fact and the edit that it led to."""
    turn = make_turn("I like eggs", USER)
    await publish_turn(nats, turn)
    turns, facts = (
        PersonalQueue(redis, "turns", deadline_s=PATIENCE_S),
        PersonalQueue(redis, "facts", deadline_s=PATIENCE_S),
    )
    fact = Fact(fact_id="f-1", text="User likes eggs")
    extracted = ExtractedFacts(turn_id=turn.turn_id, conversation_id="c", user_id=USER, facts=(fact,), at=NOW)
    async with user_memory() as memory:
        assert (await outcome_of(memory, turn, 0)).state is None
        await turns.append(USER, [(turn.turn_id, turn.model_dump_json().encode())])
        assert (await outcome_of(memory, turn, 0)).state == "waiting"
        await _close(turns, turn.turn_id, "learned")
        outcome = await outcome_of(memory, turn, 0)
        assert (outcome.state, outcome.is_settled) == ("waiting", False)
        await facts.append(USER, [("f-1", extracted.model_dump_json().encode())])
        await commit(store, plan("f-1", like("Eggs")), user=USER)
        await _close(facts, "f-1", "tells like: eggs", plan_id="f-1")
        outcome = await outcome_of(memory, turn, 30)
    assert outcome.is_settled
    monkeypatch.setattr(telling, "make_turn", lambda *_: turn)
    assert await tell("I like eggs", USER, conversation=None, wait_s=30, as_json=False) == OK
    assert printed().splitlines() == ["done        User likes eggs", "  + food.likes[0]: Eggs", "  tells like: eggs"]
    await print_facts(USER, 20, as_json=False)
    assert "User likes eggs  done" in printed()
    await print_facts(USER, 20, as_json=True)
    assert json.loads(printed())[0]["plan_id"] == "f-1"


async def _close(queue: PersonalQueue, row_id: str, reason: str, plan_id: str | None = None) -> None:
    claim = await queue.claim(USER, holder="test", limit=1, lease_ms=30_000, now_ms=0)
    assert claim is not None
    assert await queue.close(claim, [Closing(row_id, "done", reason, plan_id)])
    await queue.release(claim)
