"""Cancelling: what waits never starts, what runs is stopped, and no later success counts."""

import asyncio
import json

from tests.acceptance.conftest import Standing
from tests.acceptance.external_program import Json, Outside, outside
from tests.acceptance.system import System


def cancel(system: System, task_id: str, *options: str) -> tuple[int, Json]:
    """Cancel by the command; return its exit code and what it says."""
    ended = system.command("cancel", task_id, "--json", *options)
    assert ended.returncode in (0, 1), ended.stderr
    return ended.returncode, json.loads(ended.stdout)


async def wish(program: Outside, task_id: str, reason: str = "changed my mind") -> None:
    """Say on the wire that a task is to be cancelled."""
    await program.client.publish(
        f"cancel.{task_id}", json.dumps({"task_id": task_id, "reason": reason}).encode()
    )
    await program.client.flush()


async def test_a_running_task_is_cancelled_by_the_command(
    program: Outside, standing: Standing
) -> None:
    """Its worker reports it, with the reason; a second try comes too late for nothing."""
    task = await program.assign(
        "ProbeAgent", "fresh", {"label": "cancelled-running", "ms": 60_000}
    )
    await program.begun(task)
    code, said = await asyncio.to_thread(
        cancel, standing.system, task, "--reason", "asked twice"
    )
    report = await program.report_of(task)
    assert (code, said["outcome"]) == (0, "cancelled")
    assert (report["status"], report["error"]["message"], report["attempt"]) == (
        "cancelled",
        "asked twice",
        1,
    )
    assert (await asyncio.to_thread(cancel, standing.system, task))[1][
        "outcome"
    ] == "cancelled"


async def test_a_finished_task_is_not_cancelled(
    program: Outside, standing: Standing
) -> None:
    """The command says how it ended, and its exit code that nothing was done."""
    report = await program.ask("ProbeAgent", "fresh", {"label": "too-late"})
    code, said = await asyncio.to_thread(cancel, standing.system, report["task_id"])
    assert (code, said["outcome"], said["status"]) == (1, "too_late", "completed")


async def test_a_plain_function_that_goes_on_does_not_count(
    program: Outside, standing: Standing
) -> None:
    """It cannot be stopped; the report does not wait for it, and its result is refused."""
    task = await program.assign(
        "ProbeAgent", "plain", {"label": "cancelled-thread", "ms": 1_500}
    )
    await program.eventually(lambda: _has_begun(standing.system, "cancelled-thread"))
    await wish(program, task)
    report = await program.report_of(task)
    assert report["status"] == "cancelled"
    await asyncio.sleep(
        2.0
    )  # what must not happen would do so when the function returns, after 1.5 s
    assert [heard["status"] for heard in program.heard if heard["task_id"] == task] == [
        "cancelled"
    ]


async def test_a_child_is_cancelled_with_its_parent_whether_it_runs_or_waits(
    program: Outside, standing: Standing
) -> None:
    parent = await program.assign(
        "ProbeAgent", "fresh", {"label": "parent", "ms": 60_000}
    )
    child = await program.assign(
        "ProbeAgent", "fresh", {"label": "child", "ms": 60_000}, parent_id=parent
    )
    grandchild = await program.assign(
        "ProbeAgent", "fresh", {"label": "grandchild", "ms": 60_000}, parent_id=child
    )
    await program.begun(parent, child, grandchild)
    await wish(program, parent)
    reports = [await program.report_of(task) for task in (parent, child, grandchild)]
    late = await program.ask(
        "ProbeAgent", "fresh", {"label": "late-child"}, parent_id=parent
    )
    assert [report["status"] for report in [*reports, late]] == ["cancelled"] * 4
    assert standing.system.runs("late-child") == []


async def test_a_task_that_waits_in_its_queue_never_starts(own_system: System) -> None:
    """Nobody runs when it is cancelled; the worker that comes reports it without a run."""
    async with outside(own_system.servers.nats_url) as program:
        own_system.worker().ready().kill()
        task = await program.assign("ProbeAgent", "fresh", {"label": "queued"})
        # Nobody knows of it yet, and no supervisor runs that could be asked.
        ended = await asyncio.to_thread(
            own_system.command,
            "--direct",
            *("cancel", task, "--ahead", "--json", "--reason", "no need"),
        )
        own_system.worker().ready()
        report = await program.report_of(task)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["outcome"] == "noted"
    assert (report["status"], report["error"]["message"]) == ("cancelled", "no need")
    assert own_system.runs("queued") == []


async def test_a_task_that_waits_for_its_next_run_is_reported_at_once(
    program: Outside, standing: Standing
) -> None:
    parameters = {"label": "parked", "kind": "later", "after_s": 120}
    task = await program.assign("ProbeAgent", "trouble", parameters)
    await program.eventually(lambda: _lies_in_later(program, task))
    code, said = await asyncio.to_thread(cancel, standing.system, task)
    report = await program.report_of(task)
    assert (code, said["outcome"], report["status"]) == (0, "cancelled", "cancelled")
    await program.eventually(lambda: _is_gone_from_later(program, task))
    assert len(standing.system.runs("parked")) == 1


async def _has_begun(system: System, label: str) -> bool:
    return bool(system.runs(label))


async def _lies_in_later(program: Outside, task: str) -> bool:
    return bool(await program.counts("LATER", f"schedules.tasks.{task}.>"))


async def _is_gone_from_later(program: Outside, task: str) -> bool:
    return not await _lies_in_later(program, task)
