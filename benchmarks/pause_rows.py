"""Remembered answers while Valkey stands still for a moment: how many are computed again.

An answer that is computed although it was remembered costs money where a model gives it.
"""

import asyncio
import os
import signal
from collections import Counter
from dataclasses import dataclass

import nats.errors

from benchmarks.lanes import OURS
from benchmarks.processes import NotMeasuredError
from benchmarks.producer import Producer
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing
from tasklore.runtime.servers.embedded import EmbeddedServers

#: Milliseconds for which Valkey is stopped.
PAUSE_MS = 200
#: Tasks that the worker holds at once.
_SLOTS = 512
#: Different questions of the lane: so many are computed in any case, while nothing is remembered yet.
_QUESTIONS = 64
_WHAT = f"remembered answers, Valkey stopped for {PAUSE_MS} ms, {_SLOTS} slots"


@dataclass(frozen=True)
class _Emptied:
    """How a full queue was emptied: tasks a second, and how memory answered."""

    tasks_per_s: float
    outcomes: Counter[str]

    @property
    def computed(self) -> int:
        """Number of tasks that were not answered by what was remembered."""
        return self.outcomes.total() - self.outcomes["hit"]


async def measure(servers: EmbeddedServers, profile: Profile) -> list[Row]:
    """Return the row, or one that says why there is no figure."""
    async with Producer(servers.nats_url, servers.redis_url) as producer:
        try:
            return [await _measure(servers, producer, profile)]
        except (NotMeasuredError, TimeoutError, nats.errors.Error) as error:
            return [missing(_WHAT, str(error) or "no answer in time")]


async def _measure(
    servers: EmbeddedServers, producer: Producer, profile: Profile
) -> Row:
    await producer.prepare(OURS)
    await producer.measure_rate(OURS, _QUESTIONS, profile.warm_up)
    quiet = await _empty_a_queue(servers, producer, profile, pause_ms=0)
    paused = await _empty_a_queue(servers, producer, profile, pause_ms=PAUSE_MS)
    again = paused.computed - quiet.computed
    return Row(
        _WHAT,
        tasks_per_s=paused.tasks_per_s,
        compared=(
            f"{again:,} of {profile.tasks:,} computed again, "
            f"{again / quiet.tasks_per_s:.2f} s of the quiet rate "
            f"({quiet.tasks_per_s:,.0f}/s); asked 1 s at most"
        ),
        how=", ".join(f"{count} {word}" for word, count in paused.outcomes.items()),
    )


async def _empty_a_queue(
    servers: EmbeddedServers, producer: Producer, profile: Profile, *, pause_ms: int
) -> _Emptied:
    """Time a queue of remembered questions; stop Valkey once the first of them are answered."""

    async def stand_still() -> None:
        if pause_ms:
            os.kill(servers.valkey.pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(pause_ms / 1000)
            finally:
                os.kill(servers.valkey.pid, signal.SIGCONT)

    rate = await producer.measure_rate(
        OURS,
        profile.warm_up,
        profile.tasks,
        environment={"TASKLORE_SLOTS": str(_SLOTS)},
        after_warm_up=stand_still,
    )
    return _Emptied(rate.tasks_per_s, rate.outcomes)
