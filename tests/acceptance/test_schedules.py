"""Ticks of schedules under supervisors that are killed: each makes one run, and in time."""

import asyncio
import sys
import time
from collections import defaultdict

import pytest

from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import PROBE, System
from tests.http_client import ask

SCHEDULES = 10
#: Milliseconds by which a run may be noted before its tick, as by another clock.
EARLY_MS = 100


@pytest.mark.parametrize("ticks", [40, pytest.param(1_000, marks=pytest.mark.long)])
async def test_each_tick_is_one_run_although_supervisors_are_killed(
    own_system: System, ticks: int
) -> None:
    """Of three supervisors one is killed every three seconds, and another is started in its place."""
    own_system.worker(PROBE).ready()
    running = [own_system.supervisor() for _ in range(3)]
    for one in running:
        await asyncio.to_thread(one.ready().await_agents, 1)
    for number in range(SCHEDULES):
        task = {
            "agent_id": "ProbeAgent",
            "task": "fresh",
            "parameters": {"label": f"s{number}"},
        }
        answer = await ask(
            running[0].api,
            "POST",
            "/v1/schedules",
            {**task, "every": 1, "id": f"s{number}"},
        )
        assert answer.status == 201, answer.body
    kills = 0
    ends_at = time.monotonic() + ticks / SCHEDULES + 6
    while time.monotonic() < ends_at:
        await asyncio.sleep(3)
        running[kills % 3].kill()
        running[kills % 3] = await asyncio.to_thread(own_system.supervisor().ready)
        kills += 1
    for one in running:
        one.kill()
    async with outside(own_system.servers.nats_url) as program:

        async def is_settled() -> bool:
            """Return whether what had begun, and what was stored to begin, has ended."""
            reported = await ticks_of(program)
            return all(
                len(own_system.runs(name)) == len(seconds) >= ticks // SCHEDULES
                for name, seconds in reported.items()
            )

        await program.eventually(is_settled)
        reported = await ticks_of(program)
    late_ms = sorted(
        1_000 * (run - second)
        for name, seconds in reported.items()
        for run, second in zip(own_system.runs(name), seconds, strict=False)
    )
    half = late_ms[len(late_ms) // 2]
    most = late_ms[len(late_ms) * 99 // 100]
    sys.stdout.write(
        f"{len(late_ms)} ticks, {kills} kills, late by {half:.1f} ms at p50, {most:.1f} at p99\n"
    )
    assert len(reported) == SCHEDULES
    for seconds in reported.values():
        # None was lost, and none came twice.
        assert seconds == list(range(seconds[0], seconds[0] + len(seconds)))
    assert late_ms[0] > -EARLY_MS


async def ticks_of(program: Outside) -> dict[str, list[int]]:
    """Return the second of each tick that is reported, in order, by schedule."""
    found = defaultdict[str, list[int]](list)
    for subject, reports in (await program.counts("REPORTS")).items():
        name, _, second = subject.split(".")[2].split("-")
        found[name] += [int(second)] * reports
    return {name: sorted(seconds) for name, seconds in found.items()}
