"""Sessions over processes: a value is computed once and used by many, and no session sees what is in another."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.memory.sessions.session import SessionCache
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import AGENTS, System

SHARERS = AGENTS / "sharers.py"
READERS = ("FirstAgent", "SecondAgent", "ThirdAgent")


@pytest.fixture
async def sessions(own_system: System) -> AsyncIterator[SessionCache]:
    """Open the sessions of the system, as a supervisor would."""
    async with Redis.from_url(own_system.servers.redis_url) as client:
        yield SessionCache(client, deadline_s=60.0)


@pytest.fixture
async def program(own_system: System) -> AsyncIterator[Outside]:
    """Start one worker process for each reader, the first of which plans too, and connect an outside program."""
    agents = [["planner", "first"], ["second"], ["third"]]
    workers = [
        own_system.worker(*(f"{SHARERS}:{name}" for name in names)) for names in agents
    ]
    for worker in workers:
        await asyncio.to_thread(worker.ready)
    async with outside(own_system.servers.nats_url) as connected:
        yield connected


async def test_a_value_computed_once_is_used_by_three_agents_in_three_processes(
    own_system: System, sessions: SessionCache, program: Outside
) -> None:
    """One computation, three uses, and what they saved is what it took, three times."""
    assert await sessions.create("trip", domain="data")
    planned = await program.ask(
        "PlannerAgent",
        "plan",
        {"label": "trip"},
        session_id="trip",
        phase="plan",
        writes=["results"],
    )
    assert planned["status"] == "completed"
    reports = await asyncio.gather(
        *(
            program.ask(
                reader,
                "use",
                {"label": "trip"},
                session_id="trip",
                phase=f"use_{number}",
            )
            for number, reader in enumerate(READERS)
        )
    )
    results = [report["result"] for report in reports]
    assert [result["planned"] for result in results] == [
        {"plan": "the plan of trip"}
    ] * 3
    assert [result["index"] for result in results] == ["the index of trip"] * 3
    assert (
        len({result["process"] for result in results})
        == len({report["worker_id"] for report in reports})
        == 3
    )
    assert (len(own_system.runs("trip")), len(own_system.runs("index-trip"))) == (1, 1)
    entries = {entry.key: entry for entry in await sessions.entries("trip")}
    assert {key: entry.hits for key, entry in entries.items()} == {
        "plan:results": 3,
        "shared:index": 2,
    }
    assert (entries["plan:results"].computation_ms, entries["plan:results"].agent) == (
        planned["run_ms"],
        "PlannerAgent",
    )
    stats = await sessions.stats("trip")
    assert (stats.total_entries, stats.total_hits) == (2, 5)
    saved_ms = 3 * planned["run_ms"] + 2 * entries["shared:index"].computation_ms
    assert stats.total_saved_time_ms == saved_ms > 0


async def test_two_sessions_at_once_never_see_each_others_entries(
    own_system: System, sessions: SessionCache, program: Outside
) -> None:
    """Same phases, same keys, same agents; what they share is what the long-term memory may share."""
    names = ("north", "south")
    for name in names:
        assert await sessions.create(name)

    async def write(name: str, number: int) -> dict[str, Any]:
        where = {"session_id": name, "phase": f"write_{number}", "writes": ["label"]}
        return await program.ask("PlannerAgent", "write", {"label": name}, **where)

    async def plan(name: str) -> dict[str, Any]:
        where = {"session_id": name, "phase": "plan", "writes": ["plan"]}
        return await program.ask("PlannerAgent", "plan", {"label": "both"}, **where)

    reports = await asyncio.gather(
        *(plan(name) for name in names),
        *(write(name, number) for number in range(10) for name in names),
    )
    assert {report["status"] for report in reports} == {"completed"}
    assert len(own_system.runs("both")) == 1
    looks = await asyncio.gather(
        *(
            program.ask(reader, "look", {"label": name}, session_id=name, phase="look")
            for reader in READERS
            for name in names
        )
    )
    for name in names:
        expected = {"plan:plan": "the plan of both"}
        expected |= {f"write_{number}:label": name for number in range(10)}
        expected |= {f"write_{number}:part:{name}": name for number in range(10)}
        seen = [
            look["result"]["seen"] for look in looks if look["result"]["label"] == name
        ]
        assert seen == [expected] * 3
        assert {entry.hits for entry in await sessions.entries(name)} == {3}
