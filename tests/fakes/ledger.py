"""A ledger that knows tasks in this process only, for unit tests; it passes the contract suite of the real one."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

from tasklore.contracts.admission.waits import RunWait
from tasklore.memory import keys
from tasklore.memory.ledger.ledger import LedgerEntry, entry_of, read_lost
from tasklore.memory.ledger.runs import (
    Beginning,
    CancelOutcome,
    CancelRequest,
    Ended,
    Finish,
    Held,
    NotDue,
    PastRuns,
    RunPermission,
    Suspect,
)
from tasklore.memory.ledger.task_rows import TaskRow

#: Fields that only a run needs.
_OF_RUNS = (
    "worker",
    "started_at",
    "leased_until",
    "due_at",
    "attempts",
    "alone",
    "token",
    "crashes_alone",
    "excused",
)


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields of one generation in the hash of its task."""

    fields: dict[bytes, bytes]
    generation: int

    def __contains__(self, name: str) -> bool:
        return self._field(name) in self.fields

    def __getitem__(self, name: str) -> bytes:
        return self.fields[self._field(name)]

    def get(self, name: str) -> bytes | None:
        return self.fields.get(self._field(name))

    def number(self, name: str) -> int:
        return int(self.get(name) or 0)

    def set(self, **values: object) -> None:
        for name, value in values.items():
            self.fields[self._field(name)] = (
                value if isinstance(value, bytes) else str(value).encode()
            )

    def drop(self, name: str) -> None:
        self.fields.pop(self._field(name), None)

    def _field(self, name: str) -> bytes:
        return f"{name}:{self.generation}".encode()


class FakeLedger:
    """Stands for `tasklore.memory.ledger.ledger.Ledger`."""

    def __init__(
        self,
        *,
        keep: timedelta = timedelta(days=7),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep_s = keep.total_seconds()
        self._clock = clock
        self._tasks: dict[str, tuple[float, dict[bytes, bytes]]] = {}

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
        of = self._generation(task_id, generation)
        if (stored := of.get("report")) is not None:
            return stored
        if "cancel" in of:
            return CancelRequest(of["cancel"].decode())
        clock_ms = int(self._clock() * 1000)
        if of.number("due_at") > clock_ms:
            return NotDue(of.number("due_at") - clock_ms)
        is_news = False
        if "leased_until" in of:
            left_ms = of.number("leased_until") - clock_ms
            if left_ms > 0 and of.get("worker") != worker_id.encode():
                return Held(left_ms)
            if left_ms > 0 and of.get("token") == token.encode():
                return RunPermission(
                    of.number("attempts"),
                    of.number("crashes"),
                    of.number("excused"),
                    waited_for=of.get("waits_for") or b"",
                )
            if left_ms <= 0:
                is_news = True
                worker = (of.get("worker") or b"").decode()
                of.set(
                    lost=f"{worker} {of.number('leased_until')}",
                    crashes=of.number("crashes") + 1,
                    crashes_alone=of.number("crashes_alone") + of.number("alone"),
                )
                of.drop("leased_until")
        if of.number("crashes") > most_crashes and not alone:
            return Suspect(
                of.number("crashes"),
                of.number("crashes_alone"),
                of.number("attempts"),
                is_news=is_news,
                lost=read_lost(of.get("lost")),
            )
        of.set(
            state="running",
            worker=worker_id,
            started_at=now_ms,
            leased_until=clock_ms + lease_ms,
        )
        of.set(
            attempts=max(before, of.number("attempts")) + 1,
            alone=int(alone),
            token=token,
        )
        return RunPermission(
            of.number("attempts"),
            of.number("crashes"),
            of.number("excused"),
            is_news,
            of.get("waits_for") or b"",
        )

    async def hold(
        self, runs: Sequence[tuple[str, int]], worker_id: str, lease_ms: int
    ) -> list[tuple[str, int]]:
        lost = []
        for task_id, generation in runs:
            of = self._generation(task_id, generation)
            if of.get("worker") not in (None, worker_id.encode()):
                lost.append((task_id, generation))
            elif "leased_until" in of:
                of.set(leased_until=int(self._clock() * 1000) + lease_ms)
        return lost

    async def release(self, runs: Sequence[Ended]) -> None:
        for run in runs:
            self._end(run)

    async def park(
        self,
        run: Ended,
        wait_ms: int,
        assignment: bytes | None = None,
        waits_for: RunWait | None = None,
        row: TaskRow | None = None,
    ) -> None:
        of = self._end(run)
        if of is None:
            return
        of.set(
            state="waiting",
            **({"due_at": int(self._clock() * 1000) + wait_ms} if wait_ms else {}),
        )
        if assignment is not None and "assignment" not in of:
            of.set(assignment=assignment)
        of.drop("waits_for")
        if waits_for is not None:
            of.set(waits_for=waits_for.model_dump_json())

    async def note_wait(
        self,
        task_id: str,
        generation: int,
        waits_for: RunWait,
        row: TaskRow | None = None,
    ) -> None:
        of = self._generation(task_id, generation)
        state = of.get("state") or b"accepted"
        if state in (b"accepted", b"waiting"):
            of.set(state=state.decode(), waits_for=waits_for.model_dump_json())

    async def past(self, task_id: str, generation: int) -> PastRuns:
        of = self._generation(task_id, generation)
        return PastRuns(
            of.number("attempts"),
            of.number("crashes"),
            waits_for=of.get("waits_for") or b"",
            lost=read_lost(of.get("lost")),
        )

    def _end(self, run: Ended) -> "_Fields | None":
        of = self._generation(run.task_id, run.generation)
        if of.get("token") != run.token.encode() or "leased_until" not in of:
            return None
        of.drop("leased_until")
        if run.excused:
            of.set(excused=of.number("excused") + 1)
        if run.uncounted:
            of.set(attempts=of.number("attempts") - 1)
        return of

    async def cancel(
        self, task_id: str, generation: int | None, reason: str
    ) -> CancelOutcome | bytes:
        entry = await self.read(task_id)
        number = generation or (entry.newest if entry is not None else 1)
        of = self._generation(task_id, number)
        if (stored := of.get("report")) is not None:
            return stored
        state = of.get("state") or b"unknown"
        assignment = of.get("assignment")
        if "cancel" not in of:
            of.set(cancel=reason)
        return CancelOutcome(number, state.decode(), assignment)

    async def cancel_request(self, task_id: str) -> CancelRequest | None:
        entry = await self.read(task_id)
        return (
            entry.generations[entry.newest].cancel_request
            if entry is not None
            else None
        )

    async def once(
        self, task_id: str, generation: int, worker_id: str, name: str, token: str
    ) -> bool | None:
        field = b"once." + quote(name, safe="").encode()
        of = self._generation(task_id, generation)
        if (claimed := of.fields.get(field)) is not None:
            return claimed == token.encode()
        is_leased = of.number("leased_until") > int(self._clock() * 1000)
        if (
            "report" in of
            or "cancel" in of
            or (is_leased and of.get("worker") != worker_id.encode())
        ):
            return None
        of.fields[field] = token.encode()
        return True

    async def finish(
        self, task_id: str, generation: int, status: str, report: bytes
    ) -> bytes | CancelRequest | None:
        of = self._generation(task_id, generation)
        if (stored := of.get("report")) is not None:
            if stored == report:
                return None
            of.set(refused=of.number("refused") + 1)
            return stored
        if "cancel" in of and status != "cancelled":
            return CancelRequest(of["cancel"].decode())
        of.set(report=report, state=status)
        for name in _OF_RUNS if status == "failed" else (*_OF_RUNS, "assignment"):
            of.drop(name)
        return None

    async def finish_many(
        self, reports: Sequence[Finish | tuple[str, int, str, bytes]]
    ) -> list[bytes | CancelRequest | None]:
        for report in reports:
            if isinstance(report, Finish) and report.user:
                self._touch(report.task_id)[b"user"] = report.user.encode()
        return [await self.finish(*report[:4]) for report in reports]

    async def accept(
        self,
        task_id: str,
        generation: int,
        assignment: bytes,
        trace: str = "",
        due_at_ms: int | None = None,
        row: TaskRow | None = None,
    ) -> None:
        of = self._generation(task_id, generation)
        if "report" in of and of["state"] != b"failed":
            return
        of.fields.setdefault(b"assignment:%d" % generation, assignment)
        of.fields.setdefault(b"state:%d" % generation, b"accepted")
        if trace:
            of.fields.setdefault(b"trace:%d" % generation, trace.encode())

    async def list_runs(self, rows: Sequence[TaskRow]) -> None:
        """Nothing: no list is kept."""

    async def name(self, task_id: str) -> str:
        return task_id

    async def read(self, task_id: str) -> LedgerEntry | None:
        until, fields = self._tasks.get(keys.task(task_id), (0.0, {}))
        return entry_of(task_id, fields) if self._clock() < until else None

    def _generation(self, task_id: str, generation: int) -> "_Fields":
        return _Fields(self._touch(task_id), generation)

    def _touch(self, task_id: str) -> dict[bytes, bytes]:
        key = keys.task(task_id)
        now = self._clock()
        until, fields = self._tasks.get(key, (now, {}))
        fields = fields if now < until else {}
        self._tasks[key] = (now + self._keep_s, fields)
        return fields
