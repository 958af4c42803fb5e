"""A stream of tasks that is lost: what a person was told is accepted is done all the same, and nothing of it twice."""

import asyncio
import json

import pytest

from tests.acceptance.external_program import Json, Outside, outside
from tests.acceptance.system import BUDGET, Served, System

REQUESTS = "requests.SupervisorAgent"
TASKS = 60

#: Seconds in which tasks come back: well below the half minute after which a supervisor looks without being told.
TOLD_S = 60.0


async def accept(program: Outside, count: int = TASKS) -> list[str]:
    """Ask *count* questions that nobody answers yet; return their request ids once all are tasks in a stream."""

    async def ask(number: int) -> Json:
        text = f"Check my budget: limit {50_000 + number}, spent 100"
        return await put(program, text, f"lost-{number}", wait_ms=0)

    async def all_stored() -> bool:
        stored = [await lying_in(program, stream) for stream in ("TASKS", "WAITING")]
        return sum(stored) >= count

    replies = await asyncio.gather(*(ask(number) for number in range(count)))
    assert [reply["kind"] for reply in replies] == ["pending"] * count
    # A reply that does not wait comes before what was asked has become a task.
    await program.eventually(all_stored)
    return [reply["request_id"] for reply in replies]


async def lying_in(program: Outside, stream: str) -> int:
    """Return how many messages lie in *stream*."""
    return int((await program.api(f"STREAM.INFO.{stream}"))["state"]["messages"])


async def put(program: Outside, text: str, request_id: str, **fields: object) -> Json:
    """Return the supervisor's reply to *text*."""
    request = {
        "text": text,
        "request_id": request_id,
        "conversation_id": request_id,
    } | fields
    return dict(
        json.loads(
            (
                await program.client.request(
                    REQUESTS, json.dumps(request).encode(), timeout=40
                )
            ).data
        )
    )


async def told_once(system: System) -> Served:
    """Start a supervisor that knows the budget agent, whose only worker has left; return the supervisor."""
    with system.worker(BUDGET) as worker:
        worker.ready()
        supervisor = system.supervisor().ready()
        await asyncio.to_thread(supervisor.await_agents, 1)
        worker.terminate()
        await asyncio.to_thread(worker.wait)
    return supervisor


async def reported(program: Outside, count: int = TASKS) -> None:
    """Return once *count* reports lie in the stream, soon."""

    async def all_there() -> bool:
        return len(await program.reports()) >= count

    await program.eventually(all_there, TOLD_S)


async def demand_once(program: Outside, worker: Served, requests: list[str]) -> None:
    """Every request has its own answer, out of one run; nobody ran or reported anything twice."""
    replies = [
        await put(
            program, f"Check my budget: limit {50_000 + number}, spent 100", request_id
        )
        for number, request_id in enumerate(requests)
    ]
    assert [reply["kind"] for reply in replies] == ["answer"] * len(requests)
    assert [reply["report"]["result"]["remaining"] for reply in replies] == [
        49_900 + number for number in range(len(requests))
    ]
    assert set((await program.reports()).values()) == {1}
    # A copy that was put back may find the report of the one before it, and publishes that again.
    assert len({json.dumps(report, sort_keys=True) for report in program.heard}) == len(
        requests
    )
    assert worker.metric("tasklore_task_duration_seconds_count") == len(requests)
    assert worker.metric('tasklore_tasks_total{agent="BudgetTrackerAgent"') == len(
        requests
    )

    async def emptied() -> bool:
        return await lying_in(program, "TASKS") == 0

    await program.eventually(emptied)


async def test_tasks_in_a_deleted_stream_are_done_once_a_worker_comes(
    own_system: System,
) -> None:
    """The supervisor that accepted them makes the stream anew and puts them back, loudly."""
    async with outside(own_system.servers.nats_url, "SupervisorAgent") as program:
        supervisor = await told_once(own_system)
        requests = await accept(program)
        lost = await lying_in(program, "TASKS")
        assert "error" not in await program.api("STREAM.DELETE.TASKS")
        worker = own_system.worker(BUDGET).ready()
        await reported(program)
        await demand_once(program, worker, requests)
        # It says it once all are back, by when the first are reported already.
        supervisor.await_log("stream_lost")
        assert supervisor.metric("tasklore_streams_lost_total") == 1
        [event] = [
            line for line in supervisor.log().splitlines() if "stream_lost" in line
        ]
        told = json.loads(event)
        # Those in WAITING may have been moved and done before the ledger was read.
        assert 0 < lost <= told["republished"] <= TASKS
        republished = supervisor.metric("tasklore_tasks_republished_total")
        assert republished == told["republished"]
        assert told["level"] == "warning"


async def test_a_stream_that_is_deleted_under_a_worker_loses_nothing(
    own_system: System,
) -> None:
    """The worker is at work, notices, and makes it anew as well; what ran meanwhile is reported once."""
    async with outside(own_system.servers.nats_url, "SupervisorAgent") as program:
        await told_once(own_system)
        requests = await accept(program)
        worker = own_system.worker(BUDGET, slots=1).ready()
        assert "error" not in await program.api("STREAM.DELETE.TASKS")
        await reported(program)
        await demand_once(program, worker, requests)


async def test_a_stream_lost_while_no_supervisor_ran_is_filled_when_one_starts(
    own_system: System,
) -> None:
    async with outside(own_system.servers.nats_url, "SupervisorAgent") as program:
        supervisor = await told_once(own_system)
        requests = await accept(program)
        supervisor.kill()
        lost = await lying_in(program, "TASKS")
        assert "error" not in await program.api("STREAM.DELETE.TASKS")
        worker = own_system.worker(BUDGET).ready()
        supervisor = own_system.supervisor().ready()
        await reported(program)
        await asyncio.to_thread(supervisor.await_agents, 1)
        await demand_once(program, worker, requests)
        republished = supervisor.metric("tasklore_tasks_republished_total")
        assert 0 < lost <= republished <= TASKS


async def test_a_full_queue_is_told_with_when_to_ask_again(own_system: System) -> None:
    small = {"tasks_max_bytes": 1024**2}
    own_system.worker(BUDGET, **small).ready()
    supervisor = own_system.supervisor(**small).ready()
    async with outside(own_system.servers.nats_url) as program:
        await asyncio.to_thread(supervisor.await_agents, 1)
        for size in (400_000, 50_000, 5_000, 500, 50, 1):
            with pytest.raises(RuntimeError, match="maximum bytes exceeded"):
                await fill(program, size)
        text = "Check my budget: limit 50000, spent 100"
        refused = await put(program, text, "r1")
        assert refused["kind"] == "failed"
        assert "The queue is full" in refused["text"]
        assert "nothing was started" in refused["text"]
        assert "again in 5 s" in refused["text"]
        assert supervisor.metric('tasklore_publish_refused_total{reason="full"}') >= 1
        assert supervisor.metric('tasklore_publish_refused_total{reason="other"}') == 0
        await program.api("STREAM.PURGE.TASKS")
        answer = await put(program, text, "r1")
        assert (answer["kind"], answer["report"]["result"]["remaining"]) == (
            "answer",
            49_900,
        )


async def fill(program: Outside, size: int) -> None:
    """Put tasks of *size* bytes for nobody into the queue until it takes no more."""
    for _ in range(1024):
        await program.publish("tasks.NobodyAgent.x", b"x" * size)
