"""A recall from long-term memory against a bare GET of the same value, in turns in one process."""

import json
import random
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import cycle

from redis.asyncio import Redis

from benchmarks.budget import analyze, parameters
from benchmarks.processes import NotMeasuredError
from benchmarks.profiles import Profile
from benchmarks.table import Row, percentile, ratio
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.parameters.neighbours import Neighbourhood
from tasklore.contracts.quantities.amounts import Amount
from tasklore.memory import keys
from tasklore.memory.long_term.entries import NearMatch
from tasklore.memory.long_term.store import LongTermMemory

#: Entries among which a neighbour is found.
_NEIGHBOURS = 1000
_QUESTION = "analyze_budget:50000:42000:5000,7000,8000,6000"


class _Plan(Parameters):
    """A question with neighbours."""

    limit: Amount = Field(tolerance="1%")


class _Trip(Parameters):
    """A question with neighbours in two fields."""

    limit: Amount = Field(tolerance=500)
    spent: Amount = Field(tolerance=500)


async def measure(redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows of redis-py's GET and of a recall, both on the running loop with connections of their own."""
    key = keys.ltm("BenchmarkAgent", "1.1", _QUESTION)
    async with Redis.from_url(redis_url) as bare, Redis.from_url(redis_url) as lent:
        # A pause of the machine is a slow sample here; with the budget of a task it would end the measurement.
        memory = LongTermMemory(lent, budget_s=1.0)
        result = json.dumps(analyze(parameters(0))).encode()
        await memory.remember(
            key,
            result,
            computed_ms=100,
            ttl=timedelta(minutes=10),
            now_ms=time.time_ns() // 1_000_000,
        )
        recalled = await memory.recall(key)
        if recalled is None or recalled.result_json != result:
            raise NotMeasuredError("the memory does not return what it was given")
        gets, recalls = await _take_turns(
            lambda: bare.get(key), lambda: memory.recall(key), profile.recalls
        )
        exact, nearest = await _take_turns(*await _neighbours(memory), profile.recalls)
        exact_beside, in_two = await _take_turns(
            *await _neighbours_in_two(memory), profile.recalls
        )
    compared = ", ".join(
        f"p{int(share * 100)} {ratio(percentile(recalls, share), percentile(gets, share))}"
        for share in (0.5, 0.99)
    )
    return [
        Row(
            "redis-py GET",
            p50_ms=percentile(gets, 0.5),
            p99_ms=percentile(gets, 0.99),
            how="asyncio, hiredis, uvloop",
        ),
        Row(
            "LTM recall of one key",
            p50_ms=percentile(recalls, 0.5),
            p99_ms=percentile(recalls, 0.99),
            compared=f"{compared} GET",
            how=f"{profile.recalls:,} of each in turns",
        ),
        Row(
            "LTM near match of one key",
            p50_ms=percentile(nearest, 0.5),
            p99_ms=percentile(nearest, 0.99),
            compared=f"p50 {ratio(percentile(nearest, 0.5), percentile(exact, 0.5))} an exact recall",
            how=f"among {_NEIGHBOURS:,} of one frame, after the exact recall that missed",
        ),
        Row(
            "LTM near match in two fields",
            p50_ms=percentile(in_two, 0.5),
            p99_ms=percentile(in_two, 0.99),
            compared=f"p50 {ratio(percentile(in_two, 0.5), percentile(exact_beside, 0.5))} an exact recall",
            how=f"among {_NEIGHBOURS:,} of one frame, of which one in five is near; questions all over it",
        ),
    ]


_Call = Callable[[], Awaitable[object]]


async def _neighbours(memory: LongTermMemory) -> tuple[_Call, _Call]:
    """Remember a thousand plans that differ in their limits; return an exact recall and one that finds a neighbour."""
    for limit in range(_NEIGHBOURS):
        await _remember(memory, _Plan.read({"limit": 100_000 + 10 * limit}))
    known = _standing(_Plan.read({"limit": 104_000}))[0]
    asked, near = _standing(_Plan.read({"limit": 104_003}))

    async def find() -> NearMatch | None:
        return (
            None
            if await memory.recall(asked) is not None
            else (await memory.nearest([(asked, near)]))[0]
        )

    return (lambda: memory.recall(known)), find


async def _neighbours_in_two(memory: LongTermMemory) -> tuple[_Call, _Call]:
    """Remember a thousand trips all over a square; return an exact recall and one that finds another neighbour each."""
    # The same square in every run; no question is one of the trips.
    drawn = random.Random(7)
    trips = [_trip(drawn, "") for _ in range(_NEIGHBOURS)]
    for trip in trips:
        await _remember(memory, trip)
    known = _standing(trips[0])[0]
    questions = cycle([_standing(_trip(drawn, "5")) for _ in range(_NEIGHBOURS)])

    async def find() -> NearMatch | None:
        asked, near = next(questions)
        return (
            None
            if await memory.recall(asked) is not None
            else (await memory.nearest([(asked, near)]))[0]
        )

    return (lambda: memory.recall(known)), find


def _trip(drawn: random.Random, digits: str) -> _Trip:
    return _Trip.read(
        {
            name: f"{drawn.randint(100_000, 102_000)}.5{digits}"
            for name in _Trip.model_fields
        }
    )


async def _remember(memory: LongTermMemory, parameters: Parameters) -> None:
    key, near = _standing(parameters)
    await memory.remember(
        key, b"1", computed_ms=1, ttl=timedelta(minutes=10), now_ms=0, near=near
    )


def _standing(parameters: Parameters) -> tuple[str, Neighbourhood]:
    near = Parameters.neighbourhood(parameters, "plan")
    if near is None:
        raise NotMeasuredError("a parameter with a tolerance has no neighbourhood")
    return keys.ltm("BenchmarkAgent", "1.1", Parameters.key(parameters, "plan")), near


async def _take_turns(
    first: Callable[[], Awaitable[object]],
    second: Callable[[], Awaitable[object]],
    count: int,
) -> tuple[list[float], list[float]]:
    """Return the milliseconds of *count* calls of each; who goes first changes every time."""
    times: tuple[list[float], list[float]] = ([], [])
    contestants = [(first, times[0]), (second, times[1])]
    for _ in range(count + count // 10):
        for call, taken in contestants:
            started = time.perf_counter()
            if await call() is None:
                raise NotMeasuredError("the key has gone")
            taken.append((time.perf_counter() - started) * 1000)
        contestants.reverse()
    return times[0][count // 10 :], times[1][count // 10 :]
