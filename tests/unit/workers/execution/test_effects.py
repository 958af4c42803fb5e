"""Rights to effects: one run has them, also when an answer was lost on its way."""

from datetime import UTC, datetime

import pytest

from tasklore.contracts.errors import MemoryUnavailable, RunReplaced
from tasklore.workers.context.effects import Effects
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.job_reader import JobReader
from tests.fakes.ledger import FakeLedger
from tests.unit.workers.execution.fake_worker import FakeWorker, a_task


class LosingLedger(FakeLedger):
    """A ledger that does what it is asked, and whose answers can get lost."""

    loses = False

    async def once(
        self, task_id: str, generation: int, worker_id: str, name: str, token: str
    ) -> bool | None:
        """Answer, unless that is lost."""
        answer = await super().once(task_id, generation, worker_id, name, token)
        if self.loses:
            raise MemoryUnavailable("the answer was lost")
        return answer


def a_job() -> Job:
    """Return a task that makes effects."""
    job = JobReader(FakeWorker().agent).read(
        a_task(task="mutter"), datetime(2026, 1, 1, 12, tzinfo=UTC)
    )
    assert isinstance(job, Job)
    return job


async def test_a_right_whose_answer_was_lost_is_still_ours() -> None:
    ledger = LosingLedger()
    job = a_job()
    ours = Effects(ledger, "w1")
    theirs = Effects(ledger, "w2")
    ledger.loses = True
    with pytest.raises(MemoryUnavailable):
        await ours.claim(job, "mail")
    ledger.loses = False
    assert await theirs.claim(job, "mail") is False
    assert await ours.claim(job, "mail") is True
    assert await ours.claim(job, "mail") is False


async def test_a_run_that_was_replaced_is_told_so() -> None:
    """With the name of the effect that it does not make."""
    ledger = LosingLedger()
    await ledger.begin("t1", 1, "elsewhere", 0, 60_000)
    with pytest.raises(RunReplaced, match="'mail' is not made"):
        await Effects(ledger, "w1").claim(a_job(), "mail")
