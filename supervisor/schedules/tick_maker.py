"""Making a tick: the task, or the run of a pipeline, that a schedule begins."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from tasklore.contracts.callers import Caller, tenant_of
from tasklore.contracts.errors import InvalidInput, MemoryUnavailable, NotAccepted
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import (
    PipelineReply,
    PipelineRequest,
    TaskAssignment,
    TaskCall,
)
from tasklore.memory.ledger.requests import RequestRecord, RequestRecords, place_of
from tasklore.memory.schedules.store import Schedule
from tasklore.runtime.task_caller import find_deadline
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.makers import Makers

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TickMaker:
    """Begins the work of schedules; *pipelines* answers requests about pipelines, *now* is the clock, in UTC."""

    supervisor_id: str
    catalogue: Callable[[], Catalogue]
    dispatch: Dispatch
    pipelines: Callable[[PipelineRequest], Awaitable[PipelineReply]]
    canceller: Canceller
    records: RequestRecords
    now: Callable[[], datetime]
    makers: Makers = field(default_factory=Makers)

    async def make(self, schedule: Schedule, tick: datetime) -> str:
        """Begin the work of *tick*, to run at that time or at once when it has passed; return its task or session id.

        Doing it again, in whichever process, begins nothing else.

        Raises:
            InvalidInput: it is refused for good, for a reason that a person can mend.
            NotAccepted: there is no room for it now.
        """
        task_id = schedule.tick_id(self.supervisor_id, tick)
        await self._begin(schedule, task_id, tick)
        return task_id

    async def run_now(self, schedule: Schedule, caller: Caller | None = None) -> str:
        """Begin the work of *schedule* once more, at once, as *caller* asks; return its task or session id.

        Raises:
            InvalidInput, NotAccepted: as `make`.
            NotPermitted: its maker's key is lost, and *caller* may not act for its tenant.
        """
        task_id = f"{schedule.id}-run-{time.time_ns() // 1_000_000}"
        asked = schedule.model_copy(
            update={"caller": self.makers.payer_of(caller, schedule.caller, "ask")}
        )
        await self._begin(asked, task_id, None)
        return task_id

    async def withdraw(self, task_id: str | None) -> None:
        """Cancel the task of a tick that is still to come; None is none."""
        if task_id is not None:
            try:
                await self.canceller.cancel(
                    task_id, "its schedule was paused or removed"
                )
            except (MemoryUnavailable, NotAccepted) as error:
                log.warning("tick_not_withdrawn", task_id=task_id, error=str(error))

    async def _begin(
        self, schedule: Schedule, task_id: str, tick: datetime | None
    ) -> None:
        now = self.now()
        if schedule.pipeline is not None:
            await asyncio.sleep(max(0.0, ((tick or now) - now).total_seconds()))
            reply = await self.pipelines(
                PipelineRequest(
                    action="run",
                    session_id=task_id,
                    pipeline=schedule.pipeline,
                    inputs=schedule.parameters,
                    user_id=schedule.user_id,
                    keep=schedule.keep,
                    caller=schedule.caller,
                )
            )
            if reply.kind != "accepted":
                raise InvalidInput(reply.text or "the pipeline was refused")
            return
        offer = self.catalogue().find(schedule.agent_id or "", schedule.task or "")
        if offer is None:
            raise InvalidInput(
                f"no agent that is known has {schedule.target}; start a worker, or remove this"
            )
        begins = max(tick or now, now)
        deadline = find_deadline(begins, offer.task.deadline_s)
        assignment = TaskAssignment(
            task_id=task_id,
            agent_id=offer.agent.agent_id,
            supervisor_id=self.supervisor_id,
            task=TaskCall(name=offer.task.name, parameters=schedule.parameters),
            created_at=begins,
            not_before=begins if tick is not None else None,
            deadline=deadline.at,
            has_own_deadline=deadline.is_own,
            max_attempts=offer.task.max_attempts,
            user_id=schedule.user_id,
            caller=schedule.caller,
        )
        await self.dispatch.assign(assignment)
        await self._note(schedule, task_id, begins)

    async def _note(self, schedule: Schedule, task_id: str, begins: datetime) -> None:
        """Note whose the work is: its user and its maker may look at it over HTTP, as at what they asked for."""
        spaces = set[str]()
        if schedule.user_id is not None:
            spaces.add(user_token(schedule.user_id))
        if schedule.caller is not None and schedule.caller.own_tenant is not None:
            spaces.add(schedule.caller.space)
        record = RequestRecord(
            digest=schedule.id,
            task_id=task_id,
            at_ms=int(begins.timestamp() * 1000),
            tenant=tenant_of(schedule.caller),
        )
        for space in sorted(spaces):
            await self.records.claim(place_of(space, "task-id", task_id), record)
