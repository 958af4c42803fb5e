"""What holding calls to limits costs: a reservation beside a PING, and how many calls a second one store checks."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from redis.asyncio import Redis

from benchmarks.profiles import Profile
from benchmarks.table import Row, percentile
from tasklore.contracts.admission.limits import (
    CallUsage,
    ModelCall,
    Payer,
    Reservation,
    read_limits,
)
from tasklore.memory.budgets.governor import ModelBudget
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.functions import load_functions

#: Calls a second that one store is to check, ms for the 99th of a hundred, calls under way in a process.
ASKED_PER_S = 2_000
ASKED_P99_MS = 1.0
AT_ONCE = 64
#: Processes that call side by side: one of Python is at the limit of its core before the store is.
PROCESSES = 2
#: Seconds in which each has imported what it needs, and made its first call.
_IMPORTED_S = 5.0
#: A rate of requests, one of tokens, and money of a tenant and of a tree.
LIMITS = [
    {"name": "rpm", "model": "gpt-6*", "requests": 1_000_000, "every": "minute"},
    {"name": "tpm", "model": "gpt-6*", "tokens": 1_000_000_000, "every": "minute"},
    {
        "name": "day",
        "tenant": "*",
        "usd": 1_000_000,
        "every": "day",
        "at_limit": "refuse",
    },
    {"name": "run", "usd": 1_000, "every": "tree", "at_limit": "refuse"},
]


def _call(number: int) -> ModelCall:
    payer = Payer(
        tenant="acme",
        agent="Reader",
        task="read",
        task_id=f"t{number % 100}",
        run=f"t{number}:1:1",
    )
    return ModelCall(
        model="gpt-6-luna",
        payer=payer,
        text="What is the capital of France?",
        most_output=200,
        price=lambda read, written: 10 * (read + written),
    )


async def measure(redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows; each call is held against four accounts."""
    async with Redis.from_url(redis_url) as redis:
        await load_functions(redis)
        await Budgets(redis).change(read_limits({"limits": LIMITS}), "bench")
        async with ModelBudget(redis).running() as governor:
            rows = [
                await _one_by_one(redis, governor, profile),
                await _side_by_side(redis_url, profile),
            ]
        await Budgets(redis).change(read_limits({}), "bench")
    return rows


async def _one_by_one(redis: Redis, governor: ModelBudget, profile: Profile) -> Row:
    reserved = list[float]()
    pinged = list[float]()
    held: Reservation | None = None
    for number in range(profile.questions):
        began = time.perf_counter()
        held = await governor.reserve(_call(number))
        reserved.append((time.perf_counter() - began) * 1000)
        governor.settle(held, CallUsage(input=20, output=50, cached=0, nano_usd=700))
        await governor.flush()
        began = time.perf_counter()
        await redis.ping()
        pinged.append((time.perf_counter() - began) * 1000)
    return Row(
        "call held against four accounts",
        p50_ms=percentile(reserved, 0.5),
        p99_ms=percentile(reserved, 0.99),
        compared=f"a PING takes {percentile(pinged, 0.5):.2f} ms, p99 {percentile(pinged, 0.99):.2f}; "
        f"asked at most {ASKED_P99_MS:g} ms in 99 of 100",
        how=f"{len(reserved)} calls one after the other, each settled before the next: one round trip each way",
    )


async def _side_by_side(redis_url: str, profile: Profile) -> Row:
    calls = profile.questions * 5 // PROCESSES
    begins_at = time.time() + _IMPORTED_S
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        loop = asyncio.get_running_loop()
        spans = await asyncio.gather(
            *(
                loop.run_in_executor(
                    pool,
                    work_through,
                    redis_url,
                    range(first, first + calls + 1),
                    begins_at,
                )
                for first in range(10_000_000, 10_000_000 * (PROCESSES + 1), 10_000_000)
            )
        )
    rate = (
        PROCESSES
        * calls
        / (max(ended for _, ended in spans) - min(began for began, _ in spans))
    )
    return Row(
        "calls that one store checks",
        tasks_per_s=rate,
        compared=f"asked at least {ASKED_PER_S:,}/s",
        how=f"{PROCESSES * calls} calls, {AT_ONCE} at once out of each of {PROCESSES} processes, reserved and settled",
    )


def work_through(
    redis_url: str, numbers: range, begins_at: float
) -> tuple[float, float]:
    """Reserve and settle the calls *numbers*, in a process of its own; return when that began and ended, by the clock.

    It begins at *begins_at*, so that all processes have imported what they need and run side by side.
    """
    return asyncio.run(_work_through(redis_url, iter(numbers), begins_at))


async def _work_through(
    redis_url: str, numbers: Iterator[int], begins_at: float
) -> tuple[float, float]:
    async with (
        Redis.from_url(redis_url) as redis,
        ModelBudget(redis).running() as governor,
    ):

        async def work() -> None:
            for number in numbers:
                governor.settle(
                    await governor.reserve(_call(number)),
                    CallUsage(input=20, output=50, cached=0, nano_usd=700),
                )

        # The first call of a process loads the tables that count tokens.
        governor.settle(
            await governor.reserve(_call(next(numbers))),
            CallUsage(input=20, output=50, cached=0, nano_usd=700),
        )
        await asyncio.sleep(begins_at - time.time())
        began = time.time()
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        await governor.flush()
        return began, time.time()
