"""Children that were published while the ledger was away are in it, and below their parents, once it is back."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from tasklore.contracts.errors import MemoryRefused, MemoryUnavailable
from tasklore.contracts.messages import Cancellation, TaskAssignment, TaskCall
from tasklore.memory.ledger.task_rows import TaskRow
from tasklore.workers.child_tasks import ChildTasks
from tests.fakes.ledger import FakeLedger
from tests.understanding_cases import AT
from tests.virtual_time import in_virtual_time


class UnreliableLedger(FakeLedger):
    """A ledger that can be away, and says what it was told together."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = True
        self.is_silent = False
        #: What it raises for a child.
        self.faults: dict[str, Exception] = {}
        self.tries = 0
        self.told: list[tuple[list[str], list[str], list[str]]] = []

    async def accept_many(
        self,
        assignments: Sequence[tuple[str, int, bytes, str]],
        children: Sequence[tuple[str, str, str]] = (),
        rows: Sequence[TaskRow] = (),
    ) -> None:
        self.tries += 1
        if self.is_away:
            raise MemoryUnavailable("away")
        if self.is_silent:
            await asyncio.Event().wait()
        for task_id, *_ in assignments:
            if task_id in self.faults:
                raise self.faults[task_id]
        self.told.append(
            (
                [f"{task_id}:{number}" for task_id, number, *_ in assignments],
                [" ".join(one) for one in children],
                [row.task_id for row in rows],
            )
        )

    async def find_report(self, task_id: str, generation: int) -> bytes | None:
        return None


class Streams:
    """Stands for link and outbox: everything is stored, nothing is reported."""

    client = None

    async def listen(self, *_: object) -> None: ...

    async def put(self, *_: object, **__: object) -> None: ...


async def tell_nobody(_request: Cancellation) -> None: ...


def child(number: int) -> TaskAssignment:
    return TaskAssignment(
        task_id=f"c{number}",
        agent_id="A",
        supervisor_id="S",
        task=TaskCall(name="look"),
        created_at=AT,
        parent_id="p",
    )


def made_tasks(ledger: UnreliableLedger) -> ChildTasks:
    streams: Any = Streams()
    return ChildTasks(
        link=streams,
        outbox=streams,
        ledger=cast("Any", ledger),
        caller_id="S",
        publish_cancellation=tell_nobody,
    )


def ask_all(tasks: ChildTasks, numbers: Sequence[int]) -> list[asyncio.Task[object]]:
    return [
        asyncio.create_task(tasks.ask(child(number), 1, may_be_known=False))
        for number in numbers
    ]


async def give_up(asking: list[asyncio.Task[object]]) -> None:
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)


@in_virtual_time
async def test_children_that_the_ledger_missed_are_noted_when_it_is_back() -> None:
    """All together, without another one that is called."""
    ledger = UnreliableLedger()
    tasks = made_tasks(ledger)
    asking = ask_all(tasks, (1, 2))
    await asyncio.sleep(10.5)
    assert (ledger.tries > 5, ledger.told) == (True, [])
    ledger.is_away = False
    await asyncio.sleep(1.5)
    assert ledger.told == [
        (["c1:1", "c2:1"], ["p c1 A.look", "p c2 A.look"], ["c1", "c2"])
    ]
    asking += ask_all(tasks, [3])
    await asyncio.sleep(0.1)
    assert ledger.told[1:] == [(["c3:1"], ["p c3 A.look"], ["c3"])]
    await give_up(asking)


@in_virtual_time
async def test_many_children_are_noted_in_parts_each_of_which_counts() -> None:
    """No part is asked for again once it is noted, and none is as large as the backlog of an outage."""
    ledger = UnreliableLedger()
    tasks = made_tasks(ledger)
    asking = ask_all(tasks, range(450))
    await asyncio.sleep(0.5)
    ledger.is_away = False
    ledger.faults["c449"] = MemoryUnavailable("late")
    await asyncio.sleep(1)
    assert [len(ids) for ids, _, _ in ledger.told] == [200, 200]
    ledger.faults.clear()
    await asyncio.sleep(1)
    assert [len(ids) for ids, _, _ in ledger.told] == [200, 200, 50]
    await give_up(asking)


@pytest.mark.parametrize("fault", [MemoryRefused("NOPERM"), TypeError("no entry")])
def test_a_child_that_is_never_taken_holds_up_no_other(fault: Exception) -> None:
    """It is given up, the others are noted, and so are those that come later."""

    @in_virtual_time
    async def notes() -> None:
        ledger = UnreliableLedger()
        ledger.is_away = False
        ledger.faults["c2"] = fault
        tasks = made_tasks(ledger)
        asking = ask_all(tasks, (1, 2, 3))
        await asyncio.sleep(0.5)
        asking += ask_all(tasks, [4])
        await asyncio.sleep(0.5)
        noted = [task_id for ids, _, _ in ledger.told for task_id in ids]
        assert noted == ["c1:1", "c3:1", "c4:1"]
        tries = ledger.tries
        await asyncio.sleep(60)
        assert ledger.tries == tries
        await give_up(asking)

    notes()


@pytest.mark.parametrize("is_away", [False, True])
def test_a_process_that_ends_tries_once_more_and_leaves_no_task(is_away: bool) -> None:
    """Its end takes no longer than one try, whether the ledger is back or not."""

    @in_virtual_time
    async def ends() -> None:
        ledger = UnreliableLedger()
        tasks = made_tasks(ledger)
        asking = ask_all(tasks, (1, 2))
        await asyncio.sleep(0.5)
        ledger.is_away = is_away
        await give_up(asking)
        async with asyncio.timeout(2):
            await tasks.aclose()
        noted = [task_id for ids, _, _ in ledger.told for task_id in ids]
        assert noted == ([] if is_away else ["c1:1", "c2:1"])
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await tasks.aclose()

    ends()


@in_virtual_time
async def test_a_ledger_that_hangs_does_not_hold_up_the_end() -> None:
    """The last try has a deadline of its own."""
    ledger = UnreliableLedger()
    ledger.is_away = False
    ledger.is_silent = True
    tasks = made_tasks(ledger)
    asking = ask_all(tasks, [1])
    await asyncio.sleep(0.5)
    await give_up(asking)
    async with asyncio.timeout(2):
        await tasks.aclose()
    assert (ledger.told, len(asyncio.all_tasks())) == ([], 1)
