"""Remove the tasks of a user: waiting and running ones, reports, dead letters, and entries of the ledger."""

import base64
import binascii
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json

from tasklore.contracts import subjects
from tasklore.contracts.errors import InvalidInput, UserForgotten
from tasklore.contracts.identifiers import checked_name, user_token
from tasklore.contracts.messages import (
    Cancellation,
    CompletionReport,
    DeadLetter,
    ErrorNote,
    MemoryNote,
    TaskAssignment,
)
from tasklore.contracts.moments import spell_moment
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import ReportExpired
from tasklore.memory.ledger.task_index import CancelledRun, TaskIndex
from tasklore.memory.ledger.user_tasks import UserTasks
from tasklore.runtime.messaging.dead_letter import error_note
from tasklore.runtime.messaging.direct import Line, Stored, client_of, open_direct_reads
from tasklore.runtime.messaging.erasure import Eraser
from tasklore.runtime.messaging.jetstream import (
    NOT_FOUND,
    JetStreamRefused,
    ask_jetstream,
    ask_or_none,
)
from tasklore.runtime.messaging.outbox import Outbox

#: Why a task that was open is cancelled; it names no user.
REASON = "its user was forgotten"
#: Worker id in the reports that are made here.
_REPORTER = "forgetting"
#: Seconds for one report to be stored.
_STORED_WITHIN_S = 10.0

#: Streams and subjects of assignments.
_ASSIGNED = (
    (subjects.WAITING, subjects.WAITING_ALL),
    (subjects.TASKS, subjects.TASKS_ALL),
    (subjects.LATER, subjects.SCHEDULES_ALL),
    (subjects.LATER, subjects.DUE_ALL),
)


class _Found(NamedTuple):
    """A message of the user; *task_id* is None when it cannot be read."""

    stream: str
    sequence: int
    task_id: str | None
    body: bytes


class TaskEraser:
    """Erases the tasks of a user; one object for one forgetting.

    Open ones are cancelled first. They and those that had ended keep their state and the moment of the forgetting in
    the ledger for their time, without a word of anybody's: a worker that still runs one stores nothing, and a reader
    learns why nothing is left.
    """

    def __init__(
        self,
        line: Line,
        ledger: Ledger,
        tasks: UserTasks,
        index: TaskIndex,
        outbox: Outbox,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._line = line
        self._eraser = Eraser(line)
        self._ledger = ledger
        self._tasks = tasks
        self._index = index
        self._outbox = outbox
        self._now = now
        #: Ids of ended tasks: the report of one that ended a moment ago may not be stored yet.
        self._ended: set[str] = set()
        self._cancelled: list[CancelledRun] = []

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Cancel open tasks, erase every message, and remove ended tasks from the ledger and the list."""
        messages = [found async for found in self._assignments(user_id)]
        in_ledger = {task_id: body async for task_id, body in self._in_ledger(user_id)}
        assignments = {
            found.task_id: found.body for found in messages if found.task_id is not None
        } | {task_id: body for task_id, body in in_ledger.items() if body is not None}
        cancelled = {
            task_id: erased
            for task_id, body in assignments.items()
            if (erased := await self._cancel(task_id, body)) is not None
        }
        task_ids = in_ledger.keys() | assignments.keys()
        ended = task_ids - cancelled.keys()
        self._ended |= ended
        messages += [found async for found in self._dead(user_id, task_ids)]
        messages += [found async for found in self._reports(user_id, self._ended)]
        by_stream: dict[str, set[int]] = defaultdict(set)
        for found in messages:
            by_stream[found.stream].add(found.sequence)
        erased = sum(cancelled.values()) + await self._purge_output(
            task_ids | self._ended
        )
        for stream, sequences in by_stream.items():
            erased += (await self._eraser.erase_many(stream, sorted(sequences))).erased
        emptied = await self._empty(ended)
        listed = await self._index.forget(user_token(user_id), self._cancelled)
        return {
            "tasks": emptied + len(cancelled),
            "messages": erased,
            "listed tasks": listed,
        }

    async def _empty(self, task_ids: "set[str]") -> int:
        """Take all words out of ended tasks, remove those without a readable report; return how many were known."""

        def make(body: bytes) -> bytes | None:
            try:
                report = CompletionReport.model_validate_json(body)
            except ValidationError:
                return None
            return self._without_words(report).model_dump_json().encode()

        emptied = await self._tasks.replace_reports(task_ids, make)
        return len(emptied) + await self._tasks.remove(task_ids - emptied)

    def _without_words(self, report: CompletionReport) -> CompletionReport:
        """Return how and when *report* said that its task ended, and when its user was forgotten."""
        return CompletionReport(
            task_id=report.task_id,
            generation=report.generation,
            agent_id=report.agent_id,
            supervisor_id=report.supervisor_id,
            task_name=report.task_name,
            status=report.status,
            error=self._note(),
            memory=MemoryNote(outcome="off"),
            attempt=report.attempt,
            worker_id=_REPORTER,
            queued_ms=report.queued_ms,
            run_ms=report.run_ms,
            finished_at=report.finished_at,
        )

    def _note(self) -> ErrorNote:
        moment = spell_moment(self._now())
        return error_note(
            UserForgotten(f"{REASON} at {moment}, and no word of the task is kept")
        )

    async def count(self, user_id: str) -> Mapping[str, int]:
        """Count tasks in the ledger, and messages."""
        in_ledger = {task_id async for task_id, _ in self._in_ledger(user_id)}
        task_ids = in_ledger | self._ended
        reads = (
            self._assignments(user_id),
            self._dead(user_id, task_ids),
            self._reports(user_id, task_ids),
        )
        emitted = sum((await self._output_of(task_ids)).values())
        return {
            "tasks": len(in_ledger),
            "messages": emitted + sum([1 for read in reads async for _ in read]),
            "listed tasks": await self._index.count_of(user_token(user_id)),
        }

    async def _in_ledger(self, user_id: str) -> AsyncIterator[tuple[str, bytes | None]]:
        """Yield the user's task ids with their assignments, None where the ledger has none."""
        async for task in self._tasks.read(
            user_token(user_id), lambda body: names_user(body, user_id)
        ):
            try:
                checked_name(task.task_id, "task_id")
            except InvalidInput:
                continue
            yield task.task_id, task.assignment

    async def _assignments(self, user_id: str) -> AsyncIterator[_Found]:
        for stream, subject in _ASSIGNED:
            async for one in self._read(stream, subject):
                if names_user(one.body, user_id):
                    try:
                        task_id = TaskAssignment.model_validate_json(one.body).named
                    except ValidationError:
                        task_id = None
                    yield _Found(stream, one.sequence, task_id, one.body)

    async def _dead(self, user_id: str, task_ids: "set[str]") -> AsyncIterator[_Found]:
        async for one in self._read(subjects.DEAD, subjects.DEAD_ALL):
            if is_letter_of(one, user_id, task_ids):
                yield _Found(subjects.DEAD, one.sequence, None, b"")

    async def _reports(
        self, user_id: str, task_ids: "set[str]"
    ) -> AsyncIterator[_Found]:
        """Yield reports that name the user or are on *task_ids*: a ledger that was away knows not all of them."""
        async for one in self._read(subjects.REPORTS, subjects.REPORTS_ALL):
            # Neither a supervisor's name nor a task's has a dot in it.
            _, _, *rest = one.subject.split(".")
            if one.headers.get(subjects.USER_HEADER) == user_token(user_id) or (
                rest and rest[0] in task_ids
            ):
                yield _Found(subjects.REPORTS, one.sequence, None, b"")

    async def _output_of(self, task_ids: "set[str]") -> dict[str, int]:
        """Return how many messages of output lie on each subject of *task_ids*."""
        found: dict[str, int] = {}
        seen = 0
        while True:
            question = {"subjects_filter": subjects.OUTPUT_ALL, "offset": seen}
            info = await ask_or_none(
                client_of(self._line), f"STREAM.INFO.{subjects.OUTPUT}", question
            )
            page: dict[str, int] = (info or {"state": {}})["state"].get(
                "subjects"
            ) or {}
            for subject, count in page.items():
                run = subjects.run_of_output(subject)
                if run is not None and run[0] in task_ids:
                    found[subject] = count
            seen += len(page)
            if not page or seen >= (info or {}).get("total", 0):
                return found

    async def _purge_output(self, task_ids: "set[str]") -> int:
        """Remove what tasks emitted, a subject at a time: to overwrite each of thousands of messages takes minutes."""
        emitted = await self._output_of(task_ids)
        for subject in emitted:
            await ask_jetstream(
                client_of(self._line),
                f"STREAM.PURGE.{subjects.OUTPUT}",
                {"filter": subject},
            )
        return sum(emitted.values())

    async def _read(self, stream: str, subject: str) -> AsyncIterator[Stored]:
        async with open_direct_reads(self._line, stream) as reads:
            async for page in reads.pages(subject):
                for one in page:
                    yield one

    async def _cancel(self, task_id: str, body: bytes) -> int | None:
        """End an open task with a report without contents; None when it has ended by itself.

        Return how many reports of earlier generations were erased.
        """
        try:
            assignment = TaskAssignment.model_validate_json(body)
        except ValidationError:
            return None
        ending = await self._end_in_ledger(assignment)
        if ending is None:
            return None
        generation, report = ending
        cancelled = CancelledRun(
            assignment.agent_id,
            task_id,
            generation=generation,
            task=assignment.task.name,
            ended_ms=int(self._now().timestamp() * 1000),
        )
        self._cancelled.append(cancelled)
        await self._tasks.strip(assignment.named, generation, report)
        subject = subjects.report(assignment.supervisor_id, task_id, generation)
        earlier = await self._eraser.erase_by_subject(
            subjects.REPORTS,
            subjects.reports_on(task_id),
            lambda stored: stored.subject != subject,
        )
        return earlier.erased + await self._publish(
            subject, report, subjects.report_message_id(task_id, generation)
        )

    async def _end_in_ledger(
        self, assignment: TaskAssignment
    ) -> tuple[int, bytes] | None:
        """Have the ledger take an empty report; return its generation and body, None when another one was there.

        A report of an earlier forgetting, which was broken off, is returned as it is.
        """
        task_id = assignment.task_id
        found = await self._ledger.cancel(assignment.named, None, REASON)
        if isinstance(found, ReportExpired):
            return None
        if isinstance(found, bytes):
            try:
                read = CompletionReport.model_validate_json(found)
            except ValidationError:
                return None
            return (
                (read.generation, found)
                if (read.worker_id, read.status, read.attempt)
                == (_REPORTER, "cancelled", 0)
                else None
            )
        request = Cancellation(task_id=task_id, reason=REASON)
        await client_of(self._line).publish(
            subjects.cancel(task_id), request.model_dump_json().encode()
        )
        report = CompletionReport(
            task_id=task_id,
            generation=found.generation,
            agent_id=assignment.agent_id,
            supervisor_id=assignment.supervisor_id,
            task_name=assignment.task.name,
            status="cancelled",
            error=self._note(),
            memory=MemoryNote(outcome="off"),
            attempt=0,
            worker_id=_REPORTER,
            finished_at=self._now(),
        )
        body = report.model_dump_json().encode()
        earlier = await self._ledger.finish(
            assignment.named, found.generation, "cancelled", body
        )
        if isinstance(earlier, bytes | ReportExpired):
            return None
        return found.generation, body

    async def _publish(self, subject: str, report: bytes, message_id: str) -> int:
        """Have *report* stored without a header that names the user; return how many reports were erased for that.

        A worker that runs the task may be quicker: it gets the same report from the ledger, and names the user in a
        header. The stream takes one message a subject and each message id once, so a report that lies there after ours
        stays.
        """
        put = self._outbox.put
        await put(
            subject,
            report,
            message_id,
            patience_s=_STORED_WITHIN_S,
            waits_when_full=True,
        )
        stored = await self._last_on(subject)
        if stored is not None and is_plain(stored, report):
            return 0
        erased = stored is not None and await self._eraser.erase(
            subjects.REPORTS, stored["seq"]
        )
        # The id of the erased message is still taken.
        again = f"{message_id}:{_REPORTER}"
        await put(
            subject, report, again, patience_s=_STORED_WITHIN_S, waits_when_full=True
        )
        return int(erased)

    async def _last_on(self, subject: str) -> dict[str, Any] | None:
        """Return the report on *subject* as the leader has it, since another node might not have it yet."""
        request = f"STREAM.MSG.GET.{subjects.REPORTS}"
        try:
            answer = await ask_jetstream(
                client_of(self._line), request, {"last_by_subj": subject}
            )
        except JetStreamRefused as error:
            if error.code == NOT_FOUND:
                return None
            raise
        message: dict[str, Any] = answer["message"]
        return message


def names_user(body: bytes, user_id: str) -> bool:
    """Return whether *body*, JSON or the beginning of it, has *user_id* as its `user_id`."""
    try:
        read = from_json(body)
    except ValueError:
        spellings = {json.dumps(user_id), json.dumps(user_id, ensure_ascii=False)}
        either = b"|".join(re.escape(one.encode()) for one in spellings)
        return re.search(rb'"user_id"\s*:\s*(?:' + either + rb")", body) is not None
    return isinstance(read, dict) and read.get("user_id") == user_id


def is_letter_of(stored: Stored, user_id: str, task_ids: "set[str]") -> bool:
    """Return whether a dead letter is about a task, a turn or facts of the user, whose tasks are *task_ids*."""
    if stored.headers.get(subjects.USER_HEADER) == user_token(user_id):
        return True
    if stored.subject in (
        subjects.dead(subjects.turns(user_id)),
        subjects.dead(subjects.facts(user_id)),
    ):
        return True
    try:
        letter = DeadLetter.model_validate_json(stored.body)
        carried = base64.b64decode(letter.body)
    except (ValidationError, binascii.Error):
        return names_user(stored.body, user_id)
    return letter.task_id in task_ids or names_user(carried, user_id)


def is_plain(stored: Mapping[str, Any], report: bytes) -> bool:
    """Return whether a message of JetStream's API is *report* without a header that names its user."""
    headers = base64.b64decode(stored.get("hdrs", ""))
    return (
        base64.b64decode(stored.get("data", "")) == report
        and subjects.USER_HEADER.encode() not in headers
    )
