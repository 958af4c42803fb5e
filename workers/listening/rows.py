"""The part that work on turns and work on facts share: rows of one user in groups, closed under their claim."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import structlog
from pydantic import BaseModel

from tasklore.contracts.messages import ExtractedFacts
from tasklore.memory.queues.claims import Claim, Closing, QueueRow
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.claim_loop import LeaseLost
from tasklore.runtime.metrics import Metrics
from tasklore.workers.context.services import Services
from tasklore.workers.execution.retry_decision import RetryPolicy
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.declaration import Listener
from tasklore.workers.listening.row_outcomes import Fate

log = structlog.get_logger(__name__)

T = TypeVar("T")

#: What a lost lease says.
LEASE_ENDED = "the lease ended while its rows were worked on"


@dataclass
class RowWork:
    """Works on the rows of one user at a time, with the function of *listener*.

    *services* are lent to its contexts, *retry* says when a row runs again, *agent_files* is the operator's folder over
    the agents' own files.
    """

    listener: Listener
    settings: BaseModel | None
    queue: PersonalQueue = field(kw_only=True)
    services: Services = field(kw_only=True)
    meter: Metrics = field(kw_only=True)
    retry: RetryPolicy = field(kw_only=True)
    agent_files: Path | None = field(default=None, kw_only=True)
    agent_id: str = field(default="", kw_only=True)

    @property
    def max_attempts(self) -> int:
        """Runs that a row may have."""
        return self.listener.attempts or 1

    def context(self, user_id: str, attempt: int, **more: Any) -> ListenContext:
        """Return a context for one run; *more* are arguments of `ListenContext`."""
        deadline = self.listener.deadline
        return ListenContext(
            user_id,
            self.services,
            settings=self.settings,
            attempt=attempt,
            deadline=None if deadline is None else self.services.now() + deadline,
            agent_files=self.agent_files,
            count_refused=self.meter.count_edit_refused,
            agent_id=self.agent_id,
            **more,
        )

    async def close(self, claim: Claim, closings: Sequence[Closing]) -> None:
        """Close rows of *claim*.

        Raises:
            LeaseLost: another process has claimed them.
        """
        if not await self.queue.close(claim, closings):
            raise LeaseLost(LEASE_ENDED)

    def closings_of(self, rows: Sequence[QueueRow], fate: Fate) -> list[Closing]:
        """Return how *fate*, which is no outage, closes *rows*."""
        if fate.state != "retry":
            state: Literal["needs_model", "failed"] = (
                "needs_model" if fate.state == "needs_model" else "failed"
            )
            return [
                Closing(row_id=row.row_id, state=state, reason=fate.reason)
                for row in rows
            ]
        not_before_ms = int((self.services.now().timestamp() + fate.pause_s) * 1000)
        return [
            Closing(
                row_id=row.row_id,
                state="retry",
                reason=fate.reason,
                not_before_ms=not_before_ms,
            )
            for row in rows
        ]


def group_rows(
    found: Sequence[T], row_of: Callable[[T], QueueRow], most: int
) -> list[list[T]]:
    """Return *found* in order, in groups of at most *most*.

    A row that failed before is alone in its group: the rows after it must not fail with it again.
    """
    groups: list[list[T]] = []
    for one in found:
        is_joining = (
            bool(groups) and len(groups[-1]) < most and not is_suspect(row_of(one))
        )
        if is_joining and not is_suspect(row_of(groups[-1][0])):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def fact_rows(extracted: ExtractedFacts) -> tuple[tuple[str, bytes], ...]:
    """Return the facts of *extracted* as rows, each the id of one and a message with it alone."""
    return tuple(
        (
            fact.fact_id,
            extracted.model_copy(update={"facts": (fact,)})
            .model_dump_json(exclude_none=True)
            .encode(),
        )
        for fact in extracted.facts
    )


def is_suspect(row: QueueRow) -> bool:
    """Return whether a run of *row* failed or crashed before."""
    return row.attempts > 0 or row.crashes > 0
