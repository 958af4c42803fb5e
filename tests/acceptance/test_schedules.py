"""Ticks of schedules under supervisors that are killed: each makes one run, and in time."""

import asyncio
import sys
import time

import pytest

from tests.acceptance.house import PROBE, House
from tests.http_client import ask

SCHEDULES = 10


@pytest.mark.parametrize("ticks", [80, pytest.param(1_000, marks=pytest.mark.long)])
async def test_each_tick_is_one_run_although_supervisors_are_killed(
    own_house: House, ticks: int
) -> None:
    """Of three supervisors one is killed every three seconds, and another is started in its place."""
    own_house.worker(PROBE).ready()
    running = [own_house.supervisor() for _ in range(3)]
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
        running[kills % 3] = await asyncio.to_thread(own_house.supervisor().ready)
        kills += 1
    late_ms: list[float] = []
    for number in range(SCHEDULES):
        runs = own_house.runs(f"s{number}")
        first = int(runs[0])
        # A tick that were lost or doubled would move all that follow by a second.
        late_ms += [1_000 * (run - first - place) for place, run in enumerate(runs)]
        assert len(runs) >= ticks // SCHEDULES
    late_ms.sort()
    half = late_ms[len(late_ms) // 2]
    most = late_ms[len(late_ms) * 99 // 100]
    sys.stdout.write(
        f"{len(late_ms)} ticks, {kills} kills, late by {half:.1f} ms at p50, {most:.1f} at p99\n"
    )
    assert late_ms[0] >= 0
    assert late_ms[-1] < 1_000
