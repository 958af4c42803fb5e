"""What a step of a pipeline costs beyond the task in it: a chain of phases that do nothing, beside the same tasks bare.

Each phase reads what the one before it wrote. A step is timed from one `phase_done` event to the next as they arrive
here; a bare task from before its publication to the arrival of its report.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import nats
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from benchmarks.lanes import Lane, assignment
from benchmarks.processes import NotMeasuredError, Worker, running
from benchmarks.producer import PATIENCE_S, Asking, Producer
from benchmarks.profiles import Profile
from benchmarks.table import Row, missing, percentile, ratio
from tasklore.contracts import subjects
from tasklore.contracts.messages import PipelineEvent, PipelineReply, PipelineRequest
from tasklore.contracts.pipelines import Input, Phase, Pipeline

NOTHING = Lane(
    name="nothing",
    tasks_stream="TASKS",
    task_subject="tasks.NothingAgent.do_nothing",
    consumer="NothingAgent",
    reports_stream="REPORTS",
    reports_prefix="reports",
    command=(sys.executable, "-m", "tasklore", "worker", "benchmarks.agents.nothing"),
    provisions=True,
)
#: The supervisor that drives the pipelines; the bare tasks report to another one, which nobody runs.
SUPERVISOR = "bench-pipelines"
#: Phases in a row.
STEPS = 40
#: Milliseconds that a step may cost beyond its task, at the median.
ASKED_MS = 2.0
#: Seconds between two requests to a supervisor that is about to serve.
_AGAIN_S = 0.1
_BARE = "bare task that does nothing"
_STEP = "pipeline step that does nothing"
#: Items of the fan-out, those under way at once, the rate of bare tasks that it may not fall below a share of, and
#: megabytes that the supervisor may grow by.
ITEMS = 10_000
ITEMS_AT_ONCE = 200
ASKED_SHARE = 0.5
ASKED_MB = 60
_FAN = f"for_each over {ITEMS:,} items that do nothing"


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, or one that says why there is no figure."""
    try:
        bare, steps, fan = await _take_turns(
            nats_url, redis_url, max(2, profile.questions // STEPS)
        )
    except (NotMeasuredError, TimeoutError, nats.errors.Error) as error:
        return [missing(_STEP, str(error) or "no answer in time")]
    over_ms = percentile(steps, 0.5) - percentile(bare, 0.5)
    return [
        Row(
            _BARE,
            p50_ms=percentile(bare, 0.5),
            p99_ms=percentile(bare, 0.99),
            how="one `tasklore worker`, low load",
        ),
        Row(
            _STEP,
            p50_ms=percentile(steps, 0.5),
            p99_ms=percentile(steps, 0.99),
            compared=f"p50 {over_ms:+.3f} ms, asked at most {ASKED_MS:g}; "
            f"{ratio(percentile(steps, 0.5), percentile(bare, 0.5))} bare",
            how=f"chains of {STEPS} phases, each reads the last one's result; {len(steps):,} steps, "
            f"{len(bare):,} bare tasks in turns",
        ),
        fan,
    ]


async def _take_turns(
    nats_url: str, redis_url: str, rounds: int
) -> tuple[list[float], list[float], Row]:
    """Return the milliseconds of bare tasks and of steps, after a round that does not count, and the row of a list."""
    bare = list[float]()
    steps = list[float]()
    environment = {
        "TASKLORE_NATS_URL": nats_url,
        "TASKLORE_REDIS_URL": redis_url,
        "TASKLORE_SUPERVISOR_ID": SUPERVISOR,
        "TASKLORE_LOG_LEVEL": "warning",
    }
    supervisor = [sys.executable, "-m", "tasklore", "supervisor"]
    async with (
        Producer(nats_url, redis_url) as producer,
        running(supervisor, environment) as driving,
    ):
        await producer.prepare(NOTHING)
        async with (
            producer.worker(NOTHING),
            producer.asking(NOTHING) as asking,
            _connected(nats_url) as client,
        ):
            # The first question also waits for the worker to start.
            await asking.ask(assignment(NOTHING, {"number": 0}))
            for number in range(rounds + 1):
                taken = [await _bare(asking, index) for index in range(STEPS)]
                chain = await _chain(client, number)
                driving.ensure_running()
                if number:
                    bare += taken
                    steps += chain
            fan = await _fan_out(client, asking, driving)
    return bare, steps, fan


async def _fan_out(client: Client, asking: Asking, driving: Worker) -> Row:
    """Return the rate of a list of items, beside as many bare tasks with as many under way."""
    room = asyncio.Semaphore(ITEMS_AT_ONCE)

    async def bare(number: int) -> None:
        async with room:
            await _bare(asking, number)

    started = time.perf_counter()
    await asyncio.gather(*(bare(number) for number in range(ITEMS)))
    bare_s = time.perf_counter() - started
    before_mb = _resident_mb(driving)
    started = time.perf_counter()
    event = await _ended(
        client, "bench-items", _items(), {"numbers": list(range(ITEMS))}
    )
    took_s = time.perf_counter() - started
    if event.kind != "completed":
        raise NotMeasuredError(f"the list is {event.kind}: {event.text}")
    grown_mb = _resident_mb(driving) - before_mb
    return Row(
        _FAN,
        compared=f"{ITEMS / took_s:,.0f}/s, {bare_s / took_s:.2f}x bare tasks ({ITEMS / bare_s:,.0f}/s), "
        f"asked at least {ASKED_SHARE:g}x; supervisor {grown_mb:+.0f} MB, asked at most {ASKED_MB}",
        how=f"{ITEMS_AT_ONCE} at once on both sides; results in order in one entry",
    )


def _resident_mb(worker: Worker) -> float:
    """Return the resident memory of a process, in megabytes."""
    status = Path(f"/proc/{worker.process.pid}/status").read_text("utf-8")
    return (
        int(
            next(
                line for line in status.splitlines() if line.startswith("VmRSS")
            ).split()[1]
        )
        / 1024
    )


async def _ended(
    client: Client, session_id: str, pipeline: Pipeline, inputs: dict[str, Any]
) -> PipelineEvent:
    """Return the last event of a run, once it has ended."""
    ended: asyncio.Future[PipelineEvent] = asyncio.get_running_loop().create_future()

    async def hear(message: Msg) -> None:
        if b'"phase":' not in message.data and b'"kind":"accepted"' not in message.data:
            ended.set_result(PipelineEvent.model_validate_json(message.data))

    heard = await client.subscribe(subjects.run_events(session_id), cb=hear)
    try:
        await _start(client, session_id, pipeline, inputs)
        async with asyncio.timeout(PATIENCE_S):
            return await ended
    finally:
        await heard.unsubscribe()


@asynccontextmanager
async def _connected(nats_url: str) -> AsyncIterator[Client]:
    client = await nats.connect(nats_url)
    try:
        yield client
    finally:
        await client.close()


async def _bare(asking: Asking, number: int) -> float:
    taken_ms, report = await asking.ask(assignment(NOTHING, {"number": number}))
    if report["status"] != "completed":
        raise NotMeasuredError(
            f"a bare task is {report['status']}: {report.get('error')}"
        )
    return taken_ms


async def _chain(client: Client, number: int) -> list[float]:
    """Return the milliseconds of every step but the first of one run."""
    session_id = f"bench-steps-{number}"
    done_at = list[float]()
    ended: asyncio.Future[PipelineEvent] = asyncio.get_running_loop().create_future()

    async def hear(message: Msg) -> None:
        # Read as little as will do: whatever this process does, the supervisor waits for a core.
        if b'"kind":"phase_done"' in message.data:
            done_at.append(time.perf_counter())
        elif (
            b'"phase":' not in message.data and b'"kind":"accepted"' not in message.data
        ):
            ended.set_result(PipelineEvent.model_validate_json(message.data))

    heard = await client.subscribe(subjects.run_events(session_id), cb=hear)
    try:
        await _start(client, session_id, _pipeline(), {"number": number})
        async with asyncio.timeout(PATIENCE_S):
            event = await ended
    finally:
        await heard.unsubscribe()
    if event.kind != "completed" or len(done_at) != STEPS:
        raise NotMeasuredError(
            f"the run is {event.kind} after {len(done_at)} steps: {event.text}"
        )
    return [(later - earlier) * 1000 for earlier, later in pairwise(done_at)]


async def _start(
    client: Client, session_id: str, pipeline: Pipeline, inputs: dict[str, Any]
) -> None:
    """Have the run taken up, by a supervisor that may still have to start and to learn of the agent."""
    declared = pipeline.model_dump(mode="json")
    request = PipelineRequest(
        action="run", session_id=session_id, pipeline=declared, inputs=inputs
    )
    body = request.model_dump_json(exclude_none=True).encode()
    reply = None
    async with asyncio.timeout(PATIENCE_S):
        while reply is None or reply.kind != "accepted":
            try:
                answer = await client.request(
                    subjects.pipelines(SUPERVISOR), body, timeout=PATIENCE_S
                )
            except nats.errors.NoRespondersError:
                await asyncio.sleep(_AGAIN_S)
                continue
            reply = PipelineReply.model_validate_json(answer.data)
            if reply.kind != "accepted":
                await asyncio.sleep(_AGAIN_S)


def _pipeline() -> Pipeline:
    phases = [_phase(0, "${input.number}")]
    phases += [
        _phase(index, f"${{step_{index - 1}:results.number}}")
        for index in range(1, STEPS)
    ]
    return Pipeline(
        name="steps", inputs={"number": Input(type="number")}, phases=tuple(phases)
    )


def _items() -> Pipeline:
    fan = Phase(
        name="items",
        agent="NothingAgent",
        task="do_nothing",
        for_each="${input.numbers}",
        at_once=ITEMS_AT_ONCE,
        parameters={"number": "${item}"},
    )
    return Pipeline(name="items", inputs={"numbers": Input(type="list")}, phases=(fan,))


def _phase(index: int, number: str) -> Phase:
    return Phase(
        name=f"step_{index}",
        agent="NothingAgent",
        task="do_nothing",
        parameters={"number": number},
    )
