"""Dispatch: an assignment goes out once it is durably stored, and the ledger knows of it.

It goes to TASKS, or while its agent is busy into WAITING, from where the desk of admission moves it by turns.

First the stream, then the ledger. In the other order a task that the stream refuses would be in the ledger as
accepted, and start when the stream is created anew, although its sender got an error. In this order a process that dies
between the two leaves a task that runs and is reported; only the loss of the stream, before its first run, would lose
it too. Its sender has no acceptance yet, and asks again under the same id. Assignments that the ledger missed while it
was away are added later, by `tell_ledger`.
"""

from datetime import timedelta
from typing import Literal, NamedTuple

import structlog

from tasklore.contracts import subjects
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import ChatTurn, TaskAssignment
from tasklore.memory.holdings.store import HOLDING_KINDS, Holding
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.run_rows import RunRow, row_of
from tasklore.runtime import tracing
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.task_caller import first_letter
from tasklore.supervisor.admission.gate import Gate
from tasklore.supervisor.admission.owner_bounds import OwnerBounds

log = structlog.get_logger(__name__)

#: How a task gets its room: it may be refused for want of it, was checked before, or is counted and never refused.
RoomCheck = Literal["refusable", "checked", "counted"]
#: Bytes of assignments kept for a ledger that is away: minutes of a few hundred a second.
_MOST_PENDING_BYTES = 64 * 1024 * 1024
#: How far ahead a task may begin: LATER keeps a message for thirty days.
MOST_AHEAD = timedelta(days=29)
#: Milliseconds that the ledger lets a task run early.
EARLY_MS = 100


class _Pending(NamedTuple):
    """An assignment as it was published, the text of its `TraceContext`, and how it is listed."""

    body: bytes
    trace: str
    due_at_ms: int | None
    row: RunRow


class Dispatch:
    """Sends assignments, and makes sure that every stored one gets into the ledger.

    Without a *gate* all go straight to TASKS; without *bounds* nothing is counted to owners.
    """

    def __init__(
        self,
        outbox: Outbox,
        ledger: Ledger,
        gate: Gate | None = None,
        bounds: OwnerBounds | None = None,
    ) -> None:
        self.bounds = bounds or OwnerBounds()
        """The bounds of owners."""
        self._outbox = outbox
        self._ledger = ledger
        self._gate = gate
        #: Stored, and not known to be in the ledger; the oldest first.
        self._pending: dict[str, _Pending] = {}
        self._pending_bytes = 0

    async def demand_room(self, assignment: TaskAssignment, beside: int = 0) -> None:
        """Count *assignment*, and so many bytes *beside* it, to who asks for it at a door; then assign it.

        Raises:
            OwnerFull: they keep too much; nothing of it may be kept.
        """
        await self.bounds.demand(
            assignment.asked_by, assignment.user_id, _as_holding(assignment, beside)
        )

    async def assign(
        self,
        assignment: TaskAssignment,
        *,
        patience_s: float = 10.0,
        room: RoomCheck = "counted",
    ) -> None:
        """Publish *assignment*; return when it is durably stored, and in the ledger, or pending there.

        One with a `not_before` waits in LATER until then, as a run that is retried does. Its *room* is "refusable"
        or "checked" at a door; work that follows of other work is "counted". One that has ended takes none again.

        Raises:
            OwnerFull: who asks keeps too much; nothing was started.
            QueueFull: as much waits as may; nothing was started.
            NotAccepted: it is not known to be stored; send it again with the same task id.
            MessageTooLarge: its parameters do not fit into a message; nothing was started.
        """
        task_id = assignment.named
        letter = first_letter(assignment)
        body = letter.body
        if room == "refusable":
            if not await self._has_ended(assignment):
                await self.demand_room(assignment)
        elif room == "counted":
            await self.bounds.count(
                assignment.asked_by, assignment.user_id, _as_holding(assignment)
            )
        waits = assignment.not_before is None and not await self._is_open(
            assignment.agent_id
        )
        await self._outbox.put(
            assignment.waits_on if waits else letter.subject,
            body,
            letter.message_id,
            headers=letter.headers,
            patience_s=patience_s,
        )
        if waits and self._gate is not None:
            await self._gate.note_waiting(assignment.agent_id)
        due_at_ms = None
        if assignment.not_before is not None:
            # The clocks of the ledger and of NATS are not the same.
            due_at_ms = int(assignment.waits_from.timestamp() * 1000) - EARLY_MS
        row = row_of(assignment, 1, assignment.agent_id)
        pending = _Pending(body, str(tracing.current() or ""), due_at_ms, row)
        self._keep(task_id, pending)
        try:
            await self._accept(task_id, pending)
        except MemoryUnavailable as error:
            log.warning("ledger_away", task_id=task_id, error=str(error))
        else:
            self._drop(task_id)

    async def hand_in(self, turn: ChatTurn, *, patience_s: float = 10.0) -> None:
        """Publish *turn*, one of a known user; returns when it is durably stored. The same again changes nothing.

        Raises:
            NotAccepted: it is not known to be stored; send it again with the same turn id.
        """
        user_id = turn.user_id or ""
        # Two people may choose one id.
        message_id = f"{user_token(user_id)[:200]}:{turn.turn_id}"
        body = turn.model_dump_json(exclude_none=True).encode()
        await self._outbox.put(
            subjects.turns(user_id), body, message_id, patience_s=patience_s
        )

    async def tell_ledger(self) -> int:
        """Add the pending assignments to the ledger, and return how many there were.

        Raises:
            MemoryUnavailable: it is away; what is left stays for the next time.
        """
        added = 0
        while self._pending:
            task_id, pending = next(iter(self._pending.items()))
            await self._accept(task_id, pending)
            self._drop(task_id)
            added += 1
        return added

    async def _has_ended(self, assignment: TaskAssignment) -> bool:
        """Return whether *assignment*, of an owner who is bounded, is a repeat of a task that has ended."""
        if not self.bounds.counts(assignment.asked_by, assignment.user_id):
            return False
        try:
            entry = await self._ledger.read(assignment.named)
        except MemoryUnavailable as error:
            log.warning("ledger_away", task_id=assignment.task_id, error=str(error))
            return False
        return entry is not None and entry.generations[entry.newest].report is not None

    async def _is_open(self, agent_id: str) -> bool:
        return self._gate is None or await self._gate.is_open(agent_id)

    async def _accept(self, task_id: str, pending: _Pending) -> None:
        due = {} if pending.due_at_ms is None else {"due_at_ms": pending.due_at_ms}
        await self._ledger.accept(
            task_id, 1, pending.body, pending.trace, **due, row=pending.row
        )

    def _keep(self, task_id: str, pending: _Pending) -> None:
        self._drop(task_id)
        self._pending[task_id] = pending
        self._pending_bytes += len(pending.body)
        while self._pending_bytes > _MOST_PENDING_BYTES:
            oldest = next(iter(self._pending))
            log.warning("never_in_ledger", task_id=oldest)
            self._drop(oldest)

    def _drop(self, task_id: str) -> None:
        if (pending := self._pending.pop(task_id, None)) is not None:
            self._pending_bytes -= len(pending.body)


def _spell(assignment: TaskAssignment) -> bytes:
    return assignment.model_dump_json(exclude_none=True).encode()


def _as_holding(assignment: TaskAssignment, beside: int = 0) -> Holding:
    """Return *assignment* as its owner keeps it: until the ledger forgets it, if no end of it is noted."""
    starts_in = max(timedelta(0), assignment.waits_from - assignment.created_at)
    keep = starts_in + HOLDING_KINDS["tasks"].keep
    return Holding("tasks", len(_spell(assignment)) + beside, assignment.task_id, keep)
