"""What is looked at every few seconds of a soak: the processes from outside and inside, the streams, the keys."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

from redis.asyncio import Redis

from tests.acceptance.chaos.soak_load import Load
from tests.acceptance.chaos.stage import AGENT, open_files, pid_of, resident_mb
from tests.acceptance.system import Served, System

#: Streams that are empty, or as large as what was given up or reported.
STREAMS = ("TASKS", "LATER", "DEAD", "REPORTS")

#: Questions after which each of two workers has most likely counted itself.
CENSUSES = 12
_SCAN = 10_000


@dataclass
class Sample:
    """One look; counts of processes are by name and what is counted."""

    at_s: float
    figures: dict[str, float] = field(default_factory=dict)
    streams: dict[str, int] = field(default_factory=dict)
    keys: Counter[str] = field(default_factory=Counter)
    #: What the program had counted then: tasks of each kind, statuses, answers.
    kinds: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)


class Looker:
    """Looks at *processes* (by name) and the servers of *system*."""

    def __init__(
        self, system: System, processes: dict[str, Served], program: Load
    ) -> None:
        self._system = system
        self._processes = processes
        self._program = program
        self._started = time.monotonic()

    async def look(self) -> Sample:
        """Return how things are now."""
        sample = Sample(time.monotonic() - self._started)
        for name, process in self._processes.items():
            pid = pid_of(process)
            sample.figures[f"{name} RSS MB"] = resident_mb(pid)
            sample.figures[f"{name} open files"] = open_files(pid)
        for stream in STREAMS:
            sample.streams[stream] = (await self._program.api(f"STREAM.INFO.{stream}"))[
                "state"
            ]["messages"]
        await self._count_inside(sample)
        async with Redis.from_url(
            self._system.servers.redis_url, socket_timeout=10
        ) as redis:
            async for key in redis.scan_iter(count=_SCAN):
                sample.keys[key.split(b":")[1].decode(errors="replace")] += 1
        sample.kinds = Counter(self._program.kinds)
        sample.statuses = Counter(self._program.statuses)
        sample.answers = Counter(self._program.answers)
        return sample

    async def _count_inside(self, sample: Sample) -> None:
        """Let the workers count themselves; whichever takes a census answers for itself."""
        names = {pid_of(process): name for name, process in self._processes.items()}
        asked = [
            await self._program.assign(AGENT, "census", {}) for _ in range(CENSUSES)
        ]
        for report in await asyncio.gather(
            *(self._program.report_of(task) for task in asked)
        ):
            found = report["result"]
            name = names[found["pid"]]
            sample.figures[f"{name} asyncio tasks"] = found["asyncio_tasks"]
            sample.figures[f"{name} objects"] = found["objects"]
        self._program.heard.clear()
