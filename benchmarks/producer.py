"""The producer of the NATS rows: fills a queue, watches durable reports arrive, asks one question at a time."""

import asyncio
import contextlib
import itertools
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import NotFoundError

from benchmarks.lanes import RAW_BATCH, SUPERVISOR, Lane, budget_assignment
from benchmarks.processes import NotMeasuredError, Worker, running

#: Seconds any single answer, start or run of a worker may take before its row says so.
PATIENCE_S = 120.0
#: Seconds between two looks at how many reports are stored: one cheap request each, the same for every contestant.
LOOK_S = 0.02


@dataclass(frozen=True)
class Rate:
    """How fast one worker emptied a full queue, and what a task cost it."""

    tasks_per_s: float
    cpu_us: float
    outcomes: Counter[str]


class Producer:
    """A program that knows only the wire: one NATS connection for filling, watching and asking."""

    def __init__(self, nats_url: str, redis_url: str) -> None:
        self._nats_url = nats_url
        self._environment = {
            "TASKLORE_NATS_URL": nats_url,
            "TASKLORE_REDIS_URL": redis_url,
        }
        self._numbers = itertools.count()
        self._client: Client
        self._stream: JetStreamContext

    async def __aenter__(self) -> Self:
        self._client = await nats.connect(self._nats_url)
        self._stream = self._client.jetstream(publish_async_max_pending=512)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.close()

    @contextlib.asynccontextmanager
    async def worker(
        self,
        lane: Lane,
        batch: int = RAW_BATCH,
        environment: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Worker]:
        """Run the lane's worker for the time of the block, with *environment* beside the servers' addresses."""
        command = [
            part.format(nats_url=self._nats_url, batch=batch) for part in lane.command
        ]
        async with running(
            command, self._environment | dict(environment or {})
        ) as worker:
            yield worker

    async def prepare(self, lane: Lane) -> None:
        """See that streams and consumer exist: created here for the baseline, by the worker itself otherwise."""
        if not lane.provisions:
            await self._create(lane)
            return
        async with self.worker(lane) as worker, asyncio.timeout(PATIENCE_S):
            while not await self._is_provisioned(lane):
                worker.ensure_running()
                await asyncio.sleep(LOOK_S)

    async def _create(self, lane: Lane) -> None:
        """Create the streams in the leanest form that still stores every task and report on disk."""
        tasks = f"{lane.task_subject.partition('.')[0]}.>"
        reports = f"{lane.reports_prefix}.>"
        await self._stream.add_stream(
            name=lane.tasks_stream,
            subjects=[tasks],
            retention=api.RetentionPolicy.WORK_QUEUE,
            storage=api.StorageType.FILE,
        )
        await self._stream.add_stream(
            name=lane.reports_stream,
            subjects=[reports],
            storage=api.StorageType.FILE,
            max_age=3600,
        )
        await self._stream.add_consumer(
            lane.tasks_stream,
            durable_name=lane.consumer,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=30,
            max_deliver=-1,
            max_ack_pending=-1,
        )

    async def _is_provisioned(self, lane: Lane) -> bool:
        try:
            await self._stream.consumer_info(lane.tasks_stream, lane.consumer)
            await self._stream.stream_info(lane.reports_stream)
        except NotFoundError:
            return False
        return True

    async def measure_rate(
        self,
        lane: Lane,
        warm_up: int,
        count: int,
        *,
        environment: Mapping[str, str] | None = None,
        after_warm_up: Callable[[], Awaitable[None]] | None = None,
    ) -> Rate:
        """Fill the queue, start one worker, time the *count* durable reports that follow the first *warm_up*.

        *after_warm_up* is awaited within the time that is measured.
        """
        await self._stream.purge_stream(lane.tasks_stream)
        await self._stream.purge_stream(lane.reports_stream)
        await self._fill(lane, warm_up + count)
        async with (
            self.worker(lane, environment=environment) as worker,
            asyncio.timeout(PATIENCE_S),
        ):
            first, started, cpu_before = await self._reach(lane, worker, warm_up)
            if after_warm_up is not None:
                await after_warm_up()
            last, ended, cpu_after = await self._reach(lane, worker, warm_up + count)
        outcomes = await self._check_reports(lane, warm_up + count)
        measured = last - first
        return Rate(
            measured / (ended - started),
            (cpu_after - cpu_before) * 1e6 / measured,
            outcomes,
        )

    async def _fill(self, lane: Lane, count: int) -> None:
        pending = []
        for _ in range(count):
            _, body = self.next_question(lane)
            pending.append(await self._stream.publish_async(lane.task_subject, body))
        await asyncio.gather(*pending)

    def next_question(self, lane: Lane) -> tuple[str, bytes]:
        """Return the id and the body of a budget question that this producer has not asked yet, or not lately."""
        return budget_assignment(lane, next(self._numbers))

    async def _reach(
        self, lane: Lane, worker: Worker, target: int
    ) -> tuple[int, float, float]:
        """Wait for *target* stored reports; return how many there are, when, and the worker's CPU seconds."""
        while (
            stored := (
                await self._stream.stream_info(lane.reports_stream)
            ).state.messages
        ) < target:
            worker.ensure_running()
            await asyncio.sleep(LOOK_S)
        return stored, time.perf_counter(), worker.cpu_s()

    async def _check_reports(self, lane: Lane, count: int) -> Counter[str]:
        """Read every report back: each task answered once and rightly; return how its memory answered."""
        reader = await self._stream.pull_subscribe(
            f"{lane.reports_prefix}.>", stream=lane.reports_stream
        )
        seen: set[str] = set()
        outcomes: Counter[str] = Counter()
        read = 0
        while read < count:
            messages = await reader.fetch(500, timeout=5)
            for message in messages:
                report = json.loads(message.data)
                if (
                    report["status"] != "completed"
                    or int(float(report["result"]["predicted_spending"])) != 68_000
                ):
                    raise NotMeasuredError(f"wrong report: {message.data[:200]!r}")
                seen.add(report["task_id"])
                outcomes[(report.get("memory") or {}).get("outcome", "none")] += 1
                await message.ack()
            read += len(messages)
        await reader.unsubscribe()
        if len(seen) != count:
            raise NotMeasuredError(f"{len(seen)} tasks reported of {count}")
        return outcomes

    @contextlib.asynccontextmanager
    async def asking(self, lane: Lane) -> AsyncIterator["Asking"]:
        """Watch the lane's reports by a core subscription for the time of the block."""
        asking = Asking(self._stream, lane)
        subscription = await self._client.subscribe(
            f"{lane.reports_prefix}.{SUPERVISOR}.>", cb=asking.notice
        )
        await self._client.flush()
        yield asking
        await subscription.unsubscribe()


class Asking:
    """One question at a time, each timed from before its publication to the arrival of its report."""

    def __init__(self, stream: JetStreamContext, lane: Lane) -> None:
        self._stream = stream
        self._lane = lane
        self._awaited: dict[str, asyncio.Future[dict[str, Any]]] = {}

    async def notice(self, message: Msg) -> None:
        """Hand an arrived report to whoever waits for it."""
        future = self._awaited.get(message.subject.split(".")[2])
        if future is not None and not future.done():
            future.set_result(json.loads(message.data))

    async def ask(self, assignment: tuple[str, bytes]) -> tuple[float, dict[str, Any]]:
        """Return the milliseconds one assignment took, and its report."""
        task_id, body = assignment
        future = self._awaited[task_id] = asyncio.get_running_loop().create_future()
        started = time.perf_counter()
        async with asyncio.timeout(PATIENCE_S):
            await self._stream.publish(self._lane.task_subject, body)
            report = await future
        elapsed_ms = (time.perf_counter() - started) * 1000
        del self._awaited[task_id]
        return elapsed_ms, report
