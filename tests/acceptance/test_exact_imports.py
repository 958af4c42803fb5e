"""Answers to questions of exact types, exported, forgotten and imported: the agent finds them as it did before."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from memory.long_term.store import LongTermMemory
from tasklore.ltm.files import ImportForm, import_text
from tests.acceptance.agents import exact
from tests.acceptance.command import environment, tasklore
from tests.acceptance.house import AGENTS, House
from tests.acceptance.outside import Json, Outside, outside

AGENT = "ExactAgent"
PARCEL: Json = {
    "price": "50k",
    "discount": "twenty per cent",
    "way": "5 ft 2 in",
    "within": "1 year and 35 days",
    "since": "2026-05-01T10:00+02:00",
    "weight": "2 lb",
    "pause": 90,
    "until": "1 June 2026",
    "shares": ["1%", None, 2.5],
    "ways": ["1 mile", "3 km"],
    "pauses": ["3 months", "PT36H"],
    "days": ["2026-06-02", "2026-06-01"],
}
TRIP: Json = {
    "price": 50_000,
    "discount": 20,
    "way": 12,
    "within": 90,
    "since": "2026-05-01T10:00Z",
    "lease": "2 years",
}
NEAR: Json = {**TRIP, "price": 50_100, "discount": "20.25%", "way": "12.3 km", "since": "2026-05-01T12:30+02:00"}


async def test_exact_answers_are_found_again_whether_imported_by_card_or_by_code(
    own_house: House, tmp_path: Path
) -> None:
    """Under the very keys of before, and near to the same questions."""
    env = environment(TASKLORE_NATS_URL=own_house.servers.nats_url, TASKLORE_REDIS_URL=own_house.servers.redis_url)
    # What is asked about is the key: a busy machine must not answer "unavailable" for it.
    own_house.worker(str(AGENTS / "exact.py"), memory_budget_ms=5000).ready()

    def command(*arguments: str) -> None:
        done = tasklore("ltm", *arguments, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr

    async with outside(own_house.servers.nats_url) as program, memory_of(own_house) as memory:
        assert await outcomes(program) == ["miss", "miss", "near"]
        computed = await keys_in(memory)
        assert len(computed) == 2

        command("export", "--agent", AGENT, "out.json")
        command("forget", "--all", "--yes")
        command("import", "--agent", AGENT, "out.json")
        assert await keys_in(memory) == computed
        assert await outcomes(program) == ["hit", "hit", "near"]

        await memory.forget(everything=True)
        forms = {task.name: ImportForm.of_task(exact.agent, task) for task in exact.agent.tasks.values()}
        done = await import_text(memory, AGENT, (tmp_path / "out.json").read_bytes(), forms, now_ms=1_800_000_000_000)
        assert (done.stored, done.refused) == (2, {})
        assert await keys_in(memory) == computed
        assert await outcomes(program) == ["hit", "hit", "near"]


async def outcomes(program: Outside) -> list[str]:
    """Return what the memory said to a parcel, a trip, and a trip that is near to it."""
    asked: list[tuple[str, Any]] = [("send", PARCEL), ("travel", TRIP), ("travel", NEAR)]
    reports = [await program.ask(AGENT, task, parameters) for task, parameters in asked]
    assert {report["status"] for report in reports} == {"completed"}
    return [report["memory"]["outcome"] for report in reports]


async def keys_in(memory: LongTermMemory) -> set[str]:
    """Return the key of every entry."""
    return {entry.key async for entry in memory.entries()}


@asynccontextmanager
async def memory_of(house: House) -> AsyncIterator[LongTermMemory]:
    """Open the memory of the house."""
    async with Redis.from_url(house.servers.redis_url, socket_connect_timeout=5) as client:
        yield LongTermMemory(client, budget_s=5.0)
