"""What holding calls to limits costs: a reservation beside a PING, and how many calls a second one store checks."""

import asyncio
import time

from redis.asyncio import Redis

from benchmarks.profiles import Profile
from benchmarks.table import Row, percentile
from contracts.admission.limits import CallUsage, ModelCall, Payer, Reservation, read_limits
from memory.budgets.governor import Governor
from memory.budgets.store import Budgets
from memory.functions import load_functions

#: Calls a second that one store is to check, ms that a check may take in the 99th of a hundred, calls under way.
ASKED_PER_S, ASKED_P99_MS, AT_ONCE = 2_000, 1.0, 64
#: A rate of requests, one of tokens, and money of a tenant and of a tree.
LIMITS = [
    {"name": "rpm", "model": "gpt-6*", "requests": 1_000_000, "every": "minute"},
    {"name": "tpm", "model": "gpt-6*", "tokens": 1_000_000_000, "every": "minute"},
    {"name": "day", "tenant": "*", "usd": 1_000_000, "every": "day", "at_limit": "refuse"},
    {"name": "run", "usd": 1_000, "every": "tree", "at_limit": "refuse"},
]


def _call(number: int) -> ModelCall:
    payer = Payer(tenant="acme", agent="Reader", task="read", task_id=f"t{number % 100}", run=f"t{number}:1:1")
    return ModelCall(
        "gpt-6-luna", payer, "What is the capital of France?", 200, lambda read, written: 10 * (read + written)
    )


async def measure(redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows; each call is held against four accounts."""
    async with Redis.from_url(redis_url) as redis:
        await load_functions(redis)
        await Budgets(redis).change(read_limits({"limits": LIMITS}), "bench")
        async with Governor(redis).running() as governor:
            rows = [await _one_by_one(redis, governor, profile), await _side_by_side(governor, profile)]
        await Budgets(redis).change(read_limits({}), "bench")
    return rows


async def _one_by_one(redis: Redis, governor: Governor, profile: Profile) -> Row:
    reserved, pinged = list[float](), list[float]()
    held: Reservation | None = None
    for number in range(profile.questions):
        began = time.perf_counter()
        held = await governor.reserve(_call(number))
        reserved.append((time.perf_counter() - began) * 1000)
        governor.settle(held, CallUsage(20, 50, 0, 700))
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


async def _side_by_side(governor: Governor, profile: Profile) -> Row:
    numbers = iter(range(10_000_000, 10_000_000 + profile.questions * 5))

    async def work() -> None:
        for number in numbers:
            governor.settle(await governor.reserve(_call(number)), CallUsage(20, 50, 0, 700))

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    await governor.flush()
    rate = profile.questions * 5 / (time.perf_counter() - began)
    return Row(
        "calls that one store checks",
        tasks_per_s=rate,
        compared=f"asked at least {ASKED_PER_S:,}/s",
        how=f"{profile.questions * 5} calls, {AT_ONCE} at once out of one process, reserved and settled",
    )
