"""The list of tasks: each filter among 100,000 over HTTP, what a listed task takes of memory, and of Valkey's time."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlencode, urlsplit

from redis.asyncio import Redis

from benchmarks.http_rows import served
from benchmarks.processes import NotMeasuredError
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, percentile
from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.functions import load_functions
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.task_index import MOST_RUNS, TaskIndex
from tasklore.memory.ledger.task_rows import TaskRow

#: Milliseconds that the client waits for a page, p95.
ASKED_MS = 50.0
AGENT = "ListingAgent"
USERS = 500
TENANTS = 20
#: Open tasks, the last ones; every hundredth of the others failed.
OPEN = 1_000
_AT_ONCE = 500
_ANSWER_S = 60.0
_PAGES = 60


def _rows() -> list[TaskRow]:
    now_ms = time.time_ns() // 1_000_000
    return [_row(number, now_ms) for number in range(MOST_RUNS)]


def _row(number: int, now_ms: int) -> TaskRow:
    # Ids as ours are long.
    made = TaskRow(
        task_id=f"019a{number:08x}-7000-8000-000000000000",
        agent_id=AGENT,
        task="echo",
        created_ms=now_ms - 5 * number,
        tenant=f"tenant-{number % TENANTS}",
        user=user_token(f"user-{number * 7919 % USERS}@example.org"),
        parent_id="019a-parent" if number % 5_000 == 1 else None,
    )
    if number < OPEN:
        return made
    has_failed = number % 100 == 0
    return made._replace(
        state="failed" if has_failed else "completed",
        ended_ms=made.created_ms + 400,
        error=("ValueError", "TaskExpired")[number % 200 == 0] if has_failed else None,
        memory="miss",
        run_ms=312,
    )


#: Questions to the list, and how a row of the table calls each.
_QUERIES: dict[str, dict[str, str]] = {
    "all": {},
    "of an agent": {"agent": AGENT},
    "failed": {"state": "failed"},
    "waiting": {"state": "waiting"},
    "of a tenant": {"tenant": "tenant-3"},
    "of a user": {"user": "user-3@example.org"},
    "of a user, failed": {"user": "user-3@example.org", "state": "failed"},
    "of an error": {"error": "TaskExpired"},
    "of a parent": {"parent": "019a-parent"},
    "of nobody": {"tenant": "nobody"},
}


@asynccontextmanager
async def many_listed(redis: Redis) -> AsyncIterator[list[Row]]:
    """List the tasks within the block, and give the rows of what that took."""
    await load_functions(redis)
    try:
        yield await _fill(redis)
    finally:
        await _empty(redis)


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, or one that says why there is no figure."""
    pages = min(_PAGES, profile.questions)
    async with Redis.from_url(redis_url) as redis, many_listed(redis) as written:
        memory = await _bytes(redis)
        try:
            async with served(nats_url, redis_url) as api:
                listed = [
                    await _listed(api, name, query, pages)
                    for name, query in _QUERIES.items()
                ]
        except (NotMeasuredError, TimeoutError, OSError) as error:
            return [missing("list of tasks", str(error) or "no answer in time")]
    return [*listed, memory, *written]


async def _fill(redis: Redis) -> list[Row]:
    """List the tasks, open ones in the ledger too; return what Valkey took for one."""
    index = TaskIndex(redis, deadline_s=_ANSWER_S)
    rows = _rows()
    started = await _spent_us(redis)
    for first in range(0, len(rows), _AT_ONCE):
        await index.write(rows[first : first + _AT_ONCE])
    together = (await _spent_us(redis) - started) / len(rows)
    ledger = Ledger(redis, deadline_s=_ANSWER_S)
    for row in rows[:OPEN]:
        await ledger.accept(row.task_id, 1, b"{}")
    one_by_one = rows[OPEN : OPEN + 2_000]
    started = await _spent_us(redis)
    for row in one_by_one:
        await index.write([row._replace(state="failed", error="ValueError")])
    alone = (await _spent_us(redis) - started) / len(one_by_one)
    how = f"{MOST_RUNS:,} tasks of {USERS} users; CPU of Valkey's thread, reading and answering included"
    return [
        Row("a task listed, 25 in a command", cpu_us=together, how=how),
        Row("a task listed anew, alone", cpu_us=alone, how=how),
    ]


async def _spent_us(redis: Redis) -> float:
    used = await redis.info("cpu")
    names = ("used_cpu_user_main_thread", "used_cpu_sys_main_thread")
    return 1e6 * sum(float(used[name]) for name in names)


async def _bytes(redis: Redis) -> Row:
    own = keys.runs(AGENT)
    users = [
        own.of_user(user_token(f"user-{number}@example.org")) for number in range(USERS)
    ]
    count = await redis.zcard(own.listed)
    sizes = {
        name: sum([await redis.memory_usage(key, samples=0) or 0 for key in of]) / count
        for name, of in (
            ("sorted set", [own.listed]),
            ("row", [own.rows]),
            ("set of its user", users),
        )
    }
    said = ", ".join(f"{name} {size:.0f}" for name, size in sizes.items())
    return Row(
        "bytes of the list a task",
        compared=f"{sum(sizes.values()):.0f} B: {said}",
        how=f"MEMORY USAGE of all members; {count:,} tasks, ids of 36 letters",
    )


async def _listed(api: str, name: str, query: dict[str, str], pages: int) -> Row:
    """Return the row of *pages* answers to *query*, from page to page and again from the beginning."""
    place = urlsplit(api)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    took: list[float] = []
    found = 0
    after = ""
    try:
        for _ in range(pages):
            asked = query | {"after": after} if after else query
            started = time.perf_counter()
            writer.write(
                f"GET /v1/tasks?{urlencode(asked)} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
            )
            async with asyncio.timeout(_ANSWER_S):
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
                body = json.loads(await reader.readexactly(length))
            took.append((time.perf_counter() - started) * 1000)
            found += len(body["tasks"])
            after = body["after"] or ""
    finally:
        writer.close()
    return _judged(
        Row(
            f"page of tasks {name}",
            p50_ms=percentile(took, 0.5),
            p99_ms=percentile(took, 0.99),
            how=f"GET /v1/tasks, 50 a page, among {MOST_RUNS:,}; {found:,} on {pages} pages",
        ),
        took,
    )


def _judged(row: Row, took: Sequence[float]) -> Row:
    p95 = percentile(took, 0.95)
    return replace(row, compared=f"p95 {p95:.1f} ms, asked {ASKED_MS:g} at most")


async def _empty(redis: Redis) -> None:
    own = keys.runs(AGENT)
    users = [
        own.of_user(user_token(f"user-{number}@example.org")) for number in range(USERS)
    ]
    tasks = [keys.task(row.task_id) for row in _rows()[:OPEN]]
    await redis.unlink(*own, *users, *tasks)
    await redis.zrem(keys.run_agents(), AGENT)
