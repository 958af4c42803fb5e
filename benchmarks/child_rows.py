"""Tasks that tasks call, beside the same tasks bare: one recalled answer after the other, and a map over many."""

import asyncio
import sys
import time
from dataclasses import replace
from typing import Any

import nats.errors

from benchmarks.lanes import SLOW, Lane, assignment
from benchmarks.pipeline_rows import NOTHING
from benchmarks.processes import NotMeasuredError
from benchmarks.producer import Asking, Producer
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, percentile, ratio

#: Items of a map, those under way at once, the share of the rate of bare tasks that is asked, and how much longer a
#: recalled call may take than a recalled task.
ITEMS = 1_000
AT_ONCE = 200
ASKED_SHARE = 0.6
ASKED_LONGER = 1.5
_CALL = "call of a recalled task"
_MAP = f"map over {ITEMS:,} tasks that do nothing"


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, or one that says why there is no figure; callers and called are two workers."""
    try:
        async with Producer(nats_url, redis_url) as producer:
            return [
                await _recalled(producer, profile.questions),
                await _mapped(producer, profile.rounds),
            ]
    except (NotMeasuredError, TimeoutError, nats.errors.Error) as error:
        return [missing(_CALL, str(error) or "no answer in time")]


def _caller(task: str) -> Lane:
    command = (sys.executable, "-m", "tasklore", "worker", "benchmarks.agents.callers")
    return replace(
        NOTHING,
        name=task,
        task_subject=f"tasks.CallerAgent.{task}",
        consumer="CallerAgent",
        command=command,
    )


async def _recalled(producer: Producer, count: int) -> Row:
    lane = _caller("call_in_turn")
    await producer.prepare(SLOW)
    await producer.prepare(lane)
    workers = producer.worker(SLOW), producer.worker(lane)
    async with (
        workers[0],
        workers[1],
        producer.asking(lane) as asking,
        producer.asking(SLOW) as asking_bare,
    ):
        # The first also waits for both to start, and remembers the answer.
        await _ask(asking, lane, 2)
        bare = list[float]()
        called = list[float]()
        for _ in range(2):
            called += await _ask(asking, lane, count // 2)
            for _ in range(count // 2):
                bare.append((await asking_bare.ask(assignment(SLOW, {"number": 1})))[0])
    times = percentile(called, 0.5) / percentile(bare, 0.5)
    return Row(
        _CALL,
        p50_ms=percentile(called, 0.5),
        p99_ms=percentile(called, 0.99),
        compared=f"p50 {times:.2f}x a bare one ({percentile(bare, 0.5):.2f} ms), asked at most {ASKED_LONGER}x",
        how=f"{len(called)} calls out of a task of another worker, {len(bare)} bare tasks in turns",
    )


async def _mapped(producer: Producer, rounds: int) -> Row:
    lane = _caller("map_over")
    await producer.prepare(NOTHING)
    workers = producer.worker(NOTHING), producer.worker(lane)
    async with (
        workers[0],
        workers[1],
        producer.asking(lane) as asking,
        producer.asking(NOTHING) as asking_bare,
    ):
        await _ask(asking, lane, 50)
        bare_s = list[float]()
        mapped_s = list[float]()
        for _ in range(max(2, rounds)):
            mapped_s.append(await _ask(asking, lane, ITEMS))
            bare_s.append(await _side_by_side(asking_bare))
    bare = ITEMS / min(bare_s)
    mapped = ITEMS / min(mapped_s)
    return Row(
        _MAP,
        tasks_per_s=mapped,
        compared=f"{ratio(mapped, bare)} bare tasks ({bare:,.0f}/s), asked at least {ASKED_SHARE:g}x",
        how=f"{AT_ONCE} at once on both sides, the best of {len(mapped_s)} in turns",
    )


async def _side_by_side(asking: Asking) -> float:
    room = asyncio.Semaphore(AT_ONCE)

    async def bare(number: int) -> None:
        async with room:
            await asking.ask(assignment(NOTHING, {"number": number}))

    began = time.perf_counter()
    await asyncio.gather(*(bare(number) for number in range(ITEMS)))
    return time.perf_counter() - began


async def _ask(asking: Asking, lane: Lane, count: int) -> Any:
    _, report = await asking.ask(assignment(lane, {"count": count, "at_once": AT_ONCE}))
    if report["status"] != "completed":
        raise NotMeasuredError(
            f"{lane.task_subject} is {report['status']}: {report.get('error')}"
        )
    return report["result"]
