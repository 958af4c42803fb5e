"""Requests over HTTP: alone, two hundred at once, and of a user whose turns memory takes; wrong replies are counted.

Client, supervisor, worker and servers share this machine, so that the crowd's figures are those of its cores.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlsplit

from benchmarks.processes import NotMeasuredError, Worker, running
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, percentile

#: Clients of the crowd, each with a connection that it keeps.
CROWD = 200
_ALONE = "HTTP request in words, one at a time"
_TOGETHER = f"HTTP requests in words, {CROWD} at once"
#: Requests at once before those of one client alone: what a burst leaves behind must not slow who comes after it.
_BURST = 200
_AFTER_BURST = f"{_ALONE}, after {_BURST} at once"
_KNOWN_ALONE = f"{_ALONE}, remembered"
_KNOWN_TOGETHER = f"{_TOGETHER}, remembered"
#: Different questions among those that are asked again and again.
_QUESTIONS = 8
_ANONYMOUS = "chat answer, anonymous"
_WITH_MEMORY = "chat answer, turns handed to memory"
#: Milliseconds that memory may add to an answer in the chat, p95.
_ASKED_MS = 5.0
_MEMORY = (
    "tasklore.workers.agents.memory_worker",
    "tasklore.workers.agents.switchboard",
)
_READY_S = 60.0
_ANSWER_S = 60.0
_LIMIT = 50_000


class _Taken(NamedTuple):
    took_ms: list[float]
    lost: int
    seconds: float


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, or one that says why there is no figure."""
    rounds = max(2, profile.questions // CROWD)
    try:
        async with served(nats_url, redis_url) as api:
            await _asked(api, clients=8, each=5, base=0)
            alone = await _asked(api, clients=1, each=100, base=1000)
            crowd = await _asked(api, clients=CROWD, each=rounds, base=2000)
            await _asked(api, clients=_BURST, each=1, base=20_000)
            after = await _asked(api, clients=1, each=60, base=30_000)
            known_alone = await _asked(
                api, clients=1, each=100, base=0, questions=_QUESTIONS
            )
            known_crowd = await _asked(
                api, clients=CROWD, each=rounds, base=0, questions=_QUESTIONS
            )
        async with served(nats_url, redis_url, *_MEMORY) as api:
            memory = await _compare_with_memory(api, max(200, profile.questions // 10))
    except (NotMeasuredError, TimeoutError, OSError) as error:
        return [missing(_TOGETHER, str(error) or "no answer in time")]
    return [
        _row(_ALONE, alone),
        _row(_TOGETHER, crowd),
        _row(_AFTER_BURST, after),
        _row(_KNOWN_ALONE, known_alone),
        _row(_KNOWN_TOGETHER, known_crowd),
        *memory,
    ]


async def _compare_with_memory(api: str, count: int) -> list[Row]:
    """Return the rows of *count* answers each to an anonymous client and to a user, asked by turns.

    An anonymous turn is published as well, and ends there; a user's is kept, read, and asked about in the reply.
    """
    users: tuple[str | None, str | None] = (None, "bench-chat")
    for user in users:
        await _client(api, range(9_000, 9_020), user)
    started = time.perf_counter()
    took = {user: list[float]() for user in users}
    for number in range(10_000, 10_000 + count, 10):
        for user in users:
            took[user] += await _client(api, range(number, number + 10), user)
    seconds = time.perf_counter() - started
    anonymous, known = (
        _Taken(took[user], count - len(took[user]), seconds / 2) for user in users
    )
    if not (anonymous.took_ms and known.took_ms):
        return [missing(_WITH_MEMORY, f"{anonymous.lost + known.lost} wrong answers")]
    added_ms = percentile(known.took_ms, 0.95) - percentile(anonymous.took_ms, 0.95)
    compared = (
        f"p95 {added_ms:+.2f} ms beside anonymous; asked {_ASKED_MS:g} ms at most"
    )
    return [
        _row(_ANONYMOUS, anonymous),
        replace(_row(_WITH_MEMORY, known), compared=compared),
    ]


def _row(what: str, taken: _Taken) -> Row:
    count = len(taken.took_ms) + taken.lost
    return Row(
        what,
        tasks_per_s=count / taken.seconds,
        p50_ms=percentile(taken.took_ms, 0.5),
        p99_ms=percentile(taken.took_ms, 0.99),
        how=f"POST /v1/requests to one supervisor, budget agent, rules; {taken.lost} of {count} lost",
    )


class Serving(NamedTuple):
    """A supervisor that serves, and the address of its API."""

    api: str
    supervisor: Worker


@asynccontextmanager
async def served(
    nats_url: str, redis_url: str, *more_agents: str
) -> AsyncIterator[str]:
    """Run a supervisor and a worker, one more with *more_agents*, and give the address of the API."""
    async with serving(nats_url, redis_url, *more_agents) as one:
        yield one.api


@asynccontextmanager
async def serving(
    nats_url: str, redis_url: str, *more_agents: str
) -> AsyncIterator[Serving]:
    """Run a supervisor and a worker, one more with *more_agents*, and give the supervisor."""
    servers = {
        "TASKLORE_NATS_URL": nats_url,
        "TASKLORE_REDIS_URL": redis_url,
        "TASKLORE_LOG_LEVEL": "error",
    }
    limits = {
        "TASKLORE_API_RATE": "1000000",
        "TASKLORE_API_BURST": "100000",
        "TASKLORE_SUPERVISOR_ID": "bench-http",
    }
    house = (sys.executable, "-m", "tasklore")
    async with AsyncExitStack() as stack:
        groups = [
            ("tasklore.workers.agents.budget",),
            *([more_agents] if more_agents else []),
        ]
        for agents in groups:
            worker = await stack.enter_async_context(
                running((*house, "worker", *agents), servers)
            )
            await _said(worker, "ready http=")
        supervisor = await stack.enter_async_context(
            running((*house, "supervisor"), servers | limits)
        )
        await _said(supervisor, "ready http=")
        yield Serving(await _said(supervisor, "api http="), supervisor)


async def _said(process: Worker, mark: str) -> str:
    """Return what *process* has printed behind *mark*, once it has."""
    async with asyncio.timeout(_READY_S):
        while True:
            for line in process.log.read_text(errors="replace").splitlines():
                if line.startswith(mark):
                    return line.removeprefix(mark)
            process.ensure_running()
            await asyncio.sleep(0.05)


async def _asked(
    api: str, *, clients: int, each: int, base: int, questions: int | None = None
) -> _Taken:
    """Return how long each request took that *clients* sent at once, *each* one after the other.

    Each asks something of its own, or with *questions* one of so many.
    """
    started = time.perf_counter()
    places = [
        range(base + number * each, base + (number + 1) * each)
        for number in range(clients)
    ]
    asking = [
        _client(api, [place % questions if questions else place for place in own])
        for own in places
    ]
    found = await asyncio.gather(*asking)
    seconds = time.perf_counter() - started
    took = [one for times in found for one in times]
    return _Taken(took, clients * each - len(took), seconds)


async def _client(
    api: str, numbers: Sequence[int], user: str | None = None
) -> list[float]:
    """Return the milliseconds of each request that was answered rightly, over one connection."""
    place = urlsplit(api)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    took: list[float] = []
    try:
        for number in numbers:
            asked = {"text": f"limit {_LIMIT}, spent {number}: how is my budget?"} | (
                {"user": user} if user else {}
            )
            body = json.dumps(asked).encode()
            head = f"POST /v1/requests HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
            started = time.perf_counter()
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            async with asyncio.timeout(_ANSWER_S):
                answer = await _answer(reader)
            if answer == _LIMIT - number:
                took.append((time.perf_counter() - started) * 1000)
    finally:
        writer.close()
    return took


async def _answer(reader: asyncio.StreamReader) -> object:
    """Return what remains of the budget as the next answer says, None when it says something else."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
    body = json.loads(await reader.readexactly(length))
    report = (body.get("reply") or {}).get("report") or {}
    return (report.get("result") or {}).get("remaining")
