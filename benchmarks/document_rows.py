"""JSON memory documents: edits and commits of the store, and a document as a prompt block, beside bare commands.

Contestants take turns in one process, on connections of their own. "100 KB" is the body as compact JSON.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from redis.asyncio import Redis

from benchmarks.processes import NotMeasuredError
from benchmarks.profiles import Profile
from benchmarks.table import Row, percentile, ratio
from tasklore.contracts.edits import Delete, Edit, Insert
from tasklore.memory.documents.draft import Draft, Origin, Plan
from tasklore.memory.documents.guard import LIMITS
from tasklore.memory.documents.items import make_item
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.history import json_bytes
from tasklore.memory.documents.storage.repository import Committed
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.rendering.documents import render
from tasklore.runtime.servers import valkey

FOOD = "resource_user_food_prefs"
KINDS = Kinds.load()
#: Bytes of the large document.
LARGE = 100 * 1024
#: Items of a document of somebody who has told a lot: what a prompt block is made of.
TOLD = 60
#: Users whose small documents are edited side by side, as many as a worker works for at once.
SIDE_BY_SIDE = 16
#: What a commit costs at the very least: one script that reads a revision and writes a hash of a kilobyte.
_BARE = """
if (redis.call('HGET', KEYS[1], 'revision') or '0') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'body', ARGV[3])
return 1
"""

Call = Callable[[int], Awaitable[object]]


async def measure(redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, all measured on the running loop."""
    async with bare_client(redis_url) as bare, valkey.connect(redis_url) as lent:
        return [
            *await _large_edits(bare, lent, profile),
            *await _small_commits(bare, lent, profile),
            *await _rendered(bare, lent, profile),
        ]


def bare_client(redis_url: str) -> Redis:
    """Return a client of redis-py as quick as it is: its own timeout makes a task of every command that it sends."""
    return Redis.from_url(redis_url, socket_timeout=None)


async def edit(store: DocumentStore, user: str, number: int, *edits: Edit) -> None:
    """Read the documents of *user*, apply *edits* as one plan, and store that.

    Raises:
        NotMeasuredError: it was not stored.
    """
    now = datetime.now(UTC)
    draft = Draft(await store.snapshot(user), LIMITS, now)
    draft.apply(
        Plan(plan_id=f"{user}-{number}", edits=edits, origin=Origin(by="rules", at=now))
    )
    done = await store.commit(draft)
    if not isinstance(done, Committed) or not done.plans:
        raise NotMeasuredError(f"an edit was not stored: {done}")


def like(number: int) -> Insert:
    """Return the edit that adds one item."""
    made = make_item(
        f"Brel {number}", added=datetime.now(UTC).date(), source=f"stated:turn-{number}"
    )
    return Insert(path="food.likes", new_value=made, file=FOOD)


async def _fill(store: DocumentStore, user: str, size: int) -> bytes:
    """Give *user* a document of *size* bytes and return its body."""
    number = 0
    body = b""
    while len(body) < size:
        # In batches: a plan has at most 500 edits.
        await edit(
            store, user, 10**8 + number, *(like(number + more) for more in range(20))
        )
        number += 20
        body = json_bytes((await store.snapshot(user, [FOOD])).documents[FOOD].body)
    return body


async def _large_edits(bare: Redis, lent: Redis, profile: Profile) -> list[Row]:
    store = DocumentStore(lent, KINDS)
    size = len(body := await _fill(store, "large", LARGE))
    # A document of its own: what one contestant stores, the other would have to fetch and parse.
    await _fill(store, "strange", LARGE)

    async def get_and_set(_number: int) -> object:
        found = await bare.get("bench:large")
        return await bare.set("bench:large", found or body)

    async def known(number: int) -> None:
        await edit(
            store,
            "large",
            number,
            Delete(path="food.likes[0]", file=FOOD),
            like(number),
        )

    async def unknown(number: int) -> None:
        strange = DocumentStore(lent, KINDS)
        await edit(
            strange,
            "strange",
            number,
            Delete(path="food.likes[0]", file=FOOD),
            like(number),
        )

    await bare.set("bench:large", body)
    raw, warm, cold = await in_turns((get_and_set, known, unknown), profile.edits)
    where = (
        f"{size / 1024:.0f} KB, one insert and one delete, {profile.edits:,} in turns"
    )
    return [
        timed(
            "redis-py GET and SET of 100 KB",
            raw,
            f"{size / 1024:.0f} KB, two round trips",
        ),
        timed(
            "100 KB document edited",
            warm,
            f"{where}: snapshot, draft, commit",
            ("GET and SET", raw),
        ),
        timed(
            "100 KB document edited, first by this process",
            cold,
            f"{where}: body fetched and parsed",
            ("GET and SET", raw),
        ),
    ]


async def _small_commits(bare: Redis, lent: Redis, profile: Profile) -> list[Row]:
    store = DocumentStore(lent, KINDS)
    users = [f"small-{number}" for number in range(SIDE_BY_SIDE)]
    sizes = [len(await _fill(store, user, 1024)) for user in users]
    sha = await bare.script_load(_BARE)
    body = b"x" * sizes[0]

    async def bare_script(user: str, number: int) -> None:
        if not await bare.evalsha(
            sha, 1, f"bench:{{{user}}}", str(number), str(number + 1), body
        ):
            raise NotMeasuredError("the bare script found another revision")

    async def commit(user: str, number: int) -> None:
        await edit(
            store, user, number, Delete(path="food.likes[0]", file=FOOD), like(number)
        )

    each = profile.commits // SIDE_BY_SIDE
    scripts_s, scripts_cpu = await _side_by_side(bare_script, users, each)
    commits_s, commits_cpu = await _side_by_side(commit, users, each)
    return [
        Row(
            "redis-py EVALSHA",
            scripts_s,
            scripts_cpu,
            how=f"{SIDE_BY_SIDE} at once on one loop; reads a revision, writes {sizes[0] / 1024:.1f} KB",
        ),
        Row(
            "commits of small documents",
            commits_s,
            commits_cpu,
            compared=f"per s {ratio(commits_s, scripts_s)}, CPU {ratio(commits_cpu, scripts_cpu)} EVALSHA",
            how=f"{SIDE_BY_SIDE} users at once; {sizes[0] / 1024:.1f} KB; read, edited, logged, stored",
        ),
    ]


async def _side_by_side(
    call: Callable[[str, int], Awaitable[None]], users: Sequence[str], each: int
) -> tuple[float, float]:
    """Return calls a second and CPU us of this process for each, *each* of them for every user after a tenth."""

    async def lead(user: str, numbers: range) -> None:
        for number in numbers:
            await call(user, number)

    warm_up = each // 10
    await asyncio.gather(*(lead(user, range(warm_up)) for user in users))
    started = time.perf_counter()
    cpu = time.process_time()
    await asyncio.gather(
        *(lead(user, range(warm_up, warm_up + each)) for user in users)
    )
    count = each * len(users)
    return count / (time.perf_counter() - started), (
        time.process_time() - cpu
    ) * 1e6 / count


async def _rendered(bare: Redis, lent: Redis, profile: Profile) -> list[Row]:
    store = DocumentStore(lent, KINDS)
    await edit(store, "told", 0, *(like(number) for number in range(TOLD)))
    body = json_bytes((await store.snapshot("told", [FOOD])).documents[FOOD].body)
    await bare.set("bench:told", body)
    today = datetime.now(UTC).date()
    tokens = list[int]()

    async def recall(_number: int) -> object:
        found = await store.snapshot("told")
        block = render(
            {name: one.body for name, one in found.documents.items()},
            KINDS,
            today=today,
            query="brel 7",
        )
        tokens.append(block.tokens)
        return block.text or None

    async def get(_number: int) -> object:
        return await bare.get("bench:told")

    raw, ours = await in_turns((get, recall), profile.edits)
    how = f"{TOLD} items, {len(body) / 1024:.0f} KB as JSON, into {tokens[-1]} tokens; snapshot of all kinds, rendered"
    return [
        timed("redis-py GET of a document", raw, f"{len(body) / 1024:.0f} KB"),
        timed("documents recalled as a prompt block", ours, how, ("GET", raw)),
    ]


@dataclass
class Times:
    """What calls took: each in ms of the clock, and all of them in CPU seconds of this process."""

    ms: list[float] = field(default_factory=list)
    cpu_s: float = 0.0

    @property
    def cpu_us(self) -> float:
        """CPU us of this process a call."""
        return self.cpu_s * 1e6 / len(self.ms)


async def in_turns(calls: Sequence[Call], count: int) -> list[Times]:
    """Return what *count* calls of each took, after a tenth unmeasured; the order changes every time."""
    taken = [Times() for _ in calls]
    order = list(zip(calls, taken, strict=True))
    for number in range(-(count // 10), count):
        if number == 0:
            for times in taken:
                times.ms = []
                times.cpu_s = 0.0
        for call, times in order:
            started = time.perf_counter()
            cpu = time.process_time()
            await call(number)
            times.ms.append((time.perf_counter() - started) * 1000)
            times.cpu_s += time.process_time() - cpu
        order.append(order.pop(0))
    return taken


def timed(
    what: str, ours: Times, how: str, against: tuple[str, Times] | None = None
) -> Row:
    """Return the row of *ours*, with its p95 and how it compares with what *against* names."""
    compared = f"p95 {percentile(ours.ms, 0.95):.3f} ms"
    if against is not None:
        name, theirs = against
        shares = {"p50": 0.5, "p95": 0.95}
        ratios = [
            f"{word} {ratio(percentile(ours.ms, at), percentile(theirs.ms, at))}"
            for word, at in shares.items()
        ]
        compared += (
            f"; {', '.join(ratios)}, CPU {ratio(ours.cpu_us, theirs.cpu_us)} {name}"
        )
    return Row(
        what,
        cpu_us=ours.cpu_us,
        p50_ms=percentile(ours.ms, 0.5),
        p99_ms=percentile(ours.ms, 0.99),
        compared=compared,
        how=how,
    )
