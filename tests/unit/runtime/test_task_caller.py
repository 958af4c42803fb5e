"""Calling a task: when its report is heard, how long it is waited for, and how often it is sent."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from tasklore.contracts import subjects
from tasklore.contracts.errors import NotAccepted
from tasklore.contracts.messages import CompletionReport, TaskAssignment, TaskCall
from tasklore.runtime.task_caller import (
    UNSERVED_S,
    TaskCaller,
    find_deadline,
    first_letter,
)
from tests.unit.supervisor.reports import report_on
from tests.virtual_time import in_virtual_time

TASK = TaskAssignment(
    task_id="t1",
    agent_id="A",
    supervisor_id="S",
    task=TaskCall(name="look"),
    created_at=datetime(2026, 5, 1, tzinfo=UTC),
)
REPORT = report_on(TASK)


@dataclass
class Worker:
    """A worker that reports a task *after_s* seconds behind its *needed*th letter; None never."""

    after_s: float | None = 0.0
    needed: int = 1
    refusals: int = 0
    sent_at: list[float] = field(default_factory=list)
    looks: int = 0
    listening: int = 0
    _reported: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, _assignment: TaskAssignment) -> None:
        assert self.listening, "its report may come before the letter is confirmed"
        loop = asyncio.get_running_loop()
        self.sent_at.append(loop.time())
        if len(self.sent_at) <= self.refusals:
            raise NotAccepted("away", 1.0)
        if self.after_s is not None and len(self.sent_at) == self.needed:
            loop.call_later(self.after_s, self._reported.set)
        await asyncio.sleep(0.5)

    @contextmanager
    def expect(
        self, _assignment: TaskAssignment, *, is_new: bool = False
    ) -> Iterator["Worker"]:
        self.looks += not is_new
        self.listening += 1
        try:
            yield self
        finally:
            self.listening -= 1

    async def report(self, within_s: float) -> CompletionReport | None:
        try:
            async with asyncio.timeout(within_s):
                await self._reported.wait()
        except TimeoutError:
            return None
        return REPORT

    def caller(self) -> TaskCaller:
        return TaskCaller(send=self.send, reports=self)


def now() -> float:
    return asyncio.get_running_loop().time()


@in_virtual_time
async def test_a_report_that_is_quicker_than_the_word_on_its_letter_is_heard() -> None:
    worker = Worker()
    told: list[TaskAssignment] = []
    found = await worker.caller().call(
        TASK, within_s=1.0, is_new=True, sent=told.append
    )
    assert found == REPORT
    assert (now(), told, worker.looks, worker.listening) == (0.5, [TASK], 0, 0)


@in_virtual_time
async def test_the_time_to_wait_has_that_of_sending_in_it() -> None:
    worker = Worker(after_s=None)
    assert await worker.caller().call(TASK, within_s=3.0) is None
    assert (now(), worker.listening) == (3.0, 0)


@in_virtual_time
async def test_who_does_not_wait_hears_nothing_of_a_quick_worker() -> None:
    """Else the answer would depend on the load of the machine; what may have ended before is told."""
    caller = Worker().caller()
    assert await caller.call(TASK, within_s=0.0, is_new=True) is None
    assert await Worker(after_s=0.0).caller().call(TASK, within_s=0.0) == REPORT


@in_virtual_time
async def test_what_was_sent_before_is_waited_for_alone() -> None:
    worker = Worker(after_s=None)
    assert await worker.caller().call(TASK, within_s=3.0, is_sent=True) is None
    assert (worker.sent_at, worker.looks) == ([], 1)


@in_virtual_time
async def test_a_letter_that_is_not_known_to_be_stored_is_told_and_nothing_waits() -> (
    None
):
    worker = Worker(refusals=1)
    with pytest.raises(NotAccepted):
        await worker.caller().call(TASK, within_s=3.0)
    assert (worker.sent_at, worker.listening) == ([0.0], 0)


@in_virtual_time
async def test_a_process_that_leaves_waits_no_more() -> None:
    worker = Worker(after_s=None)
    leaving = asyncio.Event()
    asyncio.get_running_loop().call_later(2.0, leaving.set)
    assert await worker.caller().call(TASK, within_s=60.0, leaving=leaving) is None
    assert now() == 2.0
    quick = Worker()
    assert await quick.caller().call(TASK, within_s=60.0, leaving=leaving) == REPORT


@pytest.mark.parametrize(
    ("alive", "waited_s"),
    [((True,), 20.0), ((False, True), 20.0), ((False, False), 0.5 + UNSERVED_S)],
    ids=["there", "started meanwhile", "nowhere"],
)
def test_a_task_that_no_worker_serves_is_waited_for_as_long_as_one_takes_to_start(
    alive: tuple[bool, ...], waited_s: float
) -> None:
    @in_virtual_time
    async def wait() -> None:
        answers = list(alive)

        async def has_worker(agent_id: str) -> bool:
            assert agent_id == "A"
            return answers.pop(0)

        caller = Worker(after_s=None).caller()
        assert await caller.call(TASK, within_s=20.0, has_worker=has_worker) is None
        assert (now(), answers) == (waited_s, [])

    wait()


@in_virtual_time
async def test_a_task_that_nobody_else_knows_of_is_stored_again() -> None:
    """Later each time, and for as long as its stream swallows the repeat: the first was lost with it."""
    worker = Worker(after_s=3.0, needed=2)
    caller = worker.caller()
    assert await caller.call(TASK, within_s=600.0, is_stored_again=True) == REPORT
    assert worker.sent_at == [0.0, 10.5]
    lost = Worker(after_s=None)
    began = now()
    assert await lost.caller().call(TASK, within_s=600.0, is_stored_again=True) is None
    after = [at - began for at in lost.sent_at]
    pauses = [then - before for before, then in pairwise(after)]
    assert pauses == [10.5, 20.5, 40.5, 80.5, 90.5]
    assert (max(after) < 300, now() - began) == (True, 600.0)


@in_virtual_time
async def test_a_letter_is_sent_until_it_is_stored_or_no_time_is_left() -> None:
    worker = Worker(refusals=3)
    gives_up_at = 60.0
    why: list[NotAccepted] = []

    def left_s() -> float:
        return gives_up_at - now()

    with worker.expect(TASK):
        caller = worker.caller()
        assert await caller.send_until_stored(TASK, left_s=left_s, refused=why.append)
        assert (len(why), worker.sent_at) == (3, [0.0, 1.0, 2.0, 3.0])
        gives_up_at = now()
        assert not await caller.send_until_stored(
            TASK, left_s=left_s, refused=why.append
        )
    assert len(worker.sent_at) == 4


def test_a_letter_names_task_generation_and_when_it_may_begin() -> None:
    letter = first_letter(TASK, 3)
    assert (letter.subject, letter.message_id) == (
        subjects.task("A", "look"),
        subjects.task_message_id("t1", 3),
    )
    assert letter.headers == {
        subjects.GENERATION_HEADER: "3",
        subjects.ATTEMPT_HEADER: "1",
    }
    later = TASK.model_copy(update={"not_before": TASK.created_at + timedelta(hours=1)})
    due = first_letter(later)
    assert due.subject == subjects.schedule("t1", 1)
    assert TaskAssignment.model_validate_json(due.body) == later
    assert "2026-05-01T01:00:00Z" in str(due.headers)
    # What is sent again begins at once.
    assert first_letter(later, 2).subject == letter.subject


@pytest.mark.parametrize(
    ("own_s", "within_s", "after_s", "is_own"),
    [
        (None, None, None, None),
        (30.0, None, 30, True),
        (30.0, 5.0, 5, False),
        (None, 5.0, 5, False),
    ],
)
def test_a_deadline_is_the_senders_or_else_the_tasks(
    own_s: float | None,
    within_s: float | None,
    after_s: float | None,
    is_own: bool | None,
) -> None:
    found = find_deadline(TASK.created_at, own_s, within_s)
    seconds = None if found.at is None else (found.at - TASK.created_at).total_seconds()
    assert (seconds, found.is_own) == (after_s, is_own)
