"""The session of a running task: its entries, its limits, and the time that they took."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasklore import Agent, Context, Parameters
from tasklore.contracts.errors import (
    InvalidInput,
    PhaseReplaced,
    UndeclaredAccess,
    UnknownSession,
)
from tasklore.contracts.messages import TaskAssignment
from tasklore.memory import keys
from tasklore.memory.sessions.entries import EntryInfo
from tasklore.workers.context.phase_outputs import entries_of
from tasklore.workers.context.session import TaskSession
from tasklore.workers.testing import NOW, AgentKit, KitServices, ScriptedLlm, run_task


class Nothing(Parameters):
    """No parameters."""


def assignment(
    task_id: str = "t1", phase: str | None = "plan", **fields: Any
) -> TaskAssignment:
    """Return what asks for a task of phase *phase*."""
    return TaskAssignment.model_validate(
        {
            "task_id": task_id,
            "agent_id": "Planner",
            "supervisor_id": "S",
            "task": {"name": "plan"},
            "created_at": NOW,
            "session_id": "s1",
            "phase": phase,
        }
        | fields
    )


class SessionFixture:
    """One session and its tasks."""

    def __init__(self) -> None:
        self.services = KitServices(ScriptedLlm(), NOW)
        self.at = 100.0

    async def open(self) -> "SessionFixture":
        """Make the session."""
        assert await self.services.sessions.create("s1")
        return self

    def task(self, task_id: str = "t1", phase: str | None = "plan") -> TaskSession:
        """Return the session as a task sees it, by the clock `at`, which a test moves."""
        return TaskSession(
            assignment(task_id, phase), "s1", self.services, lambda: self.at
        )

    async def put_task(self, phase: str, task_id: str) -> None:
        """Let nobody but a task write for *phase*, as a pipeline does."""
        await self.services.redis.hset(keys.session("s1").tasks, phase, task_id)

    async def entries(self) -> dict[str, EntryInfo]:
        """Return what is known of each entry."""
        return {
            entry.key: entry for entry in await self.services.sessions.entries("s1")
        }


@pytest.fixture
async def desk() -> SessionFixture:
    """Open a session."""
    return await SessionFixture().open()


async def test_time_is_told_by_whoever_computed(desk: SessionFixture) -> None:
    await desk.task().set("plan:a", 1)
    await desk.task().set("plan:b", 1, took=timedelta(seconds=1.5))
    outputs = entries_of(assignment(writes=("x", "y")), b'{"x":1,"y":2}', 2000)
    await desk.services.sessions.set_many("s1", outputs)
    entries = await desk.entries()
    took = {
        key: (entry.computation_ms, entry.is_timed) for key, entry in entries.items()
    }
    assert took == {
        "plan:a": (0, False),
        "plan:b": (1500, True),
        "plan:x": (2000, True),
        "plan:y": (2000, True),
    }
    assert {entry.agent for entry in entries.values()} == {"Planner"}


def an_agent(remember: Any, does: Any) -> Agent:
    """Return an agent whose one task does *does* with its context."""
    agent = Agent("Planner")

    @agent.task(remember=remember)
    async def plan(nothing: Nothing, context: Context) -> Any:
        """Plan."""
        return await does(context)

    return agent


async def _writes(context: Context) -> None:
    await context.session.set("plan:a", 1)


async def _asks_project(context: Context) -> list[str]:
    return [standard.text for standard in await context.project.standards()]


@pytest.mark.parametrize("remember", ["shared", "user"])
@pytest.mark.parametrize(
    ("does", "what"), [(_writes, "context.session"), (_asks_project, "context.project")]
)
async def test_a_remembered_task_may_not_touch_its_session(
    remember: Any, does: Any, what: str
) -> None:
    """The error says why, and both cures."""
    report = await run_task(
        an_agent(remember, does), "plan", {}, session={}, phase="plan", user_id="ann"
    )
    assert report.error is not None
    assert (report.status, report.error.type, report.attempt) == (
        "failed",
        UndeclaredAccess.__name__,
        1,
    )
    for word in (
        what,
        "do not include the state of the session",
        "remember=False",
        "as parameters",
    ):
        assert word in report.error.message


@pytest.mark.parametrize("does", [_writes, _asks_project])
async def test_without_a_session_such_a_task_is_rejected(does: Any) -> None:
    report = await run_task(an_agent(False, does), "plan", {})
    assert report.error is not None
    assert (report.status, report.error.type) == ("rejected", "InvalidInput")
    assert "session_id is missing" in report.error.message


async def test_a_shared_task_does_not_see_which_phase_it_is() -> None:
    """Its answer serves every session."""

    async def tell(context: Context) -> list[Any]:
        seen = context.assignment
        return [seen.session_id, seen.phase, seen.writes]

    kit = AgentKit(
        an_agent("shared", tell), session={}, phase="plan", writes=["results"]
    )
    assert (await kit.run("plan", {})).result == [None, None, None]
    assert (await kit.entries()) == {"plan:results": [None, None, None]}


async def test_a_decision_is_noted_once_however_often_the_task_runs() -> None:
    async def decide(context: Context) -> None:
        project = context.project
        old = await project.decide("Tabs.", tags=["style"])
        await project.decide("Spaces.", tags=["style"], supersedes=old.record_id)
        await project.decide(f"In the words of run {context.attempt}.", name="model")
        if context.attempt < 3:
            raise ValueError("again")

    kit = AgentKit(an_agent(False, decide), session={})
    assert (await kit.run("plan", {}, user_id="ann")).attempt == 3
    model, spaces, tabs = await kit.decisions()
    assert (model.text, spaces.text, tabs.text) == (
        "In the words of run 1.",
        "Spaces.",
        "Tabs.",
    )
    assert (spaces.supersedes, tabs.superseded_by) == (tabs.record_id, spaces.record_id)
    assert (tabs.by, tabs.session_id, tabs.tags) == ("ann", "session-1", ("style",))
    await kit.run("plan", {}, user_id="ann")
    assert len(await kit.decisions()) == 6


async def test_a_project_needs_a_session_that_has_one() -> None:
    services = KitServices(ScriptedLlm(), datetime(2026, 1, 1, tzinfo=UTC))
    task = an_agent(False, _asks_project).tasks["plan"]
    with pytest.raises(UnknownSession, match="'s1' does not exist"):
        await task.run(Nothing(), Context(task, assignment(), services))
    await services.sessions.create("s1")
    with pytest.raises(InvalidInput, match="belongs to no project"):
        await task.run(Nothing(), Context(task, assignment(), services))


@pytest.mark.parametrize(
    ("phase", "key", "cure"),
    [
        ("plan", "check:results", "write it as 'plan:results'"),
        ("plan", "check:file:a.py", "write it as 'plan:file:a.py'"),
        (None, "plan:results", "send it with a phase"),
        ("plan", "results", "naming rule"),
    ],
)
async def test_a_task_writes_under_its_own_phase(
    desk: SessionFixture, phase: str | None, key: str, cure: str
) -> None:
    """Another's key is refused with the cure, and nothing is written."""
    with pytest.raises(InvalidInput, match=cure):
        await desk.task(phase=phase).set(key, 1)
    assert await desk.entries() == {}


async def _one() -> int:
    return 1


async def test_a_phase_that_is_another_tasks_by_now_is_not_written_to(
    desk: SessionFixture,
) -> None:
    await desk.put_task("plan", "t9")
    await desk.put_task("check", "t1")
    with pytest.raises(PhaseReplaced):
        await desk.task("t1", "plan").set("plan:a", 1)
    with pytest.raises(PhaseReplaced):
        await desk.task("t1", "plan").get_or_compute("plan:b", _one)
    assert await desk.task("t1", "check").get_or_compute("plan:c", _one) == 1
    assert list(await desk.entries()) == ["plan:c"]


async def test_a_task_that_was_replaced_writes_nothing_under_the_key_of_another_phase(
    desk: SessionFixture,
) -> None:
    await desk.put_task("check", "t9")
    await desk.put_task("plan", "t1")
    with pytest.raises(PhaseReplaced, match="'check'"):
        await desk.task("t1", "check").get_or_compute("plan:a", _one)
    assert await desk.task("t2", None).get_or_compute("plan:b", _one) == 1
    assert list(await desk.entries()) == ["plan:b"]


async def test_waiting_for_what_another_task_computes_is_no_computing() -> None:
    """It counts once, however many values were waited for side by side; computing counts for who does it."""
    fixture = await SessionFixture().open()
    leader, waiting = fixture.task("t1"), fixture.task("t2", "use")
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def compute() -> str:
        begun.set()
        await go_on.wait()
        return "a map"

    first = asyncio.create_task(leader.get_or_compute("plan:map", compute))
    await begun.wait()
    second = [
        asyncio.create_task(waiting.get_or_compute("plan:map", compute))
        for _ in range(5)
    ]
    # All of them have begun after one turn of the loop.
    await asyncio.sleep(0)
    fixture.at += 2.5
    go_on.set()
    assert await asyncio.gather(first, *second) == ["a map"] * 6
    assert (waiting.waited_ms, leader.waited_ms) == (2500, 0)
