"""Dispatch: an assignment goes out once it is durably stored, and the ledger knows of it.

It goes to TASKS, or while its agent is busy into WAITING, from where the queue mover moves it by turns.

First the stream, then the ledger. In the other order a task that the stream refuses would be in the ledger as
accepted, and start when the stream is created anew, although its sender got an error. In this order a process that dies
between the two leaves a task that runs and is reported; only the loss of the stream, before its first run, would lose
it too. Its sender has no acceptance yet, and asks again under the same id. Assignments that the ledger missed while it
was away are added later, by `tell_ledger`.
"""

from datetime import timedelta
from typing import Literal

import structlog

from tasklore.contracts import subjects
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import ChatTurn, TaskAssignment
from tasklore.memory.holdings.store import HOLDING_KINDS, Holding
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.task_rows import row_of
from tasklore.memory.ledger.unnoted_tasks import StoredTask, UnnotedTasks
from tasklore.runtime import tracing
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.task_caller import first_letter
from tasklore.supervisor.admission.gate import Gate
from tasklore.supervisor.admission.owner_bounds import OwnerBounds

log = structlog.get_logger(__name__)

#: How a task gets its room: it may be refused for want of it, was checked before, or is counted and never refused.
RoomCheck = Literal["refusable", "checked", "counted"]
#: How far ahead a task may begin: LATER keeps a message for thirty days.
MOST_AHEAD = timedelta(days=29)
#: Milliseconds that the ledger lets a task run early.
EARLY_MS = 100


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
        self._unnoted = UnnotedTasks(ledger)

    async def demand_room(self, assignment: TaskAssignment, beside: int = 0) -> None:
        """Count *assignment*, and so many bytes *beside* it, to who asks for it at a door; then assign it.

        Raises:
            OwnerFull: they keep too much; nothing of it may be kept.
        """
        size = len(first_letter(assignment).body) + beside
        await self.bounds.demand(
            assignment.asked_by, assignment.user_id, _as_holding(assignment, size)
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
        holding = _as_holding(assignment, len(letter.body))
        if room == "refusable":
            if not await self._has_ended(assignment):
                await self.bounds.demand(
                    assignment.asked_by, assignment.user_id, holding
                )
        elif room == "counted":
            await self.bounds.count(assignment.asked_by, assignment.user_id, holding)
        waits = assignment.not_before is None and not await self._is_open(
            assignment.agent_id
        )
        await self._outbox.put(
            assignment.waits_on if waits else letter.subject,
            letter.body,
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
        stored = StoredTask(
            task_id,
            generation=1,
            body=letter.body,
            trace=str(tracing.current() or ""),
            row=row_of(assignment, 1, assignment.agent_id),
            due_at_ms=due_at_ms,
        )
        await self._unnoted.note(stored)

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
        return await self._unnoted.note_each()

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


def _as_holding(assignment: TaskAssignment, size: int) -> Holding:
    """Return *assignment* as its owner keeps it, in *size* bytes: until the ledger forgets it, if no end is noted."""
    starts_in = max(timedelta(0), assignment.waits_from - assignment.created_at)
    keep = starts_in + HOLDING_KINDS["tasks"].keep
    return Holding("tasks", size, assignment.task_id, keep)
