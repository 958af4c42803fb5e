"""The stores of one worker: long-term memory, ledger, sessions, and ended runs that the ledger does not know yet."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from tasklore.contracts.admission.limits import NANO_USD, Payer
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import Usage
from tasklore.memory.ledger.runs import Ended
from tasklore.memory.long_term.entries import CachedResult
from tasklore.memory.long_term.single_flight import SingleFlight
from tasklore.workers.context.phase_outputs import entries_of
from tasklore.workers.execution.long_term import LongTerm
from tasklore.workers.execution.remembered_result import remember

if TYPE_CHECKING:
    from tasklore.contracts.messages import TaskAssignment
    from tasklore.memory.budgets.governor import ModelBudget
    from tasklore.memory.ledger.ledger import Ledger
    from tasklore.memory.sessions.session import SessionCache
    from tasklore.workers.execution.job import Job

log = structlog.get_logger(__name__)

#: A generation of a task: its id and number.
Name = tuple[str, int]

#: Ended runs kept for a ledger that is away; one that is dropped makes its task run alone.
_MOST_KEPT = 10_000


class EndedRuns:
    """Ended runs that the ledger was away for: they are released later, or would pass for crashes.

    Kept in the event loop, and flushed from the thread of leases too.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Ended] = {}

    def keep(self, run: Ended) -> None:
        """Keep *run* for `flush`."""
        self._kept[run.token] = run
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    async def flush(self, ledger: "Ledger") -> None:
        """Write the runs that are kept into *ledger*.

        Raises:
            MemoryUnavailable: it is still away; everything is kept.
        """
        kept = list(self._kept.copy().items())
        if not kept:
            return
        await ledger.release([run for _, run in kept])
        for token, _ in kept:
            self._kept.pop(token, None)
        log.info("runs_released_late", runs=len(kept))


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one worker.

    `hits` counts the entries that were served, until the host flushes them, and `own_hits` those that were served to
    a known user, by their token and the entry.
    """

    long_term: LongTerm
    ledger: "Ledger"
    flights: SingleFlight[bytes]
    sessions: "SessionCache"
    hits: Counter[str] = field(default_factory=Counter)
    own_hits: Counter[tuple[str, str]] = field(default_factory=Counter)
    ended: EndedRuns = field(default_factory=EndedRuns)
    governor: "ModelBudget | None" = None

    def usage_of(self, job: "Job", answer: CachedResult) -> Usage | None:
        """Return the usage of a report that *answer* served, and enter into the books what that spared."""
        if not answer.nano_usd:
            return None
        if self.governor is not None:
            assignment = job.assignment
            self.governor.save(
                Payer(tenant=assignment.tenant or "", agent=assignment.agent_id),
                answer.nano_usd,
            )
        return Usage(saved_usd=answer.nano_usd / NANO_USD)

    def count_hit(self, key: str, user: str | None) -> None:
        """Count that the entry *key* was served, to *user* (a token) when it is known."""
        self.hits[key] += 1
        if user is not None:
            self.own_hits[user, key] += 1

    async def remember(
        self,
        job: "Job",
        key: str,
        result: bytes,
        run_ms: int,
        now: datetime,
        nano_usd: int = 0,
    ) -> None:
        """Remember *result*, computed in *run_ms* for *nano_usd*, at *key*; a memory that is away is noted on *job*."""
        await remember(
            self.long_term,
            job,
            key=key,
            result=result,
            run_ms=run_ms,
            now=now,
            nano_usd=nano_usd,
        )

    async def put_into_session(
        self, assignment: "TaskAssignment", result: bytes, computed_ms: int
    ) -> None:
        """Store the entries of *result* that the phase of *assignment* writes."""
        entries = entries_of(assignment, result, computed_ms)
        await self.sessions.set_many(
            assignment.session_id or "", entries, task_id=assignment.task_id
        )

    async def release(self, run: Ended) -> None:
        """Note in the ledger that *run* has ended without a report; later when it is away."""
        try:
            await self.ledger.release([run])
        except MemoryUnavailable:
            self.ended.keep(run)
