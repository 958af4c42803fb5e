"""Listening: what publishing a turn takes, with and without facts being worked on, and how fast a worker works on them.

Turns go the way of the chat: through an outbox that returns when the stream has stored them. The raw contestant is
nats-py's own publish into a stream of the same form, in turns with ours in one process.
"""

import asyncio
import contextlib
import secrets
import sys
import time
from collections.abc import AsyncIterator, Sequence

import nats.errors
from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError
from redis.asyncio import Redis

from benchmarks import sayings
from benchmarks.document_rows import KINDS, Times, bare_client, in_turns, timed
from benchmarks.processes import NotMeasuredError, Worker, running
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, ratio
from tasklore.contracts import subjects
from tasklore.memory.documents.storage.store import DocumentStore
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox

COMMAND = (
    sys.executable,
    "-m",
    "tasklore",
    "worker",
    "tasklore.workers.agents.memory_worker",
)
#: Facts that wait, and are worked on, while turns are published.
BACKLOG = 5_000
#: People whose facts a throughput run works on: some documents grow, and many users stand side by side.
PEOPLE = 50
#: Seconds that a worker may take to start, or to work on all that waits.
PATIENCE_S = 300.0
#: Seconds between two looks at how many facts wait: one cheap request each.
LOOK_S = 0.05
#: Scripts that are run in a row for the figure beside facts/s.
SCRIPTS = 2_000
_BARE = "return redis.call('HSET', KEYS[1], 'body', ARGV[1])"
_RAW_STREAM = "RAW_TURNS"
_RAW_SUBJECT = "rawturns.bench"


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows; one that cannot be measured says why and does not stop the others."""
    environment = {
        "TASKLORE_NATS_URL": nats_url,
        "TASKLORE_REDIS_URL": redis_url,
        "TASKLORE_LOG_LEVEL": "warning",
    }
    rows: list[Row] = []
    async with bare_client(redis_url) as client:
        bench = _Bench(client, environment, profile)
        for what, part in (
            ("turn published", bench.publishing(nats_url)),
            ("memory worker, rules only", bench.working()),
        ):
            try:
                rows += await part
            except (NotMeasuredError, TimeoutError, nats.errors.Error) as error:
                rows.append(missing(what, str(error) or "no answer in time"))
    return rows


class _Bench:
    """The table of facts, and workers that are started on it."""

    def __init__(
        self, client: Redis, environment: dict[str, str], profile: Profile
    ) -> None:
        self._client = client
        self._environment = environment
        self._profile = profile
        self._facts = PersonalQueue(client, "facts", deadline_s=10.0)

    async def publishing(self, nats_url: str) -> list[Row]:
        """Measure what publishing takes, idle and beside a worker at work."""
        async with (
            connected(nats_url, "bench") as client,
            open_outbox(Link(client)) as outbox,
        ):
            stream = client.jetstream()
            async with self._worker() as worker:
                await _provisioned(stream, worker)
            await stream.add_stream(
                name=_RAW_STREAM,
                subjects=["rawturns.>"],
                retention=api.RetentionPolicy.WORK_QUEUE,
                storage=api.StorageType.FILE,
            )
            idle = await _publish(stream, outbox, self._profile.said)
            names = [f"waiting-{number}" for number in range(PEOPLE)]
            await self._append(names, BACKLOG // PEOPLE)
            async with self._worker() as worker:
                await self._until(worker, BACKLOG - 1)
                busy = Publishings()
                left = BACKLOG
                while left and len(busy.ours.ms) < self._profile.said:
                    busy.add(await _publish(stream, outbox, 20))
                    left = await self._facts.pending_total()
                await self._until(worker, 0)
        how = f"one at a time, stored when it returns; {len(busy.ours.ms):,} while {BACKLOG - left:,} of {BACKLOG:,}"
        return [
            timed("nats-py JetStream publish", idle.raw, "file stream, idle"),
            timed(
                "turn published, idle",
                idle.ours,
                "one at a time, stored when it returns",
                ("publish", idle.raw),
            ),
            timed(
                "nats-py publish beside facts",
                busy.raw,
                "the same, a memory worker at work",
            ),
            timed(
                "turn published beside facts",
                busy.ours,
                f"{how} facts were worked on",
                ("publish", busy.raw),
            ),
        ]

    async def working(self) -> list[Row]:
        """Measure how fast one process works on facts that lie in the table already."""
        count = self._profile.facts
        names = [f"person-{number}" for number in range(PEOPLE)]
        script = await self._scripts()
        await self._append(names, count // PEOPLE)
        warm_up = count // 6
        async with self._worker() as worker:
            first, started, cpu_before = await self._until(worker, count - warm_up)
            last, ended, cpu_after = await self._until(worker, 0)
        await self._check(names, count // PEOPLE)
        measured = first - last
        speed = measured / (ended - started)
        cpu = (cpu_after - cpu_before) * 1e6 / measured
        return [
            Row(
                "redis-py EVALSHA, one by one",
                script,
                how="one connection, a hash field of 1 KB",
            ),
            Row(
                "memory worker, rules only",
                speed,
                cpu,
                compared=f"per s {ratio(speed, script)} EVALSHA; {1e6 / cpu:,.0f} facts a CPU second",
                how=f"one process; facts of {PEOPLE} people from the table to stored documents, closed; all checked",
            ),
        ]

    async def _scripts(self) -> float:
        sha = await self._client.script_load(_BARE)
        started = time.perf_counter()
        for number in range(SCRIPTS):
            await self._client.evalsha(sha, 1, f"bench:{number % 64}", b"x" * 1024)
        return SCRIPTS / (time.perf_counter() - started)

    async def _append(self, names: Sequence[str], each: int) -> None:
        for name in names:
            await self._facts.append(name, sayings.rows(name, each))

    async def _until(self, worker: Worker, most: int) -> tuple[int, float, float]:
        """Wait until at most *most* facts wait; return how many, when, and the worker's CPU seconds."""
        async with asyncio.timeout(PATIENCE_S):
            while (waiting := await self._facts.pending_total()) > most:
                worker.ensure_running()
                await asyncio.sleep(LOOK_S)
        return waiting, time.perf_counter(), worker.cpu_s()

    async def _check(self, names: Sequence[str], each: int) -> None:
        """Raise unless every fact was applied by a plan of its own."""
        store = DocumentStore(self._client, KINDS, deadline_s=10.0)
        for name in names:
            closed = (await self._facts.counts(name)).closed
            plans = len(await store.history(name, limit=each + 1))
            if closed["done"] != each or plans != each:
                raise NotMeasuredError(
                    f"of {each} facts {closed} were closed, with {plans} plans"
                )

    @contextlib.asynccontextmanager
    async def _worker(self) -> AsyncIterator[Worker]:
        async with running(COMMAND, self._environment) as worker:
            yield worker


class Publishings:
    """What publishing took, raw and through our outbox."""

    def __init__(self, raw: Times | None = None, ours: Times | None = None) -> None:
        self.raw = raw or Times()
        self.ours = ours or Times()

    def add(self, other: "Publishings") -> None:
        """Add what others took."""
        for mine, theirs in ((self.raw, other.raw), (self.ours, other.ours)):
            mine.ms += theirs.ms
            mine.cpu_s += theirs.cpu_s


async def _publish(stream: JetStreamContext, outbox: Outbox, count: int) -> Publishings:
    """Publish *count* turns either way, in turns."""
    # A name of its own for each call: the server drops what it was sent before.
    owner = f"bench-{secrets.token_hex(4)}"
    mine = sayings.turns(owner)
    theirs = sayings.turns(f"{owner}-raw")
    subject = subjects.turns(owner)

    async def raw(_number: int) -> None:
        turn_id, body = next(theirs)
        await stream.publish(_RAW_SUBJECT, body, headers={"Nats-Msg-Id": turn_id})

    async def ours(_number: int) -> None:
        turn_id, body = next(mine)
        await outbox.put(subject, body, turn_id)

    return Publishings(*await in_turns((raw, ours), count))


async def _provisioned(stream: JetStreamContext, worker: Worker) -> None:
    """Wait until the worker has made its streams, and its last consumer."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            worker.ensure_running()
            try:
                await stream.stream_info(subjects.TURNS)
                await stream.consumer_info(subjects.FACTS, "facts-15")
            except NotFoundError:
                await asyncio.sleep(LOOK_S)
            else:
                return
