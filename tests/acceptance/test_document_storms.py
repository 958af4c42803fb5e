"""What documents live through: whoever edits them is killed at random points, and strangers try to reach them."""

import asyncio
import json
import sys
from pathlib import Path
from random import Random

import pytest
from redis.asyncio import Redis

from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.integration.documents import KINDS, USER, store_on
from tests.random_plans import back_and_forth
from tests.strangers import Strangers

ROOT = Path(__file__).resolve().parents[2]


async def killed(url: str, kills: int) -> dict[str, int]:
    """Have *kills* processes killed and return what was counted afterwards."""
    program = "tests.acceptance.document_deaths"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        program,
        url,
        "--kills",
        str(kills),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await process.communicate()
    found: dict[str, int] = json.loads(said)
    return found


async def test_who_is_killed_leaves_no_half_of_an_edit(
    redis: Redis, servers: EmbeddedServers
) -> None:
    """Eight times: each document is what its log makes of it, and each fact is closed with its plan, which is once."""
    found = await killed(servers.redis_url, 8)
    assert {what: found[what] for what in ("torn", "doubled", "half", "lost")} == {
        "torn": 0,
        "doubled": 0,
        "half": 0,
        "lost": 0,
    }
    assert found["plans"] - found["undone"] == found["facts"]


@pytest.mark.long
async def test_five_hundred_who_are_killed_leave_no_half_of_an_edit(
    redis: Redis, servers: EmbeddedServers
) -> None:
    found = await killed(servers.redis_url, 500)
    assert not any(found[what] for what in ("torn", "doubled", "half", "lost")), found
    assert found["plans"] - found["undone"] == found["facts"]


@pytest.mark.long
async def test_a_hundred_thousand_accesses_of_strangers_reach_nothing(
    redis: Redis,
) -> None:
    strangers = Strangers(
        store_on(redis), PersonalQueue(redis, "facts", deadline_s=60.0), Random(1)
    )
    await strangers.settle()
    await strangers.intrude(100_000)
    await strangers.check()


@pytest.mark.long
async def test_ten_thousand_plans_are_taken_back_to_the_byte(redis: Redis) -> None:
    plans = 0
    seed = 0
    store = DocumentStore(redis, KINDS, deadline_s=5.0)
    while plans < 10_000:
        plans += await back_and_forth(store, Random(seed), 10)
        await store.forget(USER)
        seed += 1
