"""The ledger: what became of every task, so that each generation has exactly one terminal report.

A hash per task; for generation 1 its fields are `state:1` (accepted, running or the report's status), `attempts:1`
(runs begun), `worker:1`, `started_at:1` (ms since 1970, of the latest run), `leased_until:1` (by the server's clock),
`assignment:1`, `report:1` (set once) and `refused:1` (reports that came after it). Generations do not disturb one
another: a redelivery of generation 1 behind a redrive still gets or repeats the report of generation 1, as that one is
owed too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from redis.asyncio import Redis

from memory import keys, scripts
from memory.breaker import Breaker
from memory.exchange import Exchange, as_mapping


class Held(NamedTuple):
    """Another worker runs the task; its lease ends in *wait_ms* milliseconds unless it is renewed."""

    wait_ms: int


class Finish(NamedTuple):
    """One terminal report that wants to be the one of its generation."""

    task_id: str
    generation: int
    status: str
    report: bytes


@dataclass(frozen=True, slots=True)
class Generation:
    """What the ledger knows of one generation; `report` and `assignment` are JSON bytes, None while there is none."""

    state: str
    attempts: int
    worker_id: str | None
    started_at_ms: int | None
    assignment: bytes | None
    report: bytes | None
    refused: int


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Every known generation of one task, by number."""

    task_id: str
    generations: dict[int, Generation]

    @property
    def newest(self) -> int:
        """The highest generation."""
        return max(self.generations)


class Ledger:
    """Keeps the terminal report of each (task, generation): whichever attempt finishes first wins.

    Args:
        client: A client that does not decode responses.
        keep: How long a task is known after its last event.
        deadline_s: Seconds for one call; then MemoryUnavailable.
        breaker: When given, a frozen server costs one deadline a rest instead of one a task.
    """

    def __init__(
        self,
        client: Redis,
        *,
        keep: timedelta = timedelta(days=7),
        deadline_s: float = 1.0,
        breaker: Breaker | None = None,
    ) -> None:
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._exchange = Exchange(client, deadline_s, breaker)

    async def begin(
        self, task_id: str, generation: int, worker_id: str, now_ms: int, lease_ms: int, *, before: int = 0
    ) -> int | Held | bytes:
        """Return which run this is (1 is the first), who else runs it, or the stored report, to be published again.

        *before* is how many runs others have counted, when that is more than is known here. A run is leased for
        *lease_ms* milliseconds of the server's clock; `hold` renews it. Every call that may run is a run: an attempt
        that ended without a word counts.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        key = keys.task(task_id)
        command = ("EVALSHA", scripts.BEGIN, 1, key, generation, worker_id, now_ms, self._keep_ms, lease_ms, before)
        found = (await self._exchange.run([command]))[0]
        if isinstance(found, bytes):
            return found
        return Held(-found) if found < 0 else int(found)

    async def hold(self, runs: Sequence[tuple[str, int]], worker_id: str, lease_ms: int) -> None:
        """Lease *runs*, each a task id and its generation, for *lease_ms* from now; 0 lets them go.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        script = scripts.HOLD
        await self._exchange.run(
            [
                ("EVALSHA", script, 1, keys.task(task_id), generation, worker_id, lease_ms)
                for task_id, generation in runs
            ]
        )

    async def finish(self, task_id: str, generation: int, status: str, report: bytes) -> bytes | None:
        """Return None when *report* is the one of its generation; else the earlier one, to be published instead.

        Raises:
            MemoryUnavailable: the ledger did not answer in time; the report may or may not have been stored.
        """
        return (await self.finish_many([(task_id, generation, status, report)]))[0]

    async def finish_many(self, reports: Sequence[Finish | tuple[str, int, str, bytes]]) -> list[bytes | None]:
        """Return `finish` of each of *reports*, in one round trip; of two for one generation the first wins."""
        script, keep, key_of = scripts.FINISH, self._keep_ms, keys.task
        return await self._exchange.run(
            [
                ("EVALSHA", script, 1, key_of(task_id), generation, status, report, keep)
                for task_id, generation, status, report in reports
            ]
        )

    async def repair(self, task_id: str, generation: int, status: str, report: bytes) -> bytes | None:
        """Store a report that was published while the ledger was away (`"fence": "none"`); returns as `finish`."""
        return await self.finish(task_id, generation, status, report)

    async def accept(self, task_id: str, generation: int, assignment: bytes) -> None:
        """Note that *assignment* is durably published; a worker that was quicker is not undone.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        key = keys.task(task_id)
        await self._exchange.run([("EVALSHA", scripts.ACCEPT, 1, key, generation, assignment, self._keep_ms)])

    async def read(self, task_id: str) -> LedgerEntry | None:
        """Return all that is known of *task_id*, or None when it never was or is past its time.

        Raises:
            MemoryUnavailable: the ledger did not answer in time.
        """
        fields = as_mapping((await self._exchange.run([("HGETALL", keys.task(task_id))]))[0])
        return entry_of(task_id, fields)


def entry_of(task_id: str, fields: dict[bytes, bytes]) -> LedgerEntry | None:
    """Return the ledger entry that the hash *fields* spell, or None when they tell of no generation."""
    by_generation: dict[int, dict[str, bytes]] = {}
    for field, value in fields.items():
        name, _, number = field.rpartition(b":")
        # A field of a newer writer, of the task as a whole, is passed over.
        if number.isdigit() and name:
            by_generation.setdefault(int(number), {})[name.decode(errors="replace")] = value
    generations = {number: _generation(named) for number, named in sorted(by_generation.items())}
    return LedgerEntry(task_id, generations) if generations else None


def _generation(named: dict[str, bytes]) -> Generation:
    worker, started_at = named.get("worker"), named.get("started_at")
    return Generation(
        state=named.get("state", b"unknown").decode(),
        attempts=int(named.get("attempts", 0)),
        worker_id=None if worker is None else worker.decode(),
        started_at_ms=None if started_at is None else int(started_at),
        assignment=named.get("assignment"),
        report=named.get("report"),
        refused=int(named.get("refused", 0)),
    )
