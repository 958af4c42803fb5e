"""The tree of a task out of the ledger of a real server: every state, its bounds, long results, forgetting."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from tasklore.contracts.messages import (
    CompletionReport,
    ErrorNote,
    MemoryNote,
    TaskAssignment,
    TaskCall,
    Usage,
)
from tasklore.memory.ledger.journal import Journal
from tasklore.memory.ledger.ledger import MOST_CHILDREN, Ledger
from tasklore.memory.ledger.runs import RunName
from tasklore.memory.ledger.task_tree import (
    MOST_ALIKE,
    MOST_LEVELS,
    MOST_STEPS,
    MOST_TASKS,
    TaskTree,
)
from tasklore.memory.ledger.user_tasks import UserTasks
from tests.ledger_layouts import LayoutUnderTest
from tests.servers import PATIENCE_S

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
LEASE_MS = 30_000


@pytest.fixture
def ledger(valkey_or_redis: Redis, layout: LayoutUnderTest) -> Ledger:
    """Return a ledger on a server."""
    return Ledger(valkey_or_redis, deadline_s=PATIENCE_S)


@pytest.fixture
def tree(valkey_or_redis: Redis) -> TaskTree:
    """Return the reader of trees on the same server, ten seconds after the beginning of every task."""
    return TaskTree(
        valkey_or_redis, deadline_s=PATIENCE_S, now_ms=lambda: NOW_MS + 10_000
    )


def assignment(task_id: str, task: str = "leaf", **parameters: object) -> bytes:
    call = TaskCall(name=task, parameters=parameters)
    made = TaskAssignment(
        task_id=task_id,
        agent_id="TreeAgent",
        supervisor_id="S",
        task=call,
        created_at=NOW,
    )
    return made.model_dump_json().encode()


def report(task_id: str, status: str = "completed", **fields: object) -> bytes:
    made = CompletionReport(
        **{
            "task_id": task_id,
            "agent_id": "TreeAgent",
            "supervisor_id": "S",
            "task_name": "leaf",
            "status": status,
            "memory": MemoryNote(outcome="off"),
            "worker_id": "w1",
            "queued_ms": 5,
            "run_ms": 1_000,
            "finished_at": NOW + timedelta(seconds=3),
            **fields,
        }
    )
    return made.model_dump_json().encode()


async def call(ledger: Ledger, parent: str, child: str, task: str = "leaf") -> None:
    await ledger.accept_many(
        [(child, 1, assignment(child, task), "")],
        [(parent, child, f"TreeAgent.{task}")],
    )


async def test_a_tree_has_every_state_in_the_order_of_the_calls(
    ledger: Ledger, tree: TaskTree, valkey_or_redis: Redis, layout: LayoutUnderTest
) -> None:
    await ledger.accept("root", 1, assignment("root", "grow"))
    await ledger.begin("root", 1, "w1", NOW_MS + 2_000, LEASE_MS)
    for child in (
        "c-done",
        "c-failed",
        "c-recalled",
        "c-queued",
        "c-running",
        "c-cancelled",
        "c-expired",
        "c-gone",
    ):
        for _ in range(2):  # an answer that was lost: asked for again, listed once
            await call(ledger, "root", child)
    usage = Usage(input_tokens=100, output_tokens=20, cost_usd=0.25)
    await ledger.finish(
        "c-done", 1, "completed", report("c-done", usage=usage, attempt=3)
    )
    why = ErrorNote(type="GiveUp", message="it is bad\nand long")
    await ledger.finish(
        "c-failed",
        1,
        "failed",
        report("c-failed", "failed", error=why, usage=Usage(unpriced=True)),
    )
    note = MemoryNote(outcome="hit", age_ms=1, saved_ms=7_000)
    await ledger.finish(
        "c-recalled", 1, "completed", report("c-recalled", memory=note, run_ms=0)
    )
    await ledger.begin("c-running", 1, "w1", NOW_MS + 4_000, LEASE_MS)
    await ledger.cancel("c-cancelled", 1, "enough")
    await ledger.finish("c-expired", 1, "expired", report("c-expired", "expired"))
    await valkey_or_redis.delete(layout.key("c-gone"))

    trace = await tree.read("root")

    assert trace is not None
    children = {child.task_id: child for child in trace.root.children}
    assert [child.state for child in children.values()] == [
        *(
            "completed",
            "failed",
            "completed",
            "accepted",
            "running",
            "cancelling",
            "expired",
            "gone",
        )
    ]
    assert {f"{child.agent_id}.{child.task}" for child in children.values()} == {
        "TreeAgent.leaf"
    }
    assert (
        trace.root.task,
        trace.root.state,
        trace.root.run_ms,
        trace.root.queued_ms,
    ) == (*("grow", "running", 8_000, 2_000),)
    assert (
        children["c-done"].attempts,
        children["c-done"].queued_ms,
        children["c-done"].usage,
    ) == (3, 5, usage)
    assert children["c-failed"].error == "GiveUp: it is bad"
    assert children["c-recalled"].saved_ms == 7_000
    assert (children["c-queued"].queued_ms, children["c-queued"].run_ms) == (
        10_000,
        None,
    )
    assert (children["c-running"].queued_ms, children["c-running"].run_ms) == (
        4_000,
        6_000,
    )
    sums = trace.sums
    assert (sums.tasks, sums.recalled, sums.saved_ms, trace.wall_ms) == (
        9,
        1,
        7_000,
        10_000,
    )
    assert (sums.input_tokens, sums.output_tokens, sums.cost_usd, sums.unpriced) == (
        100,
        20,
        0.25,
        True,
    )
    assert await tree.read("never-heard-of") is None


async def test_the_newest_generation_counts_and_steps_are_shown_until_the_end(
    ledger: Ledger, tree: TaskTree, valkey_or_redis: Redis
) -> None:
    await ledger.accept("root", 1, assignment("root"))
    await ledger.finish("root", 1, "failed", report("root", "failed"))
    await ledger.begin("root", 2, "w2", NOW_MS, LEASE_MS)
    journal = Journal(valkey_or_redis, deadline_s=PATIENCE_S)
    for position in range(MOST_STEPS + 3):
        await journal.write(
            RunName("root", 2, "w2"),
            position,
            f"digest step {position}",
            b"1" * position,
        )

    trace = await tree.read("root")

    assert trace is not None
    assert (trace.root.generation, trace.root.state, trace.root.attempts) == (
        2,
        "running",
        1,
    )
    assert [(step.name, step.bytes) for step in trace.root.steps[:2]] == [
        ("step 0", 0),
        ("step 1", 1),
    ]
    assert (len(trace.root.steps), trace.root.more_steps) == (MOST_STEPS, 3)


async def test_a_deep_line_is_read_to_its_bound(ledger: Ledger, tree: TaskTree) -> None:
    await ledger.accept("t0", 1, assignment("t0"))
    for number in range(MOST_LEVELS + 5):
        await call(ledger, f"t{number}", f"t{number + 1}")
    # What lists itself, or a task above it, is no circle.
    await call(ledger, "t3", "t0")
    await call(ledger, "t3", "t3")

    trace = await tree.read("t0")

    assert trace is not None
    assert (trace.sums.tasks, trace.more_tasks) == (MOST_LEVELS, 1 + 2)
    depth = 1
    task = trace.root
    while task.children:
        depth = depth + 1
        task = task.children[0]
    assert (depth, task.task_id) == (MOST_LEVELS, f"t{MOST_LEVELS - 1}")


async def test_a_wide_level_is_read_to_its_bound_and_failures_are_shown_before_the_fold(
    ledger: Ledger, tree: TaskTree, valkey_or_redis: Redis, layout: LayoutUnderTest
) -> None:
    await ledger.accept("root", 1, assignment("root"))
    listed = {f"c-{number} TreeAgent.leaf": number for number in range(MOST_CHILDREN)}
    await valkey_or_redis.zadd(layout.children("root"), listed)
    reports = [
        (f"c-{number}", 1, "completed", report(f"c-{number}"))
        for number in range(1_900)
    ]
    await ledger.finish_many(reports)
    await ledger.finish("c-1950", 1, "failed", report("c-1950", "failed"))
    # The list is full: one more is called, and not listed.
    await call(ledger, "root", "c-late")
    await call(ledger, "c-0", "c-below")

    trace = await tree.read("root")

    assert trace is not None
    assert (trace.sums.tasks, trace.more_tasks) == (
        MOST_TASKS,
        MOST_CHILDREN - (MOST_TASKS - 1) + 1,
    )
    assert len(trace.root.children) == MOST_ALIKE
    assert "c-1950" in {child.task_id for child in trace.root.children}
    (alike,) = trace.root.alike
    assert alike.sums.tasks == MOST_TASKS - 1 - MOST_ALIKE
    assert alike.sums.states["completed"] == 1_900 - (MOST_ALIKE - 1)
    assert alike.sums.run_ms == 1_000 * alike.sums.states["completed"]


async def test_long_results_and_parameters_are_not_read(
    ledger: Ledger, tree: TaskTree
) -> None:
    """A report is read without its result, which our writers put last; another order costs its figures."""
    await ledger.accept("root", 1, assignment("root", text="x" * 100_000))
    await call(ledger, "root", "c-1")
    usage = Usage(input_tokens=9)
    fields = json.loads(report("c-1", usage=usage))
    result = {"result": {"result": "y" * 100_000}}
    del fields["result"]
    await ledger.finish(
        "c-1",
        1,
        "completed",
        json.dumps(fields | result, separators=(",", ":")).encode(),
    )
    await call(ledger, "root", "c-2")
    await ledger.finish(
        "c-2",
        1,
        "completed",
        json.dumps(
            {"schema_version": 1} | result | fields, separators=(",", ":")
        ).encode(),
    )

    trace = await tree.read("root")

    assert trace is not None
    first, second = trace.root.children
    assert (trace.root.state, first.usage, second.state) == (
        "accepted",
        usage,
        "completed",
    )
    assert second.error == "its report cannot be read"


async def test_the_list_goes_with_its_task_its_user_and_its_time(
    ledger: Ledger, valkey_or_redis: Redis, layout: LayoutUnderTest
) -> None:
    tasks = UserTasks(valkey_or_redis)
    key = layout.children("root")
    await ledger.begin("root", 1, "w1", NOW_MS, LEASE_MS)
    await call(ledger, "root", "c-1")
    assert 0 < await valkey_or_redis.pttl(key) <= 7 * 86_400_000
    await tasks.strip("root", 1, b"{}")
    assert not await valkey_or_redis.exists(key)
    await ledger.begin("root", 2, "w1", NOW_MS, LEASE_MS)
    await call(ledger, "root", "c-1")
    await tasks.remove(["root"])
    assert not await valkey_or_redis.exists(key)
