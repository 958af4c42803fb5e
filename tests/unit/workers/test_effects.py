"""Rights to effects: one run has them, also when an answer was lost on its way."""

from datetime import UTC, datetime

import pytest

from contracts.errors import MemoryUnavailable, RunReplaced
from tests.fakes.ledger import FakeLedger
from tests.unit.workers.office import Office, a_task
from workers.context.effects import Effects
from workers.execution.job import Order, read_order


class LosingLedger(FakeLedger):
    """A ledger that does what it is asked, and whose answers can get lost."""

    loses = False

    async def once(self, task_id: str, generation: int, worker_id: str, name: str, token: str) -> bool | None:
        """Answer, unless that is lost."""
        answer = await super().once(task_id, generation, worker_id, name, token)
        if self.loses:
            raise MemoryUnavailable("the answer was lost")
        return answer


def an_order() -> Order:
    """Return a task that makes effects."""
    order = read_order(a_task(task="mutter"), Office().agent, datetime(2026, 1, 1, 12, tzinfo=UTC), remembers=True)
    assert isinstance(order, Order)
    return order


async def test_a_right_whose_answer_was_lost_is_still_ours() -> None:
    """The run that comes after it in this process gets it, once; nobody else does."""
    ledger, order = LosingLedger(), an_order()
    ours, theirs = Effects(ledger, "w1"), Effects(ledger, "w2")
    ledger.loses = True
    with pytest.raises(MemoryUnavailable):
        await ours.claim(order, "mail")
    ledger.loses = False
    assert await theirs.claim(order, "mail") is False
    assert await ours.claim(order, "mail") is True
    assert await ours.claim(order, "mail") is False


async def test_a_run_that_was_replaced_is_told_so() -> None:
    """With the name of the effect that it does not make."""
    ledger = LosingLedger()
    await ledger.begin("t1", 1, "elsewhere", 0, 60_000)
    with pytest.raises(RunReplaced, match="'mail' is not made"):
        await Effects(ledger, "w1").claim(an_order(), "mail")
