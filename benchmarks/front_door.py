"""What the command itself costs: a question asked from a shell, a worker's imports, the demonstration."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median

from benchmarks import http_rows
from benchmarks.processes import Finished, NotMeasuredError, run_to_end
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, ratio

QUESTION = "Analyze a budget of 50000, spent 42000, history 5000, 7000, 8000, 6000"
#: What a worker process loads before it can take its first task.
WORKER_IMPORTS = "import tasklore.workers.wiring, tasklore.workers.agents.budget"
COMMAND = (sys.executable, "-m", "tasklore")
#: What is started to ask the API, by the names of its rows.
CLIENTS = {
    "tasklore --help": ("--help",),
    "tasklore schedules list": ("schedules", "list"),
    "tasklore ask": ("ask", QUESTION),
}
PATIENCE_S = 60.0


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows of commands that ask the API, of a worker's imports and of the demonstration."""
    rows = await _measure_clients(nats_url, redis_url, profile)
    imports = (sys.executable, "-c", WORKER_IMPORTS)
    rows.append(await _repeat("worker imports", imports, {}, profile.commands, _cpu))
    rows.append(
        await _repeat(
            "tasklore demo",
            (*COMMAND, "demo"),
            {},
            max(2, profile.commands // 2),
            _wall,
        )
    )
    return rows


async def _measure_clients(
    nats_url: str, redis_url: str, profile: Profile
) -> list[Row]:
    """Return what starting a client of the API costs, beside the import of the library that reads its words."""
    times = profile.commands * 4
    typer = (sys.executable, "-c", "import typer")
    least = await _repeat("import typer", typer, {}, times, _cpu)
    rows = [least]
    try:
        async with http_rows.served(nats_url, redis_url) as api:
            environment = {"TASKLORE_API_URL": api}
            async with asyncio.timeout(PATIENCE_S):
                while not await _is_answered(environment):
                    pass
            for what, words in CLIENTS.items():
                command = (*COMMAND, *words)
                rows.append(await _repeat(what, command, environment, times, _cpu))
    except (NotMeasuredError, TimeoutError) as error:
        return [*rows, missing("a client of the API", str(error) or "not ready")]
    return [least, *(_compare(row, least) for row in rows[1:])]


def _compare(row: Row, least: Row) -> Row:
    if row.seconds is None or least.seconds is None:
        return row
    return replace(
        row, compared=f"CPU {ratio(row.seconds, least.seconds)} {least.what}"
    )


async def _is_answered(environment: Mapping[str, str]) -> bool:
    try:
        await asyncio.to_thread(
            run_to_end, (*COMMAND, "ask", QUESTION), environment, PATIENCE_S
        )
    except NotMeasuredError:
        return False
    return True


def _cpu(cost: Finished) -> float:
    return cost.cpu_s


def _wall(cost: Finished) -> float:
    return cost.wall_s


async def _repeat(
    what: str,
    command: tuple[str, ...],
    environment: Mapping[str, str],
    times: int,
    figure: Callable[[Finished], float],
) -> Row:
    """Run *command* once unmeasured, then *times* times, and return the row of its median."""
    try:
        costs = [
            await asyncio.to_thread(run_to_end, command, environment, PATIENCE_S)
            for _ in range(times + 1)
        ][1:]
    except NotMeasuredError as error:
        return missing(what, str(error))
    kind = "CPU" if figure is _cpu else "wall clock"
    return Row(
        what,
        seconds=median(figure(cost) for cost in costs),
        how=f"{kind} of the process, median of {times}, warm",
    )
