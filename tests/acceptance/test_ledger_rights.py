"""Workers that are held to the ledger entries of their own agents: at real servers, with the shipped rights."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from deploy.privileges.roles import Cast
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import TaskName
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.functions import load_functions
from tasklore.memory.ledger.journal import Journal
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.migration import Migration
from tasklore.memory.ledger.runs import (
    CancelOutcome,
    CancelRequest,
    RunName,
    RunPermission,
)
from tests.acceptance.as_role import valkey_as
from tests.acceptance.external_program import PATIENCE_S
from tests.acceptance.guarded import Guarded, guarded

CAST = Cast(
    workers={"budget": ("BudgetTrackerAgent",), "caller": ("CallerAgent",)},
    calls={"caller": ("BudgetTrackerAgent",)},
    ledger=2,
)
OWN = TaskName("BudgetTrackerAgent", "own")
OTHER = TaskName("CallerAgent", "other")
LEASE_MS = 30_000


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Run both servers with narrowed rights, on a ledger of layout 2."""
    with guarded(tmp_path_factory.mktemp("rights"), CAST) as pair:
        asyncio.run(_prepare(pair))
        yield pair


async def _prepare(pair: Guarded) -> None:
    async with valkey_as(pair, "bootstrap") as client:
        await load_functions(client)
    async with valkey_as(pair, "operator") as client:
        await Migration(client, settled_s=0, named_within_s=0).run(lambda _: None)


def as_worker(pair: Guarded, name: str) -> AbstractAsyncContextManager[Redis]:
    """Connect with the rights of a worker."""
    return valkey_as(pair, f"worker-{name}")


async def test_a_worker_does_all_that_its_own_tasks_need(pair: Guarded) -> None:
    async with as_worker(pair, "budget") as client:
        ledger = Ledger(client, deadline_s=PATIENCE_S)
        assert await ledger.begin(OWN, 1, "w1", 1, LEASE_MS) == RunPermission(1)
        assert await ledger.hold([(OWN, 1)], "w1", LEASE_MS) == []
        assert await ledger.once(OWN, 1, "w1", "mail", "t") is True
        journal = Journal(client, deadline_s=PATIENCE_S)
        await journal.write(RunName(OWN, 1, "w1"), 0, "d step", b"1")
        assert await journal.heads(OWN) == {0: "d step"}
        assert await ledger.finish(OWN, 1, "completed", b"{}") is None
        assert await ledger.find_report(OWN, 1) == b"{}"
        assert await ledger.cancel_request(str(OTHER), "nobody") is None


async def test_a_worker_neither_reads_nor_ends_tasks_of_others(pair: Guarded) -> None:
    async with as_worker(pair, "caller") as client:
        ledger = Ledger(client, deadline_s=PATIENCE_S)
        await ledger.begin(OTHER, 1, "w2", 1, LEASE_MS)
    async with as_worker(pair, "budget") as client:
        stranger = Ledger(client, deadline_s=PATIENCE_S)
        for attempt in (
            stranger.read(str(OTHER)),
            stranger.finish(OTHER, 1, "completed", b"{}"),
            stranger.begin(OTHER, 2, "w1", 1, LEASE_MS),
            stranger.find_report(OTHER, 1),
        ):
            with pytest.raises(MemoryUnavailable, match="permission"):
                await attempt
        # Layout 1 is closed too, so that no second entry can be made there.
        for key in (keys.task(OTHER), keys.task(OWN), keys.entry(OTHER)):
            with pytest.raises(NoPermissionError):
                await client.hset(key, "state:1", "completed")
        with pytest.raises(NoPermissionError):
            await client.set(keys.ledger_layout(), "migrating")
    async with valkey_as(pair, "supervisor") as client:
        entry = await Ledger(client, deadline_s=PATIENCE_S).read(str(OTHER))
        assert entry is not None
        assert entry.generations[1].state == "running"
        with pytest.raises(NoPermissionError):
            await client.delete(keys.ledger_layout())


async def test_a_worker_that_calls_an_agent_reaches_the_tasks_of_that(
    pair: Guarded,
) -> None:
    """It notes what it called, and reads the report."""
    child = TaskName("BudgetTrackerAgent", "child")
    body = json.dumps({"task_id": child}).encode()
    async with as_worker(pair, "caller") as client:
        ledger = Ledger(client, deadline_s=PATIENCE_S)
        called = [(OTHER, child, "BudgetTrackerAgent.check")]
        await ledger.accept_many([(child, 1, body, "")], called)
        assert await ledger.find_report(child, 1) is None


async def test_a_child_hears_that_its_parent_is_cancelled_though_it_cannot_read_it(
    pair: Guarded,
) -> None:
    parent = TaskName("CallerAgent", "parent")
    async with as_worker(pair, "caller") as client:
        await Ledger(client, deadline_s=PATIENCE_S).begin(parent, 1, "w", 1, LEASE_MS)
    async with valkey_as(pair, "supervisor") as client:
        await Ledger(client, deadline_s=PATIENCE_S).cancel(str(parent), None, "enough")
    async with as_worker(pair, "budget") as client:
        wish = await Ledger(client, deadline_s=PATIENCE_S).cancel_request(str(parent))
    assert wish == CancelRequest("enough")


async def test_a_worker_that_hears_of_a_cancellation_notes_it_for_another_agent(
    pair: Guarded,
) -> None:
    """No supervisor need run; and what it may not do is no reason to take the server for absent."""
    task = TaskName("CallerAgent", "unwanted")
    async with as_worker(pair, "caller") as client:
        ledger = Ledger(client, deadline_s=PATIENCE_S)
        await ledger.begin(task, 1, "w2", 1, LEASE_MS)
    async with as_worker(pair, "budget") as client:
        breaker = Breaker(failures=1)
        stranger = Ledger(client, deadline_s=PATIENCE_S, breaker=breaker)
        for _ in range(2):
            found = await stranger.cancel(str(task), None, "enough")
            assert isinstance(found, CancelOutcome)
        assert not breaker.is_open
        assert await client.pttl(keys.task_agent(task)) > 0
    async with as_worker(pair, "caller") as client:
        ledger = Ledger(client, deadline_s=PATIENCE_S)
        begun = await ledger.begin(task, 1, "w3", 1, LEASE_MS)
        assert begun == CancelRequest("enough")
        found = await ledger.finish(task, 1, "completed", b"{}")
        assert found == CancelRequest("enough")


async def test_what_a_worker_does_to_pointers_is_mended_by_whoever_works_on_the_task(
    pair: Guarded,
) -> None:
    """As the page on security says: it can hide a task from whoever has its id alone."""
    async with as_worker(pair, "budget") as client:
        await client.set(keys.task_agent(OTHER), "BudgetTrackerAgent")
    async with valkey_as(pair, "supervisor") as client:
        assert await Ledger(client, deadline_s=PATIENCE_S).read(str(OTHER)) is None
    async with as_worker(pair, "caller") as client:
        await Ledger(client, deadline_s=PATIENCE_S).once(OTHER, 1, "w2", "mail", "t")
    async with valkey_as(pair, "supervisor") as client:
        assert await Ledger(client, deadline_s=PATIENCE_S).read(str(OTHER)) is not None
