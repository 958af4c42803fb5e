"""Profile `redrive`: a thousand dead letters sent again, by a command that is killed in the middle and repeated."""

import argparse
import asyncio
import sys
from collections import Counter

from tests.acceptance.chaos.stage import stage
from tests.acceptance.chaos.table import Row
from tests.acceptance.command import environment
from tests.acceptance.house import AGENTS, ROOT, House
from tests.acceptance.outside import Outside, outside

LETTERS = 1_000
AGENT = "MortalAgent"
_LABEL = "redriven"
_COMMAND = (sys.executable, "-P", "-m", "tasklore", "dlq", "redrive", "--agent", AGENT)
#: Assignments under way at a time: what one connection can have unanswered without waiting for long.
_AT_ONCE = 50


async def run(_options: argparse.Namespace) -> list[Row]:
    """Return what became of the letters."""
    async with stage() as house:
        worker = house.worker(str(AGENTS / "mortal.py")).ready()
        async with outside(house.servers.nats_url) as program:
            tasks = await _die(program)
            await program.eventually(lambda: _waiting(program, LETTERS))
            (house.folder / "runs" / f"{_LABEL}.cured").touch()
            left = await _redrive_and_kill(house, program)
            repeated = await _redrive(house)
            code = await repeated.wait()
            await program.eventually(lambda: _reported(program, len(tasks)))
            return await _rows(house, program, tasks, left, code, restarts=int(not worker.is_running))


async def _die(program: Outside) -> set[str]:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def assign(number: int) -> str:
        async with turns:
            return await program.assign(AGENT, "live", {"label": _LABEL, "number": number})

    return set(await asyncio.gather(*map(assign, range(LETTERS))))


async def _redrive(house: House) -> asyncio.subprocess.Process:
    env = environment(TASKLORE_NATS_URL=house.servers.nats_url, TASKLORE_REDIS_URL=house.servers.redis_url)
    quiet = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(*_COMMAND, cwd=ROOT, env=env, stdout=quiet, stderr=quiet)


async def _redrive_and_kill(house: House, program: Outside) -> int:
    """Kill the command as soon as it has taken a letter away; return how many are left."""
    first = await _redrive(house)
    await program.eventually(lambda: _fewer(program))
    if first.returncode is None:
        first.kill()
    await first.wait()
    return await _letters(program)


async def _letters(program: Outside) -> int:
    return int((await program.api("STREAM.INFO.DEAD"))["state"]["messages"])


async def _waiting(program: Outside, number: int) -> bool:
    return await _letters(program) == number


async def _fewer(program: Outside) -> bool:
    return await _letters(program) < LETTERS


async def _reported(program: Outside, number: int) -> bool:
    return sum(subject.endswith(".2") for subject in await program.reports()) >= number


async def _rows(house: House, program: Outside, tasks: set[str], left: int, code: int, *, restarts: int) -> list[Row]:
    lines = (house.folder / "runs" / _LABEL).read_text().split()
    runs = Counter(Counter(lines).values())
    stored = Counter(subject.rpartition(".")[2] for subject in await program.reports())
    kept = await _letters(program)
    passed = runs == {2: len(tasks)} and stored == {"1": len(tasks), "2": len(tasks)} and kept == 0 and code == 0
    return [
        Row(
            f"{LETTERS:,} dead letters redriven, the command killed in the middle: {LETTERS:,} executed once more",
            f"killed with {left} left; tasks by runs {dict(runs)}; reports by generation {dict(stored)}; "
            f"{kept} letters left; workers restarted {restarts}",
            passed,
        )
    ]
