"""Profile `cluster`: the leader of the queue is killed in a cluster of three, comes back, and then another one is."""

import argparse
import asyncio
import contextlib
import json
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.acceptance.chaos.cluster_nodes import Cluster, ClusterNode
from tests.acceptance.chaos.stage import AGENT, STEADY
from tests.acceptance.chaos.table import Row
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import System

#: Tasks in the long run.
TASKS = 1_000
TASK_MS = 20
WORKERS = 2
SLOTS = 8
REPLICAS = 3
#: Tasks published in a second: the run is to last longer than two elections.
_PER_S = 60.0
#: Seconds for everything to be reported after the last kill: an election takes up to ten.
_ENDS_S = 120.0
#: What has to be current again before another node may die.
_STREAMS = ("TASKS", "REPORTS", "DEAD", "LATER", "KV_agents", "KV_workers")


async def run(options: argparse.Namespace) -> list[Row]:
    """Kill twice."""
    return await leaders_killed(TASKS, kills=2)


@dataclass
class Course:
    """What happened on the way: whom it hit, and when reports came (seconds, `time.monotonic`)."""

    killed: list[str] = field(default_factory=list)
    rejoined_s: float | None = None
    reports_at: list[float] = field(default_factory=list)
    published: list[str] = field(default_factory=list)

    @property
    def longest_pause_s(self) -> float:
        """The longest time without any report."""
        pairs = zip(self.reports_at, self.reports_at[1:], strict=False)
        return max((after - before for before, after in pairs), default=0.0)


@asynccontextmanager
async def standing_cluster() -> AsyncIterator[tuple[Cluster, System]]:
    """Give a cluster with a system on it; nothing of it is left."""
    with tempfile.TemporaryDirectory(
        prefix="tasklore-chaos-", ignore_cleanup_errors=True
    ) as folder:
        async with Cluster(Path(folder) / "servers") as cluster:
            with System(cluster, Path(folder)) as system:
                yield cluster, system


async def leaders_killed(tasks: int, kills: int) -> list[Row]:
    """Send *tasks* tasks and kill the leader of TASKS *kills* times, each time after the one before is back."""
    async with (
        standing_cluster() as (cluster, system),
        outside(cluster.nats_url.split(",")) as program,
    ):
        workers = [
            system.worker(STEADY, slots=SLOTS, replicas=REPLICAS)
            for _ in range(WORKERS)
        ]
        for worker in workers:
            await asyncio.to_thread(worker.ready)
        course = Course()
        sending = asyncio.create_task(_send(program, tasks, course))
        watching = asyncio.create_task(_watch(program, course))
        for kill in range(kills):
            await _reported(program, tasks * (kill + 1) // (kills + 2))
            node = await _leader(cluster, program)
            node.kill()
            course.killed.append(node.name)
            if kill + 1 < kills:
                began = time.monotonic()
                await node.start()
                await program.eventually(lambda: _all_current(program), _ENDS_S)
                course.rejoined_s = time.monotonic() - began
        await sending
        # What is heard need not be stored yet: while there is no leader, workers send it again and again.
        with contextlib.suppress(TimeoutError):
            await program.eventually(lambda: _all_stored(program, tasks), _ENDS_S)
        watching.cancel()
        stored = await program.reports()
        runs = Counter(
            line.split()[2]
            for line in (system.folder / "runs" / "noted").read_text().splitlines()
        )
        alive = [worker.is_running for worker in workers]
        return _rows(tasks, program, course, stored, runs, alive)


async def _send(program: Outside, tasks: int, course: Course) -> None:
    """Publish at an even pace, each again under one message id until it is stored."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with asyncio.TaskGroup() as group:
        for number in range(tasks):
            assignment = program.assignment(
                AGENT, "noted", {"number": number, "ms": TASK_MS}
            )
            course.published.append(assignment["task_id"])
            group.create_task(
                _publish(
                    program, assignment["task_id"], json.dumps(assignment).encode()
                )
            )
            await asyncio.sleep(max(0.0, started + number / _PER_S - loop.time()))


async def _publish(program: Outside, task_id: str, body: bytes) -> None:
    async with asyncio.timeout(_ENDS_S):
        while True:
            try:
                await program.publish(
                    f"tasks.{AGENT}.noted", body, {"Nats-Msg-Id": f"{task_id}:1"}
                )
            except (RuntimeError, TimeoutError):
                # While there is no leader the cluster says so, or says nothing.
                await asyncio.sleep(0.2)
            else:
                return


async def _watch(program: Outside, course: Course) -> None:
    """Note when reports come."""
    while True:
        known = len(program.heard)
        await program.until(
            lambda known=known: len(program.heard) > known, 10 * _ENDS_S
        )
        course.reports_at.append(time.monotonic())


async def _reported(program: Outside, number: int) -> None:
    await program.until(
        lambda: len({report["task_id"] for report in program.heard}) >= number, _ENDS_S
    )


async def _leader(cluster: Cluster, program: Outside) -> ClusterNode:
    """Return the node that leads TASKS."""
    name = (await program.api("STREAM.INFO.TASKS"))["cluster"]["leader"]
    return next(node for node in cluster.nodes if node.name == name)


async def _all_stored(program: Outside, tasks: int) -> bool:
    """Return whether there are so many reports, and nothing is left to do."""
    waiting = (await program.api("STREAM.INFO.TASKS"))["state"]["messages"]
    return waiting == 0 and len(await program.reports()) >= tasks


async def _all_current(program: Outside) -> bool:
    """Return whether every stream has all of its copies, none behind."""
    for stream in _STREAMS:
        replicas = (
            (await program.api(f"STREAM.INFO.{stream}"))
            .get("cluster", {})
            .get("replicas", [])
        )
        if len(replicas) != REPLICAS - 1 or not all(
            copy["current"] and not copy.get("offline") for copy in replicas
        ):
            return False
    return True


def _rows(
    tasks: int,
    program: Outside,
    course: Course,
    stored: dict[str, int],
    runs: Counter[str],
    alive: list[bool],
) -> list[Row]:
    what = f"cluster of {REPLICAS}, leader killed {len(course.killed)} times during {tasks} tasks"
    reported = {subject.split(".")[2] for subject in stored}
    lost = set(course.published) - reported
    heard = lost & {report["task_id"] for report in program.heard}
    told = f"{len(lost)} lost of {len(course.published)}" + (
        f" ({len(heard)} heard but not stored)" if lost else ""
    )
    each_once = set(stored.values()) == {1} and len(stored) == len(reported)
    statuses = Counter(report["status"] for report in program.heard)
    twice = sum(runs.values()) - len(runs)
    pause = f"the longest pause between reports {course.longest_pause_s:.1f} s"
    rejoined = (
        ""
        if course.rejoined_s is None
        else f", rejoined and current after {course.rejoined_s:.1f} s"
    )
    return [
        Row(f"{what}: none lost", f"{told}; {pause}{rejoined}", not lost),
        Row(
            f"{what}: exactly one completed report each",
            f"{len(stored)} reports on {len(reported)} tasks, {dict(statuses)}, {twice} second runs",
            each_once and set(statuses) == {"completed"} and len(reported) == tasks,
        ),
        Row(f"{what}: the workers live", f"{sum(alive)} of {len(alive)}", all(alive)),
    ]
