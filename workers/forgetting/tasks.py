"""What is removed of a user where their tasks lie: those that wait or run, their reports, dead letters, the ledger."""

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

from contracts import subjects
from contracts.errors import InvalidInput
from contracts.identifiers import checked_name, user_token
from contracts.messages import Cancellation, CompletionReport, DeadLetter, ErrorNote, MemoryNote, TaskAssignment
from memory.ledger.ledger import Ledger
from memory.ledger.user_tasks import UserTasks
from runtime.messaging.direct import Line, Stored, client_of, open_direct_reads
from runtime.messaging.erasure import Eraser
from runtime.messaging.jetstream import NOT_FOUND, JetStreamRefused, ask_jetstream
from runtime.messaging.outbox import Outbox

#: What is said of a task that was open: no word of whose it was.
REASON = "it is no longer wanted"
#: Seconds for one report to be stored.
_STORED_WITHIN_S = 10.0

#: What is asked for the newest report on a subject.
_LAST_REPORT = f"STREAM.MSG.GET.{subjects.REPORTS}"

#: Where assignments lie.
_ASSIGNED = (
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


class TasksOfUser:
    """The tasks of a user, a `workers.forgetting.erasure.ForgetsUser`; one object for one forgetting.

    Open ones are cancelled first, and leave in the ledger that they ended, without a word of anybody's, so that
    whoever still runs one stores nothing. Of the others nothing is kept.
    """

    def __init__(
        self,
        line: Line,
        ledger: Ledger,
        tasks: UserTasks,
        outbox: Outbox,
        *,
        reporter: str = "forgetting",
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._line = line
        self._eraser = Eraser(line)
        self._ledger = ledger
        self._tasks = tasks
        self._outbox = outbox
        self._reporter = reporter
        self._now = now
        #: Tasks that had ended: who ended one a moment ago may not have stored its report yet.
        self._ended: set[str] = set()

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Cancel what is open, erase every message, and remove all from the ledger."""
        messages = [found async for found in self._assigned(user_id)]
        known = {task.task_id: task.assignment async for task in self._known(user_id)}
        assignments = {found.task_id: found.body for found in messages if found.task_id is not None} | {
            task_id: body for task_id, body in known.items() if body is not None
        }
        opened = {
            task_id: gone
            for task_id, body in assignments.items()
            if (gone := await self._cancelled(task_id, body)) is not None
        }
        ended = (known.keys() | assignments.keys()) - opened.keys()
        self._ended |= ended
        messages += [found async for found in self._buried(user_id, known.keys() | assignments.keys())]
        messages += [found async for found in self._reported(user_id, self._ended)]
        erased = sum(opened.values()) + await self._erased(messages)
        removed = await self._tasks.remove(ended)
        return {"tasks": removed + len(opened), "messages": erased}

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Count tasks in the ledger, and messages."""
        known = {task.task_id async for task in self._known(user_id)}
        count = len([found async for found in self._assigned(user_id)])
        count += len([found async for found in self._buried(user_id, known | self._ended)])
        count += len([found async for found in self._reported(user_id, known | self._ended)])
        return {"tasks": len(known), "messages": count}

    async def _known(self, user_id: str) -> AsyncIterator["_Known"]:
        async for task in self._tasks.read(user_token(user_id), lambda body: names_user(body, user_id)):
            if _is_name(task.task_id):
                yield _Known(task.task_id, task.assignment)

    async def _assigned(self, user_id: str) -> AsyncIterator[_Found]:
        """Yield the messages that assign tasks of the user."""
        for stream, subject in _ASSIGNED:
            async with open_direct_reads(self._line, stream) as reads:
                async for page in reads.pages(subject):
                    for one in page:
                        if names_user(one.body, user_id):
                            yield _Found(stream, one.sequence, _task_id_of(one.body), one.body)

    async def _buried(self, user_id: str, task_ids: "set[str]") -> AsyncIterator[_Found]:
        """Yield the dead letters about tasks, turns and facts of the user."""
        async with open_direct_reads(self._line, subjects.DEAD) as reads:
            async for page in reads.pages(subjects.DEAD_ALL):
                for one in page:
                    if is_letter_of(one, user_id, task_ids):
                        yield _Found(subjects.DEAD, one.sequence, None, b"")

    async def _reported(self, user_id: str, task_ids: "set[str]") -> AsyncIterator[_Found]:
        """Yield the reports that name the user or are on *task_ids*; of some the ledger, once away, knows nothing."""
        async with open_direct_reads(self._line, subjects.REPORTS) as reads:
            async for page in reads.pages(subjects.REPORTS_ALL):
                for one in page:
                    if is_report_of(one, user_id, task_ids):
                        yield _Found(subjects.REPORTS, one.sequence, None, b"")

    async def _erased(self, messages: list[_Found]) -> int:
        by_stream: dict[str, set[int]] = defaultdict(set)
        for found in messages:
            by_stream[found.stream].add(found.sequence)
        erased = 0
        for stream, sequences in by_stream.items():
            erased += (await self._eraser.erase_many(stream, sorted(sequences))).erased
        return erased

    async def _cancelled(self, task_id: str, body: bytes) -> int | None:
        """End an open task with a report that tells nothing; None when it has ended by itself.

        Return how many reports of earlier generations were erased.
        """
        try:
            assignment = TaskAssignment.model_validate_json(body)
        except ValidationError:
            return None
        ending = await self._ending_of(assignment)
        if ending is None:
            return None
        generation, report = ending
        await self._tasks.strip(task_id, generation, report)
        subject = subjects.report(assignment.supervisor_id, task_id, generation)
        earlier = await self._eraser.erase_by_subject(
            subjects.REPORTS, subjects.reports_on(task_id), lambda stored: stored.subject != subject
        )
        return earlier.erased + await self._told(subject, report, subjects.report_message_id(task_id, generation))

    async def _ending_of(self, assignment: TaskAssignment) -> tuple[int, bytes] | None:
        """Have the ledger take a report that tells nothing; return its generation and it, None when one was there.

        What a forgetting that was broken off has ended is taken up where it was left.
        """
        task_id = assignment.task_id
        found = await self._ledger.cancel(task_id, None, REASON)
        if isinstance(found, bytes):
            generation = self._own_generation(found)
            return None if generation is None else (generation, found)
        wish = Cancellation(task_id=task_id, reason=REASON)
        await client_of(self._line).publish(subjects.cancel(task_id), wish.model_dump_json().encode())
        report = self._report_on(assignment, found.generation)
        if isinstance(await self._ledger.finish(task_id, found.generation, "cancelled", report), bytes):
            return None
        return found.generation, report

    def _own_generation(self, report: bytes) -> int | None:
        """Return the generation that a report of ours is on; None for one of anybody else."""
        try:
            read = CompletionReport.model_validate_json(report)
        except ValidationError:
            return None
        return read.generation if (read.worker_id, read.attempt) == (self._reporter, 0) else None

    async def _told(self, subject: str, report: bytes, message_id: str) -> int:
        """Have *report* stored, and nothing beside it that tells whose it is; return how many were erased for that.

        Whoever runs the task may be quicker: they get the same report from the ledger, and say in a header whose it
        is. The stream takes one message a subject and their message id once, so that what lies there after us stays.
        """
        await self._put(subject, report, message_id)
        stored = await self._last_on(subject)
        if stored is not None and is_plain(stored, report):
            return 0
        erased = stored is not None and await self._eraser.erase(subjects.REPORTS, stored["seq"])
        # The id of what was erased is still taken.
        await self._put(subject, report, f"{message_id}:{self._reporter}")
        return int(erased)

    async def _last_on(self, subject: str) -> dict[str, Any] | None:
        """Return the report on *subject* as the leader has it, since another node might not have it yet."""
        try:
            answer = await ask_jetstream(client_of(self._line), _LAST_REPORT, {"last_by_subj": subject})
        except JetStreamRefused as error:
            if error.code == NOT_FOUND:
                return None
            raise
        message: dict[str, Any] = answer["message"]
        return message

    async def _put(self, subject: str, report: bytes, message_id: str) -> None:
        await self._outbox.put(subject, report, message_id, patience_s=_STORED_WITHIN_S, waits_when_full=True)

    def _report_on(self, assignment: TaskAssignment, generation: int) -> bytes:
        report = CompletionReport(
            task_id=assignment.task_id,
            generation=generation,
            agent_id=assignment.agent_id,
            supervisor_id=assignment.supervisor_id,
            task_name=assignment.task.name,
            status="cancelled",
            error=ErrorNote(type="TaskCancelled", message=REASON),
            memory=MemoryNote(outcome="off"),
            attempt=0,
            worker_id=self._reporter,
            finished_at=self._now(),
        )
        return report.model_dump_json().encode()


class _Known(NamedTuple):
    task_id: str
    assignment: bytes | None


def names_user(body: bytes, user_id: str) -> bool:
    """Return whether *body*, JSON or the beginning of it, says in its `user_id` that it is of *user_id*."""
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
    if stored.subject in (subjects.dead(subjects.turns(user_id)), subjects.dead(subjects.facts(user_id))):
        return True
    try:
        letter = DeadLetter.model_validate_json(stored.body)
        carried = base64.b64decode(letter.body)
    except (ValidationError, binascii.Error):
        return names_user(stored.body, user_id)
    return letter.task_id in task_ids or names_user(carried, user_id)


def is_plain(stored: Mapping[str, Any], report: bytes) -> bool:
    """Return whether a message, as JetStream's API tells it, has *report* and no word in a header on whose it is."""
    headers = base64.b64decode(stored.get("hdrs", ""))
    return base64.b64decode(stored.get("data", "")) == report and subjects.USER_HEADER.encode() not in headers


def is_report_of(stored: Stored, user_id: str, task_ids: "set[str]") -> bool:
    """Return whether a report says in a header that it is the user's, or is on one of *task_ids*."""
    if stored.headers.get(subjects.USER_HEADER) == user_token(user_id):
        return True
    # Neither a supervisor's name nor a task's has a dot in it.
    _, _, *rest = stored.subject.split(".")
    return bool(rest) and rest[0] in task_ids


def _task_id_of(body: bytes) -> str | None:
    try:
        return TaskAssignment.model_validate_json(body).task_id
    except ValidationError:
        return None


def _is_name(task_id: str) -> bool:
    try:
        checked_name(task_id, "task_id")
    except InvalidInput:
        return False
    return True
