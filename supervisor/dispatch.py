"""Dispatch: an assignment goes out once it is durably stored, and the ledger knows of it.

First the stream, then the ledger. In the other order a task that the stream refuses would be in the ledger as
accepted, and be started when the stream is made anew, although its sender was told that it was not. In this order a
process that dies between the two leaves a task that runs and is reported; only the loss of the stream, in the time
before its first run, would lose it too. Its sender was not told yet that it is accepted, and asks again under the same
id. What the ledger could not be told because it was away is told later, by `tell_ledger`.
"""

from typing import NamedTuple

import structlog

from contracts import subjects
from contracts.errors import MemoryUnavailable
from contracts.identifiers import user_token
from contracts.messages import ChatTurn, TaskAssignment
from memory.ledger.ledger import Ledger
from runtime import tracing
from runtime.messaging.outbox import Outbox

log = structlog.get_logger(__name__)

#: Bytes of assignments kept for a ledger that is away: minutes of a few hundred a second.
_MOST_UNTOLD_BYTES = 64 * 1024 * 1024


class _Untold(NamedTuple):
    """An assignment as it was published, and what it belongs to, as a `TraceContext` is spelled."""

    body: bytes
    trace: str


class Dispatch:
    """Sends assignments, and sees to it that the ledger knows every one that was stored."""

    def __init__(self, outbox: Outbox, ledger: Ledger) -> None:
        self._outbox = outbox
        self._ledger = ledger
        #: Stored, and not known to be in the ledger; the oldest first.
        self._untold: dict[str, _Untold] = {}
        self._untold_bytes = 0

    async def assign(self, assignment: TaskAssignment, *, patience_s: float = 10.0) -> None:
        """Publish *assignment*; returns when it is durably stored and the ledger knows of it, or will.

        Raises:
            QueueFull: as much waits as may; nothing was started.
            NotAccepted: it is not known to be stored; send it again with the same task id.
            MessageTooLarge: its parameters do not fit into a message; nothing was started.
        """
        task_id, body = assignment.task_id, assignment.model_dump_json(exclude_none=True).encode()
        await self._outbox.put(
            subjects.task(assignment.agent_id, assignment.task.name),
            body,
            subjects.task_message_id(task_id, 1),
            headers={subjects.GENERATION_HEADER: "1", subjects.ATTEMPT_HEADER: "1"},
            patience_s=patience_s,
        )
        trace = str(tracing.current() or "")
        self._keep(task_id, _Untold(body, trace))
        try:
            await self._ledger.accept(task_id, 1, body, trace)
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
        await self._outbox.put(subjects.turns(user_id), body, message_id, patience_s=patience_s)

    async def tell_ledger(self) -> int:
        """Tell the ledger what it does not know yet, and return how many tasks that were.

        Raises:
            MemoryUnavailable: it is away; what is left stays for the next time.
        """
        told = 0
        while self._untold:
            task_id, untold = next(iter(self._untold.items()))
            await self._ledger.accept(task_id, 1, *untold)
            self._drop(task_id)
            told += 1
        return told

    def _keep(self, task_id: str, untold: _Untold) -> None:
        self._drop(task_id)
        self._untold[task_id] = untold
        self._untold_bytes += len(untold.body)
        while self._untold_bytes > _MOST_UNTOLD_BYTES:
            oldest = next(iter(self._untold))
            log.warning("never_in_ledger", task_id=oldest)
            self._drop(oldest)

    def _drop(self, task_id: str) -> None:
        if (untold := self._untold.pop(task_id, None)) is not None:
            self._untold_bytes -= len(untold.body)
