"""The ledger: what became of every task, so that each generation has exactly one terminal report.

A hash per task; for generation 1 its fields are `state:1` (accepted, running, waiting or the report's status),
`attempts:1` (runs begun), `worker:1`, `started_at:1` (ms since 1970, of the latest run), `leased_until:1` and
`due_at:1` (ms by the server's clock), `crashes:1` and `crashes_alone:1` (runs that ended without a word, and those of
them beside which nothing ran since its last new step), `lost:1` (the worker of the last of them, and when its lease
ended), `furthest:1` (its latest step in the journal), `alone:1`,
`excused:1` (runs that are not held against the task), `token:1` (names the latest run), `cancel:1` (why it is to be
cancelled), `assignment:1` and `trace:1` (until it ends, for good when it failed), `waits_for:1` (why its last run let
it wait, a `RunWait`), `report:1` (set once, and once more where REPORTS holds another) and `refused:1` (reports that
came after it).
At its end what only a run needs goes: an entry then has state, report and `user`, and what happened to it. That is
layout 1. In layout 2 (see `tasklore.memory.ledger.layouts`) there is no `report:1`, but `finished_at:1` (ms by the
server's clock) and, of what did not complete, `error:1`: the fence, which outlives the report that lies beside it. A
request to cancel may lie in the pointer to the entry as well, where it is read without that.
Generations do not disturb one another: a redelivery of generation 1 behind a redrive still gets or repeats the report
of generation 1, as that one is owed too. Of the whole task are `user`, the token of whose it was, once it has ended,
and `once.{name}`, which call made its effect of that name.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from pydantic import ValidationError
from redis.asyncio import Redis

from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.errors import MemoryRefused, MemoryUnavailable
from tasklore.contracts.identifiers import TaskName
from tasklore.contracts.messages import CompletionReport
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch, as_mapping
from tasklore.memory.ledger import scripts
from tasklore.memory.ledger.expired import expired_report
from tasklore.memory.ledger.late_rows import LateRows
from tasklore.memory.ledger.layouts import Entries, EntryKeys, read_pointer
from tasklore.memory.ledger.runs import (
    Beginning,
    CancelOutcome,
    CancelRequest,
    Ended,
    Finish,
    Held,
    LostWorker,
    NotDue,
    PastRuns,
    ReportExpired,
    RunPermission,
    Suspect,
    Woken,
)
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.task_rows import OPEN_STATES, TaskRow, tenant_in

#: Children of one task that are listed: as many as one `map` calls.
MOST_CHILDREN = 10_000
#: Digits of no number of ours, times in ms included.
_LONGEST_NUMBER = 19
#: How a script begins what it says about an end whose report is kept no more, see report.lua; and its words in all.
_EXPIRED = 6
_EXPIRED_WORDS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What the ledger knows of one generation; `report` and `assignment` are JSON bytes, None while there is none.

    `cancel_request` is None without one. `expired` is how it ended where its report is kept no more; `report` says
    that, then. `last_wait` is what its last run waited for, as `waits_for` while it waits.
    """

    state: str
    attempts: int
    worker_id: str | None
    started_at_ms: int | None
    assignment: bytes | None
    report: bytes | None
    refused: int
    crashes: int = 0
    cancel_request: CancelRequest | None = None
    waits_for: RunWait | None = None
    last_wait: bytes = b""
    lost: LostWorker | None = None
    expired: ReportExpired | None = None


class RunGlance(NamedTuple):
    """How far a generation of a task is: its *state*, `cancelling` where an open one is to be cancelled.

    *due_ms* is when its first run may begin, in ms since 1970, where it has to wait for that.
    """

    state: str
    attempts: int
    waits_for: RunWait | None
    due_ms: int | None = None


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Every known generation of one task, by number; *user* is the token of its user, "" for none."""

    task_id: str
    generations: dict[int, Generation]
    user: str = ""

    @property
    def newest(self) -> int:
        """The highest generation."""
        return max(self.generations)


class Ledger:
    """Keeps the terminal report of each (task, generation): whichever attempt finishes first wins.

    Args:
        keep: How long a task is known after its last event.
        reports_keep: How long its report is, in layout 2; that of a child is as long as *keep*, as its parent may
            read it in a later run.
        deadline_s: Seconds for one call; then MemoryUnavailable.
        breaker: When given, a frozen server costs one deadline a rest instead of one a task.
    """

    def __init__(
        self,
        client: Redis,
        *,
        keep: timedelta = timedelta(days=7),
        reports_keep: timedelta = timedelta(days=1),
        deadline_s: float = 1.0,
        breaker: Breaker | None = None,
    ) -> None:
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._reports_ms = min(keep, reports_keep) // timedelta(milliseconds=1)
        self._batch = CommandBatch(client, deadline_s, breaker)
        self._index = TaskIndex(
            client, keep=keep, deadline_s=deadline_s, breaker=breaker
        )
        self._late = LateRows(self._index)
        self._entries = Entries(client, self._batch)

    async def _run(
        self,
        commands: Sequence[Command],
        *,
        opened: Sequence[TaskRow] = (),
        ended: Sequence[TaskRow] = (),
        is_settled: bool = True,
    ) -> list[Any]:
        """Return the replies to *commands*, before which *opened* runs are listed, and behind which *ended* ones are.

        So whatever is open by the ledger is so in the list, wherever this breaks off. Where the ledger may refuse an
        end it is not *is_settled*, and leaves its run among the open ones.
        """
        before = self._index.listing(opened)
        behind = self._index.listing(ended, is_settled=is_settled)
        try:
            found = await self._batch.run([*before, *commands, *behind])
        except MemoryUnavailable:
            self._index.note_failure()
            raise
        return found[len(before) : len(before) + len(commands)]

    async def tenant_of(self, entry: LedgerEntry) -> str | None:
        """Return the tenant of a task: by its assignment while that is kept, then by the list of tasks.

        None: it has none, or that is not known any more.

        Raises:
            MemoryUnavailable: the list did not answer in time.
        """
        kept = [one for one in entry.generations.values() if one.assignment]
        for one in kept:
            if (tenant := tenant_in(one.assignment or b"")) is not None:
                return tenant
        newest = entry.generations[entry.newest]
        if kept or newest.report is None:
            return None
        agent_id = CompletionReport.model_validate_json(newest.report).agent_id
        row = await self._index.read(agent_id, entry.task_id)
        return None if row is None else row.tenant

    async def begin(
        self,
        task_id: str,
        generation: int,
        worker_id: str,
        now_ms: int,
        lease_ms: int,
        *,
        before: int = 0,
        alone: bool = False,
        most_crashes: int = 0,
        token: str = "",
        make_row: Callable[[], TaskRow] | None = None,
    ) -> Beginning:
        """Return which run this is, why there is none, or the stored report, to be published again.

        *before* is how many runs others have counted, when that is more than is known here. A run is leased for
        *lease_ms* milliseconds of the server's clock; `hold` renews it. Every *token* that may run is a run, however
        often it asks: one that ended without a word counts, and after more than *most_crashes* of them there is no run
        unless it is *alone*: that promises that nothing else runs in this process until the end. A task that was not
        known before, or whose last run ended without a word, is listed as *make_row* says, if that is given.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        entry = await self._entries.make(task_id)
        leased = (
            now_ms,
            self._keep_ms,
            lease_ms,
            before,
            int(alone),
            token,
            most_crashes,
        )
        command = entry.call(scripts.BEGIN, generation, worker_id, *leased)
        found = (await self._batch.run([command]))[0]
        if isinstance(found, bytes):
            return found
        beginning = _beginning(found)
        if make_row is not None and isinstance(beginning, RunPermission):
            is_first = bool(found[-1])
            if is_first or beginning.is_news:
                self._late.add(task_id, make_row)
        return beginning

    async def hold(
        self, runs: Sequence[tuple[str, int]], worker_id: str, lease_ms: int
    ) -> list[tuple[str, int]]:
        """Lease *runs*, each a task id and its generation, for *lease_ms* from now.

        A run that was released, or parked, is not leased again. Returns those of them that another worker runs
        meanwhile: theirs here are of no use to anybody.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        entries = await self._entries.make_many([task_id for task_id, _ in runs])
        held = await self._batch.run(
            [
                entry.call(scripts.HOLD, generation, worker_id, lease_ms)
                for entry, (_, generation) in zip(entries, runs, strict=True)
            ]
        )
        return [run for run, answer in zip(runs, held, strict=True) if answer == -1]

    async def release(self, runs: Sequence[Ended]) -> None:
        """Note that *runs* ended with a word, each unless it has done so already.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        entries = await self._entries.make_many([run.task_id for run in runs])
        await self._batch.run(
            [
                entry.call(scripts.RELEASE_RUN, run.generation, run.token, run.weight)
                for entry, run in zip(entries, runs, strict=True)
            ]
        )

    async def park(
        self,
        run: Ended,
        wait_ms: int,
        assignment: bytes | None = None,
        waits_for: RunWait | None = None,
        row: TaskRow | None = None,
    ) -> None:
        """Note that *run* ended and another follows, not before *wait_ms* have passed; 0 is whenever it is offered.

        *assignment* is kept for a time when its stream is lost. *waits_for* is shown to whoever looks meanwhile. The
        task is listed by its *row*, if that is given.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        parked = (
            run.generation,
            run.token,
            wait_ms,
            assignment or b"",
            self._keep_ms,
            run.weight,
            "" if waits_for is None else waits_for.model_dump_json(),
        )
        entry = await self._entries.make(run.task_id)
        await self._run(
            [entry.call(scripts.PARK, *parked)],
            opened=[] if row is None else [row],
        )

    async def wake(
        self, task_id: str, generation: int
    ) -> Woken | Literal["running", "ended"]:
        """Let a task that waits for its next run be due at once; "running" is one that does not wait, or not yet.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        [asked] = await self._entries.ask_many(
            [task_id],
            lambda _, entry: entry.call(scripts.WAKE, generation),
            is_unknown=lambda reply: reply == -1,
        )
        if asked is None:
            return "ended"
        found = asked.reply
        if isinstance(found, int):
            return "ended" if found < 0 else "running"
        attempts, assignment, trace = found
        return Woken(
            number_in(attempts) or 0, assignment, trace.decode(errors="replace")
        )

    async def cancel(
        self, task_id: str, generation: int | None, reason: str
    ) -> CancelOutcome | ReportExpired | bytes:
        """Note a cancel request for *generation*, None the newest; return its report when it has ended.

        From here on no run of it begins and no other report than a cancelled one is taken. Where its entry is closed to
        this role the request lies in its pointer until its own agent takes it over, for the first generation where None
        is given.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        asked = generation or 0, reason, self._keep_ms
        found: Any = 0
        while found == 0:
            found = await self._ask_to_cancel(task_id, asked)
        if isinstance(found, bytes):
            return found
        if (expired := _expired_in(found)) is not None:
            return expired
        number, state, assignment, waits_for = found
        return CancelOutcome(
            int(number),
            state.decode() or "unknown",
            assignment or None,
            waits_for=read_wait(waits_for),
        )

    async def _ask_to_cancel(self, task_id: str, asked: tuple[int, str, int]) -> Any:
        entry = await self._entries.find(task_id)
        layout = await self._entries.layout()
        command: Command
        if layout == "1" or (entry is not None and entry.agent_id):
            assert entry is not None  # noqa: S101 - layout 1 has a place for every id
            try:
                return (await self._batch.run([entry.call(scripts.CANCEL, *asked)]))[0]
            except MemoryRefused:
                if layout != "2":
                    raise
            generation, reason, _ = asked
            told = entry.agent_id, generation, reason
            command = (scripts.CANCEL_ELSEWHERE, 1, keys.task_agent(task_id), *told)
        else:
            beside = () if entry is None else entry.keys
            where = keys.task_agent(task_id), *beside
            command = (scripts.CANCEL_UNNAMED, len(where), *where, layout, *asked)
        return (await self._batch.run([("FCALL", *command)]))[0]

    async def cancel_request(self, *task_ids: str) -> CancelRequest | None:
        """Return why the newest known generation of the first such task is to be cancelled, or was; None for none.

        Neither parameters nor results are read, which may be large and are those of a parent of many; nor, in layout 2,
        any entry: a child may not reach its parent's.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        layout = await self._entries.layout()
        if layout != "1":
            pointers = await self._batch.run(
                [("GET", keys.task_agent(task_id)) for task_id in task_ids]
            )
            for pointer in pointers:
                if (asked := read_pointer(pointer)[1]) is not None:
                    return CancelRequest(asked.reason)
        return None if layout == "2" else await self._wish_in_layout_1(task_ids)

    async def _wish_in_layout_1(self, task_ids: Sequence[str]) -> CancelRequest | None:
        named = await self._batch.run(
            [("HKEYS", keys.task(task_id)) for task_id in task_ids]
        )
        newest = [
            max((number_in(name.rpartition(b":")[2]) or 1 for name in names), default=1)
            for names in named
        ]
        found = await self._batch.run(
            [
                (
                    "HMGET",
                    keys.task(task_id),
                    f"cancel:{generation}",
                    f"state:{generation}",
                )
                for task_id, generation in zip(task_ids, newest, strict=True)
            ]
        )
        requests = (
            _cancel_request_in(
                {
                    name: value
                    for name, value in (("cancel", reason), ("state", state))
                    if value is not None
                }
            )
            for reason, state in found
        )
        return next((request for request in requests if request is not None), None)

    async def once(
        self, task_id: str, generation: int, worker_id: str, name: str, token: str
    ) -> bool | None:
        """Return whether the call *token* is the one that makes the effect *name* of the task, in any generation.

        None when it may not even ask: another worker runs the task meanwhile, or it has ended or is to be cancelled.

        Raises:
            MemoryUnavailable: the ledger did not answer in time; ask again with the same *token*.
        """
        asked = generation, worker_id, quote(name, safe=""), token, self._keep_ms
        entry = await self._entries.make(task_id)
        found = (await self._batch.run([entry.call(scripts.ONCE, *asked)]))[0]
        return None if found < 0 else bool(found)

    async def finish(
        self, task_id: str, generation: int, status: str, report: bytes
    ) -> bytes | CancelRequest | ReportExpired | None:
        """Return None when *report* is the one of its generation; else the earlier one, to be published instead.

        A cancel request is returned where only a report of status `cancelled` is taken.

        Raises:
            MemoryUnavailable: the ledger did not answer in time; the report may or may not have been stored.
        """
        return (await self.finish_many([(task_id, generation, status, report)]))[0]

    async def finish_many(
        self, reports: Sequence[Finish | tuple[str, int, str, bytes]]
    ) -> list[bytes | CancelRequest | ReportExpired | None]:
        """Return `finish` of each of *reports*, in one round trip; of two for one generation the first wins.

        Each that has a row is listed by it, also where it is not taken: what stands then is listed by `list_runs`.
        """
        earlier = await self._finish(reports)
        return [
            (_expired_in(found) or CancelRequest(found[0].decode()))
            if isinstance(found, list)
            else found
            for found in earlier
        ]

    async def adopt_many(self, reports: Sequence[Finish]) -> None:
        """Make each of *reports*, which REPORTS holds, the one of its generation, whatever the ledger had before.

        Raises:
            MemoryUnavailable: the ledger did not answer in time; adopt them again.
        """
        rows = [one.row for one in reports if one.row is not None]
        known = await self._index.find(rows)
        adopted = {
            row.task_id: row.complete(earlier)
            for row, earlier in zip(rows, known, strict=True)
        }
        await self._finish(
            [one._replace(row=adopted.get(one.task_id)) for one in reports], 1
        )

    async def _finish(
        self,
        reports: Iterable[Finish | tuple[str, int, str, bytes]],
        *mark: int,
    ) -> list[Any]:
        finished = list(reports)
        entries = await self._entries.make_many([one[0] for one in finished])
        commands: list[Command] = []
        rows: list[TaskRow] = []
        for one, entry in zip(finished, entries, strict=True):
            task_id, generation, status, report = one[:4]
            user = ""
            report_ms = self._reports_ms
            if isinstance(one, Finish):
                user = one.user
                if one.row is not None:
                    self._late.drop(task_id)
                    rows.append(one.row)
                    if one.row.parent_id is not None:
                        report_ms = self._keep_ms
            said = generation, status, report, self._keep_ms, report_ms, user
            counter = (keys.end_counts(entry.keys[0]),)
            commands.append(entry.call(scripts.FINISH, *said, *mark, more=counter))
        earlier = await self._run(commands, ended=rows, is_settled=bool(mark))
        for one, found in zip(finished, earlier, strict=True):
            is_refused = isinstance(found, list) and _expired_in(found) is None
            if not (mark or is_refused) and isinstance(one, Finish) and one.row:
                self._late.close(one.row.agent_id, one.task_id)
        return earlier

    async def list_runs(self, rows: Sequence[TaskRow]) -> None:
        """List runs by *rows*, whatever the ledger says of them: reports that stood before others came.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        await self._run([], ended=rows)

    async def accept(
        self,
        task_id: str,
        generation: int,
        assignment: bytes,
        trace: str = "",
        due_at_ms: int | None = None,
        row: TaskRow | None = None,
    ) -> None:
        """Note that *assignment* is durably published; a worker that was quicker is not undone.

        *trace* is its trace, as a `TraceContext` is spelled: it is published again under that. No run begins before
        *due_at_ms*, ms since 1970, and it is known as long after that as others are after they were accepted. The task
        is listed by its *row*, if that is given.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        rows = [] if row is None else [row]
        if due_at_ms is None:
            await self.accept_many(
                [(task_id, generation, assignment, trace)], rows=rows
            )
            return
        noted = generation, assignment, self._keep_ms, trace, due_at_ms
        entry = await self._entries.make(task_id)
        await self._run([entry.call(scripts.ACCEPT, *noted)], opened=rows)

    async def accept_many(
        self,
        assignments: Sequence[tuple[str, int, bytes, str]],
        children: Sequence[tuple[str, str, str]] = (),
        rows: Sequence[TaskRow] = (),
    ) -> None:
        """Do as `accept` with each of *assignments*, and list *children* and *rows*, in one round trip.

        A child is the id of its parent, its own and its "Agent.task"; the first `MOST_CHILDREN` of a parent are listed.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        accepted = await self._entries.make_many([one[0] for one in assignments])
        parents = await self._entries.find_many([one[0] for one in children])
        commands: list[Command] = [
            entry.call(
                scripts.ACCEPT, generation, body, self._keep_ms, *filter(None, [trace])
            )
            for entry, (_, generation, body, trace) in zip(
                accepted, assignments, strict=True
            )
        ]
        commands += [
            parent.call(
                scripts.LIST_CHILD,
                *(task_id, name, self._keep_ms, MOST_CHILDREN),
                more=parent.children,
            )
            for parent, (_, task_id, name) in zip(parents, children, strict=True)
            if parent is not None
        ]
        await self._run(commands, opened=rows)

    async def find_report(self, task_id: str, generation: int) -> bytes | None:
        """Return the report of *generation* of *task_id*, None while there is none; an `expired_report` after its time.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        [asked] = await self._entries.ask_many(
            [task_id],
            lambda _, entry: entry.ask(scripts.FIND_REPORT, generation),
            is_unknown=operator.not_,
        )
        if asked is None:
            return None
        found: bytes | list[Any] | None = asked.reply
        if not isinstance(found, list):
            return found
        expired = _expired_in(found)
        return expired and _spell(
            TaskName(asked.entry.agent_id, task_id), generation, expired
        )

    async def note_wait(
        self,
        task_id: str,
        generation: int,
        waits_for: RunWait,
        row: TaskRow | None = None,
    ) -> None:
        """Note what a task waits for of which no run has begun; it is listed by its *row*, if that is given.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        noted = generation, waits_for.model_dump_json(), self._keep_ms
        entry = await self._entries.make(task_id)
        await self._run(
            [entry.call(scripts.NOTE_WAIT, *noted)],
            opened=[] if row is None else [row],
        )

    async def past(self, task_id: str, generation: int) -> PastRuns:
        """Return what became of *generation* of *task_id* so far.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        entry = await self.read(task_id)
        known = None if entry is None else entry.generations.get(generation)
        if known is None:
            return PastRuns(0, 0, b"")
        return PastRuns(
            known.attempts,
            known.crashes,
            waits_for=known.last_wait,
            lost=known.lost,
        )

    async def glance(
        self, tasks: Sequence[tuple[str, str, int]]
    ) -> list[RunGlance | None]:
        """Return how far each of *tasks* is, an agent, an id and a generation; None where that is not known.

        No bodies are read. The agent is "" where it is not known.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        named = [
            TaskName(agent_id, task_id) if agent_id else task_id
            for agent_id, task_id, _ in tasks
        ]
        entries = await self._entries.find_many(named)
        asked = [
            entry.ask(scripts.GLANCE, generation)
            for entry, (_, _, generation) in zip(entries, tasks, strict=True)
            if entry is not None
        ]
        replies = iter(await self._batch.run(asked) if asked else ())
        return [
            None if entry is None else _glance_in(next(replies)) for entry in entries
        ]

    async def name(self, task_id: str) -> str:
        """Return *task_id* with its agent, also where it has ended for longer than its report is kept.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        return await self._entries.name(task_id)

    async def read(self, task_id: str) -> LedgerEntry | None:
        """Return all that is known of *task_id*, or None when it never was or is past its time.

        One that has ended for longer than its report is kept is found by its `name`.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        [asked] = await self._entries.ask_many(
            [task_id], lambda _, entry: _reading(entry), is_unknown=operator.not_
        )
        if asked is None:
            return await self._read_wish(task_id)
        entry = asked.entry
        if entry.agent_id:
            task_id = TaskName(entry.agent_id, task_id)
        found = as_mapping(asked.reply)
        if not (found or entry.agent_id) and await self._entries.layout() != "1":
            return await self._read_wish(task_id)
        return entry_of(task_id, found)

    async def _read_wish(self, task_id: str) -> LedgerEntry | None:
        """Return an entry of the cancel request alone for a task without an agent, None without a request."""
        pointer = (await self._batch.run([("GET", keys.task_agent(task_id))]))[0]
        _, asked = read_pointer(pointer)
        if asked is None:
            return None
        field = b"cancel:%d" % asked.generation
        return entry_of(task_id, {field: asked.reason.encode()})


def _reading(entry: EntryKeys) -> Command:
    return (
        ("HGETALL", entry.keys[0])
        if entry.layout == "1"
        else entry.ask(scripts.READ_ENTRY)
    )


def entry_of(task_id: str, fields: dict[bytes, bytes]) -> LedgerEntry | None:
    """Return the ledger entry that the hash *fields* spell, or None when they tell of no generation."""
    by_generation: dict[int, dict[str, bytes]] = {}
    for field, value in fields.items():
        name, _, number = field.rpartition(b":")
        # A field of a newer writer, of the task as a whole, is passed over.
        if (generation := number_in(number)) is not None and name:
            by_generation.setdefault(generation, {})[name.decode(errors="replace")] = (
                value
            )
    generations = {
        number: _generation(task_id, number, named)
        for number, named in sorted(by_generation.items())
    }
    return (
        LedgerEntry(
            task_id, generations, fields.get(b"user", b"").decode(errors="replace")
        )
        if generations
        else None
    )


def number_in(spelled: bytes | None) -> int | None:
    """Return *spelled* as a whole number, None for anything else: workers may write any text."""
    return (
        int(spelled)
        if spelled is not None and spelled.isdigit() and len(spelled) < _LONGEST_NUMBER
        else None
    )


def _glance_in(reply: Sequence[Any]) -> RunGlance | None:
    """Return what *reply* of the script GLANCE says."""
    if not reply:
        return None
    state, attempts, waits_for, is_cancelled, due_at = reply
    spelled = "accepted" if state is None else state.decode(errors="replace")
    waits = spelled in ("accepted", "waiting")
    if is_cancelled and spelled in OPEN_STATES:
        spelled = "cancelling"
    return RunGlance(
        spelled,
        attempts=number_in(attempts) or 0,
        waits_for=read_wait(waits_for) if waits else None,
        due_ms=number_in(due_at) if spelled == "accepted" else None,
    )


def _spell(task: TaskName, generation: int, expired: ReportExpired) -> bytes:
    return expired_report(task, generation, expired).model_dump_json().encode()


def _generation(task_id: str, number: int, named: dict[str, bytes]) -> Generation:
    worker = named.get("worker")
    report = named.get("report")
    expired = _fence(named)
    if expired is not None and isinstance(task_id, TaskName):
        report = _spell(task_id, number, expired)
    return Generation(
        state=named.get("state", b"unknown").decode(errors="replace"),
        attempts=number_in(named.get("attempts")) or 0,
        worker_id=None if worker is None else worker.decode(errors="replace"),
        started_at_ms=number_in(named.get("started_at")),
        assignment=named.get("assignment"),
        report=report,
        refused=number_in(named.get("refused")) or 0,
        crashes=number_in(named.get("crashes")) or 0,
        cancel_request=_cancel_request_in(named),
        waits_for=read_wait(named.get("waits_for"))
        if named.get("state") in (b"accepted", b"waiting")
        else None,
        last_wait=named.get("waits_for", b""),
        lost=read_lost(named.get("lost")),
        expired=expired,
    )


def _fence(named: dict[str, bytes]) -> ReportExpired | None:
    """Return the end of a generation that has no report any more, None for another one."""
    finished_at_ms = number_in(named.get("finished_at"))
    if finished_at_ms is None or "report" in named:
        return None
    return ReportExpired(
        named.get("state", b"unknown").decode(errors="replace"),
        finished_at_ms=finished_at_ms,
        error=named.get("error", b"").decode(errors="replace"),
    )


def read_wait(body: bytes | None) -> RunWait | None:
    """Return *body* as why a task waits, None where it is none: workers may write any text."""
    try:
        return RunWait.model_validate_json(body) if body else None
    except ValidationError:
        return None


def read_lost(body: bytes | None) -> LostWorker | None:
    """Return *body* as a lost worker, None where it is none: workers may write any text."""
    worker_id, _, since = (body or b"").rpartition(b" ")
    since_ms = number_in(since)
    if not worker_id or since_ms is None:
        return None
    try:
        silent_since = datetime.fromtimestamp(since_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return LostWorker(worker_id.decode(errors="replace"), silent_since)


def _cancel_request_in(named: dict[str, bytes]) -> CancelRequest | None:
    """Return the request to cancel; a child that ended with its parent has none of its own, but ended as asked."""
    if "cancel" in named:
        return CancelRequest(named["cancel"].decode(errors="replace"))
    return (
        CancelRequest("it was cancelled")
        if named.get("state") == b"cancelled"
        else None
    )


def _expired_in(found: list[Any]) -> ReportExpired | None:
    """Return the end without a report in the reply of a script, None where the reply is another."""
    if found[0] != _EXPIRED or len(found) != _EXPIRED_WORDS:
        return None
    return ReportExpired(
        found[1].decode(errors="replace"),
        finished_at_ms=number_in(found[2]) or 0,
        error=found[3].decode(errors="replace"),
    )


def _beginning(
    found: list[Any],
) -> RunPermission | Held | NotDue | Suspect | CancelRequest | ReportExpired:
    """Return what the script BEGIN says when there is no report."""
    if (expired := _expired_in(found)) is not None:
        return expired
    kind = found[0]
    if kind == 1:
        number, crashes, excused, is_news, waited_for, _ = found[1:]
        return RunPermission(
            number,
            crashes=crashes,
            excused=excused,
            is_news=bool(is_news),
            waited_for=waited_for,
        )
    if kind == 2:
        return Held(found[1])
    if kind == 5:
        return NotDue(found[1])
    return (
        CancelRequest(found[1].decode())
        if kind == 3
        else Suspect(
            found[1],
            found[2],
            found[3],
            is_news=bool(found[4]),
            lost=read_lost(found[5]),
        )
    )
