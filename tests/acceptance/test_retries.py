"""Another run later: short waits in the queue, long ones in LATER, and effects that happen once over all runs."""

import asyncio
import time

from tests.acceptance.conftest import Standing
from tests.acceptance.house import House
from tests.acceptance.outside import PATIENCE_S, Outside, outside


async def test_a_long_wait_is_spent_in_later_and_holds_nothing(own_house: House) -> None:
    """No slot and no acknowledgement is pending meanwhile; it runs when it is due, and leaves nothing behind."""
    worker = own_house.worker(slots=1, retry_schedule_s=1).ready()
    async with outside(own_house.servers.nats_url) as program:
        parameters = {"label": "patient", "kind": "later", "times": 1, "after_s": 6}
        task = await program.assign("ProbeAgent", "trouble", parameters, max_attempts=2)
        await program.eventually(lambda: _waits(program, task))
        # Its delivery is acknowledged when it is known to lie there, which is a moment later.
        await program.eventually(lambda: _holds_nothing(program))
        quick = await program.ask("ProbeAgent", "fresh", {"label": "quick"})
        report = await program.report_of(task)
        await program.eventually(lambda: _is_empty(program))
    first, second = own_house.runs("patient")
    assert quick["status"] == "completed"
    assert (report["status"], report["attempt"]) == ("completed", 2)
    assert second - first >= 5.9
    assert worker.metric('tasklore_retries_total{how="schedule"}') == 1


async def test_a_long_wait_outlives_the_worker_and_nats(own_house: House) -> None:
    """Both are killed while the task waits."""
    worker = own_house.worker(retry_schedule_s=1).ready()
    async with outside(own_house.servers.nats_url) as program:
        parameters = {"label": "sleeper", "kind": "later", "times": 1, "after_s": 6}
        task = await program.assign("ProbeAgent", "trouble", parameters)
        await program.eventually(lambda: _waits(program, task))
        worker.kill()
        own_house.servers.nats.kill()
        await own_house.servers.nats.start()
        own_house.worker(retry_schedule_s=1).ready()
        report = await program.report_of(task)
    assert (report["status"], report["attempt"]) == ("completed", 2)
    assert len(own_house.runs("sleeper")) == 2


async def test_a_run_that_would_begin_after_the_deadline_is_none(program: Outside, standing: Standing) -> None:
    """The task fails with its own error, at once, and lies in DEAD."""
    parameters = {"label": "hopeless", "kind": "later", "after_s": 600}
    started = time.monotonic()
    deadline = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 300))
    report = await program.ask("ProbeAgent", "trouble", parameters, deadline=deadline)
    assert (report["status"], report["error"]["type"]) == ("failed", "RetryLater")
    assert time.monotonic() - started < 250
    assert (await program.last("DEAD", "dead.tasks.ProbeAgent.trouble"))["reason"] == "deadline"


async def test_an_effect_is_made_once_over_all_runs(program: Outside, standing: Standing) -> None:
    """Three runs, the first two of which fail after it."""
    report = await program.ask("ProbeAgent", "effect", {"label": "mailed", "times": 2})
    assert (report["status"], report["attempt"]) == ("completed", 3)
    assert len(standing.house.runs("mailed")) == 3
    assert len(standing.house.runs("mailed-mail")) == 1


async def test_a_worker_that_was_replaced_makes_no_effect_and_its_result_is_refused(own_house: House) -> None:
    """It is stopped in the middle, its task taken over, and it goes on later."""
    first = own_house.worker(ack_wait_s=1).ready()
    async with outside(own_house.servers.nats_url) as program:
        task = await program.assign("ProbeAgent", "fresh", {"label": "taken-over", "ms": 4_000})
        await program.begun(task)
        first.stop()
        second = own_house.worker(ack_wait_s=1).ready()
        report = await program.report_of(task)
        first.go_on()
        assert await asyncio.to_thread(
            lambda: _eventually(
                lambda: first.metric("tasklore_replaced_runs") + first.metric("tasklore_stale_reports") > 0
            )
        )
        assert len(await program.reports()) == 1
    assert (report["status"], report["attempt"]) == ("completed", 2)
    assert len(own_house.runs("taken-over")) == 2
    assert second.metric("tasklore_crashed_runs_total") == 1


async def test_a_second_signal_ends_a_worker_at_once(own_house: House) -> None:
    """Its task goes to the next one without waiting for the lease to end."""
    worker = own_house.worker(ack_wait_s=30, grace_s=60).ready()
    async with outside(own_house.servers.nats_url) as program:
        task = await program.assign("ProbeAgent", "fresh", {"label": "interrupted", "ms": 3_000})
        await program.begun(task)
        worker.terminate()
        await asyncio.to_thread(worker.await_log, "asked_to_end")
        worker.terminate()
        assert await asyncio.to_thread(worker.wait) == 0
        own_house.worker(ack_wait_s=30).ready()
        report = await program.report_of(task)
    assert report["status"] == "completed"
    assert "Traceback" not in worker.log()


def _eventually(holds: object, within_s: float = PATIENCE_S) -> bool:
    gives_up_at = time.monotonic() + within_s
    while time.monotonic() < gives_up_at:
        if callable(holds) and holds():
            return True
        time.sleep(0.05)
    return False


async def _waits(program: Outside, task: str) -> bool:
    return bool(await program.counts("LATER", f"schedules.tasks.{task}.>"))


async def _holds_nothing(program: Outside) -> bool:
    held = await program.api("CONSUMER.INFO.TASKS.ProbeAgent")
    return (held["num_ack_pending"], held["num_pending"]) == (0, 0)


async def _is_empty(program: Outside) -> bool:
    return not await program.counts("LATER") and not await program.counts("TASKS")
