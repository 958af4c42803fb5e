"""Sessions and steps: a cached lookup and a journaled step beside a bare GET, and what many sessions cost.

Lookup, step and GET take turns in one process, on connections of their own; lookup and GET fetch the same bytes.
"""

from collections.abc import Awaitable, Callable

from redis.asyncio import Redis

from benchmarks.document_rows import Times, bare_client, in_turns, timed
from benchmarks.processes import NotMeasuredError
from benchmarks.profiles import Profile
from benchmarks.table import Row, percentile, ratio
from tasklore.memory.ledger.journal import Journal
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import RunName
from tasklore.memory.sessions.session import NewEntry, SessionCache
from tasklore.runtime.servers import valkey
from tasklore.workers.context.branches import Branches
from tasklore.workers.context.steps import MOST_STEPS, Steps

#: What a phase hands on: some kilobytes of JSON, as a map of imports of a folder of some hundred files.
RESULT = {
    f"module_{number}": [f"module_{number * 7 % 40}", f"module_{number * 3 % 40}"]
    for number in range(40)
}
#: Sessions of the small listing and of the large one, and entries in each.
FEW = 100
MANY = 1_000
ENTRIES = 50
#: Sessions of one page.
PAGE = 50
#: Times that a first page is asked for.
_LISTINGS = 40
#: Milliseconds that a lookup may cost beyond a GET, at the 95th percentile.
ASKED_MS = 1.0
#: Milliseconds that journaling a step may cost, at the median.
STEP_MS = 2.0


async def measure(redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, all measured on the running loop."""
    async with (
        bare_client(redis_url) as bare,
        valkey.connect(redis_url, deadline_s=60.0) as lent,
    ):
        # A pause of the machine is a slow sample here; with the deadline of a task it would end the measurement.
        cache = SessionCache(lent, deadline_s=60.0)
        return [
            *await _lookups(bare, cache, profile),
            await _steps(bare, lent, profile),
            *await _listings(bare, cache),
        ]


async def _steps(bare: Redis, lent: Redis, profile: Profile) -> Row:
    """Measure a step of an instant function on a run of its own, which the ledger has begun."""
    run = RunName("bench-steps", 1, "bench")
    await Ledger(lent, deadline_s=60.0).begin(
        run.task_id, 1, run.worker_id, 0, 3_600_000
    )
    journal = Journal(lent, deadline_s=60.0)

    async def claim(_name: str) -> bool:
        return True

    async def work(_number: int) -> dict[str, list[str]]:
        return RESULT

    async def get(_number: int) -> object:
        return await bare.get("bench:phase")

    steps = Steps(journal, run, claim, Branches(None))

    async def take(number: int) -> object:
        return await steps.run("work", work, (number,), once=False)

    gets, taken = await in_turns((get, take), min(profile.recalls, MOST_STEPS))
    await journal.remove([run.task_id])
    over_ms = percentile(taken.ms, 0.5) - percentile(gets.ms, 0.5)
    how = f"of an instant function, its result journaled; p50 {over_ms:.3f} ms over GET, asked at most {STEP_MS:g}"
    return timed("step of a task", taken, how, ("GET", gets))


async def _lookups(bare: Redis, cache: SessionCache, profile: Profile) -> list[Row]:
    await cache.create("bench-lookups")
    await cache.set(
        "bench-lookups",
        "analysis:results",
        RESULT,
        computation_ms=2_000,
        agent="BenchAgent",
    )
    found = await cache.get("bench-lookups", "analysis:results")
    if found is None or found.value != RESULT:
        raise NotMeasuredError("the session does not return what it was given")
    await bare.set("bench:phase", b"x" * found.entry.stored_bytes)

    async def get(_number: int) -> object:
        return await bare.get("bench:phase")

    async def look_up(number: int) -> object:
        return await cache.get(
            "bench-lookups", "analysis:results", reader=f"task-{number}"
        )

    gets, lookups = await in_turns((get, look_up), profile.recalls)
    over_ms = percentile(lookups.ms, 0.95) - percentile(gets.ms, 0.95)
    await cache.drop("bench-lookups")
    size = f"{found.entry.bytes / 1024:.1f} KB"
    how = f"{size} of JSON, read and its use counted, {profile.recalls:,} in turns; "
    return [
        timed("redis-py GET of a phase's result", gets, size),
        timed(
            "cached phase looked up",
            lookups,
            f"{how}p95 {over_ms:.3f} ms over GET, asked at most {ASKED_MS:g}",
            ("GET", gets),
        ),
    ]


async def _listings(bare: Redis, cache: SessionCache) -> list[Row]:
    """Measure with few sessions and with many: time and memory of one have to stay what they are."""
    empty = await _used(bare)
    await _fill(cache, 0, FEW)
    few = await _pages(cache)
    after_few = await _used(bare)
    await _fill(cache, FEW, MANY)
    many = await _pages(cache)
    after_many = await _used(bare)
    one = await _timed_often(lambda: cache.entries("bench-0"))
    for number in range(MANY):
        await cache.drop(f"bench-{number}")
    few_kb = (after_few - empty) / FEW / 1024
    many_kb = (after_many - empty) / MANY / 1024
    return [
        _listing(
            f"first page of {FEW} sessions",
            few,
            f"{PAGE} sessions of {ENTRIES} entries",
        ),
        _listing(
            f"first page of {MANY:,} sessions",
            many,
            f"{many_kb:.1f} KB of server memory a session, {few_kb:.1f} KB with {FEW}",
            f"p50 {ratio(percentile(many.ms, 0.5), percentile(few.ms, 0.5))}, "
            f"memory {ratio(many_kb, few_kb)} that of {FEW}",
        ),
        _listing(
            "entries of one session", one, f"{ENTRIES} entries, without their values"
        ),
    ]


async def _fill(cache: SessionCache, first: int, last: int) -> None:
    for number in range(first, last):
        await cache.create(f"bench-{number}", domain="webdev", project="bench")
        entries = [
            NewEntry(
                key=f"phase_{index % 9}:results:{index}",
                value={"number": index, "text": "x" * 100},
                computation_ms=1_500,
            )
            for index in range(ENTRIES)
        ]
        await cache.set_many(f"bench-{number}", entries)


async def _pages(cache: SessionCache) -> Times:
    async def first_page() -> object:
        listed = await cache.sessions(limit=PAGE)
        if len(listed) != PAGE or listed[0].entries != ENTRIES:
            raise NotMeasuredError(f"a page lists {len(listed)} sessions")
        return listed

    return await _timed_often(first_page)


async def _timed_often(call: Callable[[], Awaitable[object]]) -> Times:
    async def once(_number: int) -> object:
        return await call()

    return (await in_turns((once,), _LISTINGS))[0]


async def _used(bare: Redis) -> int:
    """Return how many bytes the server uses, once it has freed what was removed."""
    memory = await bare.info("memory")
    return int(memory["used_memory_dataset"])


def _listing(what: str, times: Times, how: str, compared: str = "") -> Row:
    return Row(
        what,
        cpu_us=times.cpu_us,
        p50_ms=percentile(times.ms, 0.5),
        p99_ms=percentile(times.ms, 0.99),
        compared=compared,
        how=how,
    )
