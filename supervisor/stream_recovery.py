"""Recovery: when the stream of tasks was lost, the unfinished tasks of the ledger are put into the new one.

An operator may delete TASKS, or NATS may lose its data. Accepted tasks are then in the ledger alone. A stream that is
made anew has another time of creation; Redis keeps the time of the one that has everything, and when the two differ,
each generation with an assignment and without a report is published again under its first message id. Doing so twice,
in several supervisors at once, or for a task that is there after all does no harm: the stream swallows the id, and
past its window the ledger fences the second run. With LATER is lost what waits there for its next run: that goes into
TASKS, where it waits too, since the ledger begins no run before it is due.

A lost REPORTS is filled again with what ended in the hour for which it keeps a report: programs without access to the
ledger may not have read theirs. The same is done when TASKS is lost: a worker that had put a report into the ledger and
died before publishing it was to be offered the task again.

A task that no ledger has cannot come back: one that another program published, until a run of it ends without a report,
and one whose supervisor died between storing and noting it. Its sender has to send the first again; the other was never
confirmed. One Redis belongs to one NATS: two that share a ledger would
be given each other's tasks whenever a supervisor starts.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Mapping

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import ConfigurationError, MessageTooLarge, TaskloreError
from tasklore.contracts.messages import CompletionReport, TaskAssignment
from tasklore.contracts.traces import spelled_context
from tasklore.memory.ledger.open_tasks import OpenTask, OpenTasks
from tasklore.memory.ledger.stream_epochs import StreamEpochs
from tasklore.runtime.messaging.jetstream import ask_or_none
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.streams import REPORTS_KEPT_S
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.task_caller import TaskLetter, first_letter

log = structlog.get_logger(__name__)

#: The streams in which tasks lie, those that may run and those whose next run is not due yet; and their reports.
WATCHED = (subjects.TASKS, subjects.WAITING, subjects.LATER, subjects.REPORTS)
#: Seconds between looks without a notice, which can be lost with a connection.
LOOK_S = 30.0
#: Seconds before a look that failed is repeated: at first, and at most.
_PAUSE_S = 0.25
_PAUSE_CAP_S = 15.0
#: Seconds for one task to be stored: a stream that was just made may have no leader yet, and one that is gone again is
#: only made by the next look.
_PATIENCE_S = 3.0


class Recovery:
    """Notices that a stream of tasks was replaced, and brings back its tasks.

    Args:
        client: Where JetStream is asked.
        outbox: Where tasks are published.
        unfinished: The open tasks of the ledger.
        incarnations: The epochs of the streams, as all supervisors know them.
        tell_ledger: Adds pending assignments to the ledger, and returns how many there were.
        heal: Creates missing streams, where that is allowed.
        meter: Counts losses.
    """

    def __init__(
        self,
        client: Client,
        outbox: Outbox,
        unfinished: OpenTasks,
        incarnations: StreamEpochs,
        *,
        tell_ledger: Callable[[], Awaitable[int]],
        heal: Callable[[], Awaitable[object]],
        meter: Metrics,
    ) -> None:
        self._client = client
        self._outbox = outbox
        self._unfinished = unfinished
        self._incarnations = incarnations
        self._tell_ledger = tell_ledger
        self._heal = heal
        self._meter = meter
        self._wake = asyncio.Event()
        #: Tasks that were published again by looks since the last one that was completed.
        self._republished = 0
        #: The incarnations that are known here to have everything.
        self._complete: dict[str, str] = {}

    def look_soon(self) -> None:
        """Look now: something happened to the connection or the stream."""
        self._wake.set()

    async def listen(self) -> None:
        """Look when the server says that a stream of tasks was created, changed or deleted, or REPORTS deleted."""

        async def hear(_notice: Msg) -> None:
            self.look_soon()

        for stream in (subjects.TASKS, subjects.WAITING, subjects.LATER):
            await self._client.subscribe(subjects.stream_notices(stream), cb=hear)
        await self._client.subscribe(subjects.stream_deleted(subjects.REPORTS), cb=hear)

    async def run(self) -> None:
        """Look at the start, on `look_soon` and every half minute, until cancelled; a failed look is repeated."""
        failures = 0
        while True:
            self._wake.clear()
            pause_s = LOOK_S
            try:
                if self._client.is_connected:
                    await self.look()
                    await self._unfinished.close_ended()
                failures = 0
            except TaskloreError as error:
                pause_s = random.uniform(0.5, 1.0) * min(  # noqa: S311 - jitter
                    _PAUSE_CAP_S, _PAUSE_S * 2**failures
                )
                failures = min(failures + 1, 10)
                log.warning(
                    "recovery_failed", error=str(error), pause_s=round(pause_s, 2)
                )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()

    async def look(self) -> int:
        """Return how many tasks were published again; 0 when the streams are those that have everything.

        Those of looks that were not completed count once, together with those of the one that is.

        Raises:
            TaskloreError: a server did not answer or did not take everything; look again.
        """
        created = await self._read_created()
        late = await self._tell_ledger()
        if created == self._complete:
            return 0
        known = {stream: await self._incarnations.known(stream) for stream in WATCHED}
        lost = [stream for stream in WATCHED if known[stream] != created[stream]]
        # The process that noted these epochs did not have the assignments that were added only now.
        queues = {subjects.TASKS, subjects.WAITING}
        if late or {*queues, subjects.LATER} & set(lost):
            await self._republish(waiting_only=not queues & set(lost) and not late)
        if {subjects.TASKS, subjects.REPORTS} & set(lost):
            await self._publish_reports()
        # Not before everything is stored; and what was read at first, since others may have been made meanwhile.
        for stream in lost:
            await self._incarnations.note(stream, created[stream])
        self._complete = created
        number = self._republished
        self._republished = 0
        self._log(lost, known, number)
        return number

    def _log(
        self, lost: list[str], known: Mapping[str, str | None], number: int
    ) -> None:
        replaced = [stream for stream in lost if known[stream] is not None]
        for _ in replaced:
            self._meter.count_stream_lost()
        if replaced:
            log.warning(
                "stream_lost", streams=replaced, before=dict(known), republished=number
            )
        elif number:
            # Streams are first seen while tasks come: these were under way.
            tell = log.info if lost else log.warning
            tell("tasks_republished", streams=lost, republished=number)
        elif lost:
            log.info("streams_first_seen", streams=lost)

    async def _read_created(self) -> dict[str, str]:
        """Return when each stream was created; missing ones are created."""
        found = await self._ask()
        missing = [stream for stream in WATCHED if stream not in found]
        if missing:
            log.warning("stream_missing", streams=missing)
            await self._heal()
            found = await self._ask()
        for stream in WATCHED:
            if stream not in found:
                msg = f"there is no stream {stream}, and TASKLORE_PROVISION=never leaves it to others; create it"
                raise ConfigurationError(msg)
        return found

    async def _ask(self) -> dict[str, str]:
        infos = {
            stream: await ask_or_none(self._client, f"STREAM.INFO.{stream}")
            for stream in WATCHED
        }
        return {
            stream: str(info["created"])
            for stream, info in infos.items()
            if info is not None
        }

    async def _republish(self, *, waiting_only: bool) -> None:
        # What the look before stored and did not complete is swallowed now, and was counted then.
        is_first = not self._republished
        async for batch in self._unfinished.read():
            tasks = [task for task in batch if task.is_waiting or not waiting_only]
            letters = [
                letter for task in tasks if (letter := letter_of(task)) is not None
            ]
            outcomes = await asyncio.gather(
                *(self._put(letter) for letter in letters), return_exceptions=True
            )
            stored = sum(
                is_first or is_new for is_new in outcomes if isinstance(is_new, bool)
            )
            self._meter.count_tasks_republished(stored)
            self._republished += stored
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome

    async def _publish_reports(self) -> None:
        async for entries in self._unfinished.read_recent(REPORTS_KEPT_S):
            reports = [
                (known.report, entry.user)
                for entry in entries
                for known in entry.generations.values()
            ]
            letters = [
                letter
                for report, user in reports
                if (letter := _letter_with(report, user)) is not None
            ]
            await asyncio.gather(*(self._put(letter) for letter in letters))

    async def _put(self, letter: TaskLetter) -> bool | None:
        """Return whether *letter* was not there already, None where it cannot be published at all."""
        try:
            return await self._outbox.put(
                letter.subject,
                letter.body,
                letter.message_id,
                headers=letter.headers,
                patience_s=_PATIENCE_S,
                waits_when_full=True,
            )
        except MessageTooLarge as error:
            # From a program with other limits: it must not keep all the others from coming back.
            log.warning(
                "not_republished", message_id=letter.message_id, error=str(error)
            )
            return None


def _letter_with(body: bytes | None, user: str) -> TaskLetter | None:
    """Return the message that publishes the report in *body* again; None for none, and for one past its hour."""
    try:
        report = CompletionReport.model_validate_json(body or b"")
    except ValidationError:
        return None
    if time.time() - report.finished_at.timestamp() > REPORTS_KEPT_S:
        return None
    return TaskLetter(
        subjects.report(report.supervisor_id, report.task_id, report.generation),
        body or b"",
        subjects.report_message_id(report.task_id, report.generation),
        {subjects.USER_HEADER: user} if user else {},
    )


def letter_of(task: OpenTask) -> TaskLetter | None:
    """Return the message that publishes *task* again, or None when the ledger's entry cannot be read."""
    try:
        assignment = TaskAssignment.model_validate_json(task.assignment)
    except ValidationError as error:
        log.warning(
            "unreadable_assignment", task_id=task.task_id, problems=error.error_count()
        )
        return None
    if assignment.task_id != task.task_id:
        # Another program wrote it: a foreign id is no part of a header.
        log.warning("misplaced_assignment", task_id=task.task_id)
        return None
    message_id = subjects.task_message_id(task.task_id, task.generation)
    attempt = max(1, task.attempts)
    if task.is_waiting:
        # Its first message may have been in this very stream, which would swallow the id although it is acknowledged.
        attempt = task.attempts + 1
        message_id = subjects.retry_message_id(task.task_id, task.generation, attempt)
    context = spelled_context(task.trace)
    traced = context.headers if context is not None else {}
    if task.generation == 1 and not task.attempts and assignment.not_before is not None:
        letter = first_letter(assignment)
        return TaskLetter(
            letter.subject, task.assignment, message_id, letter.headers | traced
        )
    return TaskLetter(
        subjects.task(assignment.agent_id, assignment.task.name),
        task.assignment,
        message_id,
        {
            subjects.GENERATION_HEADER: str(task.generation),
            subjects.ATTEMPT_HEADER: str(attempt),
            **traced,
        },
    )
