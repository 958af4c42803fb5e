"""The cost of keeping what models saw: runs of an agent with a tool, with messages and without."""

import sys
import time
from dataclasses import replace

import nats.errors
from redis.asyncio import Redis

from benchmarks.lanes import SLOW, Lane, assignment
from benchmarks.processes import NotMeasuredError
from benchmarks.producer import Asking, Producer
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, percentile

#: How much longer a run may take in whole, and CPU microseconds that its messages may cost.
ASKED_LONGER = 1.5
ASKED_CPU_US = 8_000
_WHAT = "run of an agent with a tool, messages"
LANE: Lane = replace(
    SLOW,
    name="seer",
    task_subject="tasks.SeerAgent.see",
    consumer="SeerAgent",
    command=(sys.executable, "-m", "tasklore", "worker", "benchmarks.agents.seer"),
)


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, or one that says why there is no figure; both ways in turns, by workers of their own."""
    try:
        async with Producer(nats_url, redis_url) as producer:
            await producer.prepare(LANE)
            runs: dict[str, _Runs] = {"0": _Runs(), "24": _Runs()}
            for _ in range(2):
                for hours, so_far in runs.items():
                    await _add_runs(producer, hours, profile.questions // 2, so_far)
    except (NotMeasuredError, TimeoutError, nats.errors.Error) as error:
        return [missing(_WHAT, str(error) or "no answer in time")]
    kept = await _kept_bytes(redis_url)
    off = runs["0"]
    on = runs["24"]
    times = percentile(on.took_ms, 0.5) / percentile(off.took_ms, 0.5)
    more = on.cpu_us - off.cpu_us
    return [
        off.row("off"),
        replace(
            on.row("on"),
            compared=f"p50 {times:.2f}x, asked at most {ASKED_LONGER}x; {more:,.0f} us of CPU more, asked at most "
            f"{ASKED_CPU_US:,}",
            how=f"{on.row('on').how}; {kept:,} bytes of Valkey a task, index included",
        ),
    ]


class _Runs:
    """Runs of one way: their times, and the CPU of their workers."""

    def __init__(self) -> None:
        self.took_ms: list[float] = []
        self.cpu_s = 0.0

    @property
    def cpu_us(self) -> float:
        return self.cpu_s * 1e6 / len(self.took_ms)

    def row(self, way: str) -> Row:
        return Row(
            f"{_WHAT} {way}",
            cpu_us=self.cpu_us,
            p50_ms=percentile(self.took_ms, 0.5),
            p99_ms=percentile(self.took_ms, 0.99),
            how=f"{len(self.took_ms)} runs one after the other: two requests to a function, a tool, 4 KiB each",
        )


async def _add_runs(producer: Producer, hours: str, count: int, runs: _Runs) -> None:
    environment = {"TASKLORE_RUN_MESSAGES_HOURS": hours}
    async with (
        producer.worker(LANE, environment=environment) as worker,
        producer.asking(LANE) as asking,
    ):
        # The first ones also import, and wait for the worker to start.
        await _ask(asking, 5)
        runs.cpu_s -= worker.cpu_s()
        runs.took_ms += await _ask(asking, count)
        runs.cpu_s += worker.cpu_s()


async def _ask(asking: Asking, count: int) -> list[float]:
    took_ms = []
    for number in range(count):
        began = time.perf_counter()
        _, report = await asking.ask(assignment(LANE, {"number": number}))
        took_ms.append((time.perf_counter() - began) * 1000)
        if report["status"] != "completed":
            raise NotMeasuredError(f"a run ended as {report['status']}")
    return took_ms


async def _kept_bytes(redis_url: str) -> int:
    """Return the bytes that the server has for the messages of one task, with its part of the list of its owner."""
    async with Redis.from_url(redis_url) as redis:
        names = [one async for one in redis.scan_iter("tl:run-messages*", count=1000)]
        sizes = [await redis.memory_usage(one) or 0 for one in names]
    tasks = sum(one.startswith(b"tl:run-messages:") for one in names)
    return round(sum(sizes) / max(1, tasks))
