"""The one way to have a task done: its report is expected, its letter stored, and its report awaited.

Words, operations, programs, phases and tasks that call others all go it. What differs is handed in: how a letter is
stored (through admission and the ledger, or past both), where reports come from, and how long one is waited for.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from tasklore.contracts import subjects
from tasklore.contracts.errors import NotAccepted
from tasklore.contracts.messages import CompletionReport, TaskAssignment

#: Seconds for which a task is waited for although no worker is alive: one that is started anew is there again by then.
UNSERVED_S = 2.0
#: Least seconds before a task that was not accepted is sent again.
_AGAIN_S = 0.1
#: Seconds after which a task without a report is stored again, in case its stream was lost before a worker had it;
#: doubled each time. A stream that has it swallows the repeat, for the five minutes that it knows an id.
_STORED_AGAIN_S = 10.0
_KNOWN_S = 240.0

#: How a letter is stored; returns when it durably is, and raises NotAccepted where that is not known.
SendTask = Callable[[TaskAssignment], Awaitable[None]]
#: Whether a worker of an agent is alive; True where that is not known.
HasWorker = Callable[[str], Awaitable[bool]]


class ExpectedReport(Protocol):
    """A report that is heard of from when it is expected on, whether or not anybody waits for it yet."""

    async def report(self, within_s: float) -> CompletionReport | None:
        """Return it, None when there is none within *within_s* seconds."""


class ReportSource(Protocol):
    """What brings reports: those of a supervisor or of a program, or what a worker hears of the tasks that it calls."""

    def expect(
        self, assignment: TaskAssignment, *, is_new: bool = False
    ) -> AbstractContextManager[ExpectedReport]:
        """Listen for the report of *assignment* within the block; *is_new* when there can be none yet."""


class TaskLetter(NamedTuple):
    """The message that begins a generation of a task; its stream swallows it when it comes again."""

    subject: str
    body: bytes
    message_id: str
    headers: dict[str, str]


def first_letter(assignment: TaskAssignment, generation: int = 1) -> TaskLetter:
    """Return the letter of the first run of a *generation*: to TASKS, of the first also to LATER until `not_before`."""
    agent_id = assignment.agent_id
    name = assignment.task.name
    subject = subjects.task(agent_id, name)
    headers = {
        subjects.GENERATION_HEADER: str(generation),
        subjects.ATTEMPT_HEADER: "1",
    }
    if generation == 1 and assignment.not_before is not None:
        subject = subjects.schedule(assignment.task_id, 1)
        headers |= subjects.schedule_headers(
            assignment.waits_from.astimezone(UTC), subjects.due(agent_id, name)
        )
    return TaskLetter(
        subject,
        assignment.model_dump_json(exclude_none=True).encode(),
        subjects.task_message_id(assignment.task_id, generation),
        headers,
    )


class TaskDeadline(NamedTuple):
    """When the time of a task is over, and whether that is as the task declares it; None where it has no end."""

    at: datetime | None
    is_own: bool | None


def find_deadline(
    starts_at: datetime, own_s: float | None, within_s: float | None = None
) -> TaskDeadline:
    """Return the deadline of a task that may begin at *starts_at*.

    It is *within_s* seconds behind that where its sender says so, else as many as the task declares as its *own_s*.
    """
    seconds = within_s or own_s
    if not seconds:
        return TaskDeadline(None, None)
    return TaskDeadline(starts_at + timedelta(seconds=seconds), not within_s)


def ignore_task(_assignment: TaskAssignment) -> None:
    """Do nothing, where no caller follows a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCaller:
    """Sends tasks by *send* and awaits what *reports* brings of them."""

    send: SendTask
    reports: ReportSource

    async def call(
        self,
        assignment: TaskAssignment,
        *,
        within_s: float,
        is_new: bool = False,
        is_sent: bool = False,
        sent: Callable[[TaskAssignment], None] = ignore_task,
        has_worker: HasWorker | None = None,
        is_stored_again: bool = False,
        leaving: asyncio.Event | None = None,
    ) -> CompletionReport | None:
        """Return the report of *assignment*, None when there is none within *within_s* seconds.

        Args:
            assignment: The task. It is heard of from before it is sent: a quick one is done by the time it is stored.
            within_s: The seconds, those included in which it is sent.
            is_new: There can be no report of it yet, so that none is looked for.
            is_sent: It was sent before, and is only waited for.
            sent: Hears of it once it is stored.
            has_worker: Where this says that no worker of the agent is alive, a report is waited for `UNSERVED_S` alone.
            is_stored_again: Its stream may be lost and nobody else know of it: it is stored again as time goes.
            leaving: When this process leaves, nothing is waited for any more.

        Raises:
            NotAccepted: it is not known to be stored; call again with the same task id.
            MessageTooLarge: its parameters do not fit into a message; nothing was started.
        """
        loop = asyncio.get_running_loop()
        gives_up_at = loop.time() + within_s
        with self.reports.expect(assignment, is_new=is_new) as expected:
            if not is_sent:
                await self.send(assignment)
            sent(assignment)
            if (
                has_worker is not None
                and within_s > UNSERVED_S
                and not await has_worker(assignment.agent_id)
            ):
                report = await expected.report(UNSERVED_S)
                if report is not None or not await has_worker(assignment.agent_id):
                    return report
            if is_stored_again:
                report = await self._store_again(assignment, expected, gives_up_at)
                if report is not None:
                    return report
            left_s = max(0.0, gives_up_at - loop.time())
            if is_new and not left_s:
                # Who does not wait gets the same answer however quick its worker is.
                return None
            return await _unless(leaving, expected.report(left_s))

    async def send_until_stored(
        self,
        assignment: TaskAssignment,
        *,
        left_s: Callable[[], float],
        refused: Callable[[NotAccepted], None],
    ) -> bool:
        """Return whether *assignment* is stored before no time is *left_s*; *refused* hears why it was not yet.

        Raises:
            MessageTooLarge: its parameters do not fit into a message; nothing was started.
        """
        while left_s() > 0:
            try:
                await self.send(assignment)
            except NotAccepted as error:
                refused(error)
                await asyncio.sleep(max(_AGAIN_S, error.retry_after_s))
            else:
                return True
        return False

    async def _store_again(
        self,
        assignment: TaskAssignment,
        expected: ExpectedReport,
        gives_up_at: float,
    ) -> CompletionReport | None:
        """Return the report, None when there is none while its stream may get it once more."""
        loop = asyncio.get_running_loop()
        pause_s = _STORED_AGAIN_S
        left_s = _KNOWN_S
        while left_s > 0 and loop.time() + pause_s < gives_up_at:
            report = await expected.report(pause_s)
            if report is not None:
                return report
            with contextlib.suppress(NotAccepted):
                await self.send(assignment)
            left_s -= pause_s
            pause_s = min(2 * pause_s, left_s)
        return None


async def _unless(
    leaving: asyncio.Event | None,
    waiting: Awaitable[CompletionReport | None],
) -> CompletionReport | None:
    """Return the report that is *waiting*, None once the process is *leaving*, if that is sooner."""
    if leaving is None:
        return await waiting
    reported = asyncio.ensure_future(waiting)
    left = asyncio.ensure_future(leaving.wait())
    try:
        await asyncio.wait({reported, left}, return_when=asyncio.FIRST_COMPLETED)
        return reported.result() if reported.done() else None
    finally:
        reported.cancel()
        left.cancel()
        await asyncio.gather(reported, left, return_exceptions=True)
