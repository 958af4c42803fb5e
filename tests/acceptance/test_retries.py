"""Another run later: short waits in the queue, long ones in LATER, and effects that happen once over all runs."""

import asyncio

from tests.acceptance.conftest import Standing
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import Served, System


async def test_a_long_wait_is_spent_in_later_and_holds_nothing(
    own_system: System,
) -> None:
    """No slot and no acknowledgement is pending meanwhile; it runs when it is due, and leaves nothing behind."""
    worker = own_system.worker(slots=1, retry_schedule_s=1).ready()
    async with outside(own_system.servers.nats_url) as program:
        parameters = {"label": "patient", "kind": "later", "times": 1, "after_s": 4}
        task = await program.assign("ProbeAgent", "trouble", parameters, max_attempts=2)
        await program.eventually(lambda: _waits(program, task))
        # Its delivery is acknowledged when it is known to lie there, which is a moment later.
        await program.eventually(lambda: _holds_nothing(program))
        quick = await program.ask("ProbeAgent", "fresh", {"label": "quick"})
        report = await program.report_of(task)
        await program.eventually(lambda: _is_empty(program))
    first, second = own_system.runs("patient")
    assert quick["status"] == "completed"
    assert (report["status"], report["attempt"]) == ("completed", 2)
    assert second - first >= 3.9
    assert worker.metric('tasklore_retries_total{how="schedule"}') == 1


async def test_a_long_wait_outlives_the_worker_and_nats(own_system: System) -> None:
    worker = own_system.worker(retry_schedule_s=1).ready()
    async with outside(own_system.servers.nats_url) as program:
        parameters = {"label": "sleeper", "kind": "later", "times": 1, "after_s": 4}
        task = await program.assign("ProbeAgent", "trouble", parameters)
        await program.eventually(lambda: _waits(program, task))
        worker.kill()
        own_system.servers.nats.kill()
        await own_system.servers.nats.start()
        own_system.worker(retry_schedule_s=1).ready()
        report = await program.report_of(task)
    assert (report["status"], report["attempt"]) == ("completed", 2)
    assert len(own_system.runs("sleeper")) == 2


async def test_an_effect_is_made_once_over_all_runs(
    program: Outside, standing: Standing
) -> None:
    report = await program.ask("ProbeAgent", "effect", {"label": "mailed", "times": 2})
    assert (report["status"], report["attempt"]) == ("completed", 3)
    assert len(standing.system.runs("mailed")) == 3
    assert len(standing.system.runs("mailed-mail")) == 1


async def test_a_worker_that_was_replaced_makes_no_effect_and_its_result_is_refused(
    own_system: System,
) -> None:
    """It is stopped in the middle, its task taken over, and it goes on later."""
    first = own_system.worker(ack_wait_s=1).ready()
    async with outside(own_system.servers.nats_url) as program:
        task = await program.assign(
            "ProbeAgent", "fresh", {"label": "taken-over", "ms": 2_500}
        )
        await program.begun(task)
        first.stop()
        second = own_system.worker(ack_wait_s=1).ready()
        report = await program.report_of(task)
        first.go_on()
        await program.eventually(lambda: _is_refused(first))
        assert len(await program.reports()) == 1
    assert (report["status"], report["attempt"]) == ("completed", 2)
    assert len(own_system.runs("taken-over")) == 2
    assert second.metric("tasklore_crashed_runs_total") == 1


async def _is_refused(worker: Served) -> bool:
    """Return whether a run of *worker* was told that another has taken its place."""

    def refused() -> float:
        return worker.metric("tasklore_replaced_runs") + worker.metric(
            "tasklore_stale_reports"
        )

    return await asyncio.to_thread(refused) > 0


async def _waits(program: Outside, task: str) -> bool:
    return bool(await program.counts("LATER", f"schedules.tasks.{task}.>"))


async def _holds_nothing(program: Outside) -> bool:
    held = await program.api("CONSUMER.INFO.TASKS.ProbeAgent")
    return (held["num_ack_pending"], held["num_pending"]) == (0, 0)


async def _is_empty(program: Outside) -> bool:
    return not await program.counts("LATER") and not await program.counts("TASKS")
