"""The book of schedules: it checks, adds, changes and removes them, and declares those in the code of agents."""

import hashlib
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import structlog

from tasklore.contracts.callers import Caller, tenant_of
from tasklore.contracts.errors import InvalidInput, OwnerFull, QueueFull
from tasklore.contracts.identifiers import new_id
from tasklore.memory.schedules.store import (
    MOST,
    MOST_OF_MAKER,
    MOST_OF_USER,
    RESERVED,
    KeptSchedule,
    Schedule,
    ScheduleState,
    ScheduleStore,
)
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.makers import Makers
from tasklore.supervisor.schedules.ticks import find_faults, ticks_after

log = structlog.get_logger(__name__)

#: How long before a tick its task is put into LATER: a supervisor that is killed is replaced in between.
AHEAD = timedelta(seconds=5)
#: Bytes of parameters, of a pipeline with its inputs, and letters of an id, which that of its tasks begins with.
MOST_BYTES = 16 * 1024
MOST_PIPELINE_BYTES = 64 * 1024
LONGEST_ID = 40
#: Times that a change is tried anew after a scheduler noted a tick in between.
_TRIES = 5

#: What there is too much of, by the answer of the store.
_FULL = {
    -1: f"{MOST_OF_USER:,} schedules of this user",
    -2: f"{MOST - RESERVED:,} schedules, and the last {RESERVED:,} places are the deployment's own,",
    -3: f"{MOST_OF_MAKER:,} schedules made with this key, or the keys of its tenant,",
}

#: A field and a complaint about it.
FieldFault = tuple[str, str]


class Unusable(InvalidInput):
    """A schedule cannot be kept as it is; each of `faults` names a field and the cure."""

    def __init__(self, faults: Iterable[FieldFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{where}: {words}" for where, words in self.faults))


class TakenId(InvalidInput):
    """There is a schedule of that id already, or others change it all the time."""


class ScheduleChange(NamedTuple):
    """A schedule after a change, and the task of a tick ahead that is to be cancelled, None for none."""

    kept: KeptSchedule
    withdrawn: str | None = None


class ScheduleBook:
    """Adds and changes the schedules of one supervisor id.

    Args:
        store: Where they are kept.
        catalogue: The agents as of now, whose tasks may be scheduled.
        now: The clock, in UTC.
        makers: Says whether the keys are there that schedules were made with; None: none is required.
    """

    def __init__(
        self,
        store: ScheduleStore,
        catalogue: Callable[[], Catalogue],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        makers: Makers | None = None,
    ) -> None:
        self.store = store
        self.now = now
        self.makers = makers or Makers()
        self._catalogue = catalogue

    def check(self, schedule: Schedule) -> ScheduleState:
        """Return the state in which *schedule* begins.

        Raises:
            Unusable: it cannot be kept; with every fault.
        """
        faults = find_faults(schedule.timing, self.now())
        if len(schedule.id) > LONGEST_ID:
            faults.append(
                ("id", f"has {len(schedule.id)} characters; {LONGEST_ID} are taken")
            )
        if (schedule.pipeline is None) == (
            schedule.task is None or schedule.agent_id is None
        ):
            faults.append(("task", "say either agent_id and task, or pipeline"))
        elif (
            schedule.pipeline is None
            and self._catalogue().find(schedule.agent_id or "", schedule.task or "")
            is None
        ):
            faults.append(
                (
                    "task",
                    f"no agent that is known has {schedule.target}; `tasklore agents list` shows them",
                )
            )
        whole = schedule.parameters
        where = "parameters"
        most = MOST_BYTES
        if schedule.pipeline is not None:
            whole = {**schedule.pipeline, "inputs": whole}
            where = "pipeline"
            most = MOST_PIPELINE_BYTES
        try:
            size = len(json.dumps(whole, allow_nan=False, ensure_ascii=False).encode())
        except (ValueError, RecursionError):
            faults.append((where, "only JSON in valid Unicode can be kept"))
        else:
            if size > most:
                faults.append(
                    (
                        where,
                        f"has {size:,} bytes, {most:,} are kept; store it elsewhere and name its place",
                    )
                )
        if faults:
            raise Unusable(faults)
        return ScheduleState(
            next(ticks_after(schedule.timing, self.now(), schedule.anchor), None)
        )

    async def add(self, schedule: Schedule) -> KeptSchedule:
        """Keep *schedule*, a new one; the same again changes nothing.

        Raises:
            Unusable: it cannot be kept.
            TakenId: its id is taken by another one.
            OwnerFull: its user or its maker has too many.
            QueueFull: there are too many of all.
            MemoryUnavailable: the store does not answer.
        """
        state = self.check(schedule)
        done = await self.store.put(schedule, state, look_at(schedule, state))
        if done == 1:
            return KeptSchedule(schedule, state)
        if done == 0:
            known = (await self.store.read(schedule.id))[0]
            if known is not None and _same(known.schedule, schedule):
                return known
            raise TakenId(
                f"there is another schedule {schedule.id!r}; choose another id, or remove that one first"
            )
        # Those of no user have no bound but that of all.
        is_of_all = done == -2 or (done == -1 and not schedule.user_id)
        full = _FULL[-2 if is_of_all else done]
        error = QueueFull if is_of_all else OwnerFull
        raise error(f"there are {full} already; remove one that is no longer needed")

    async def set_paused(
        self, schedule_id: str, by: Caller, *, paused: bool
    ) -> ScheduleChange | None:
        """Pause or resume a schedule; ticks that pass while it is paused are not missed. None: there is none.

        One whose maker's key is lost becomes that of *by*, who resumes it.

        Raises:
            Unusable: its ticks are all over.
            NotPermitted: *by* may not act for its tenant.
            MemoryUnavailable: the store does not answer.
        """
        fields: dict[str, object] = {"paused": paused}
        if not paused and (kept := (await self.store.read(schedule_id))[0]) is not None:
            maker = kept.schedule.caller
            if self.makers.find_loss(maker, "ask") is not None:
                fields["caller"] = self.makers.payer_of(by, maker, "ask")
        return await self._change(schedule_id, fields, by.name)

    async def remove(self, schedule_id: str) -> ScheduleChange | None:
        """Remove a schedule; None when there is none.

        Raises:
            InvalidInput: it stands in the code of its agent.
            MemoryUnavailable: the store does not answer.
        """
        kept = (await self.store.read(schedule_id))[0]
        if kept is None:
            return None
        offer = self._catalogue().find(
            kept.schedule.agent_id or "", kept.schedule.task or ""
        )
        if (
            kept.schedule.declared
            and offer is not None
            and offer.task.schedule is not None
        ):
            msg = f"{schedule_id!r} is defined in the code of {kept.schedule.target}; remove it there, or pause it"
            raise InvalidInput(msg)
        await self.store.remove(kept.schedule)
        return ScheduleChange(kept, self.find_ahead(kept.state))

    async def declare(self) -> None:
        """Make the schedules in the code of agents those that their cards say; a paused one stays paused.

        Raises:
            MemoryUnavailable: the store does not answer.
        """
        catalogue = self._catalogue()
        now = self.now()
        wanted = {
            _declared_id(agent_id, task.name): Schedule(
                id=_declared_id(agent_id, task.name),
                timing=task.schedule,
                agent_id=agent_id,
                task=task.name,
                declared=True,
                anchor=now,
                **stamps_of("code", now),
            )
            for agent_id, card in catalogue.cards.items()
            for task in card.tasks
            if task.schedule is not None
        }
        known = {
            kept.schedule.id: kept
            for kept in await self.store.list(declared=True, limit=MOST)
        }
        for kept in known.values():
            # Of an agent that is not known at all nothing is known: its card may come back.
            if (
                kept.schedule.id not in wanted
                and kept.schedule.agent_id in catalogue.cards
            ):
                await self.store.remove(kept.schedule)
        for schedule_id, schedule in wanted.items():
            try:
                if schedule_id not in known:
                    await self.add(schedule)
                elif known[schedule_id].schedule.timing != schedule.timing:
                    await self._change(
                        schedule_id, {"timing": schedule.timing, "anchor": now}, "code"
                    )
            except (InvalidInput, QueueFull) as error:
                log.warning(
                    "declared_schedule_refused",
                    schedule=schedule.target,
                    error=str(error),
                )

    async def _change(
        self, schedule_id: str, fields: dict[str, object], by: str
    ) -> ScheduleChange | None:
        for _ in range(_TRIES):
            kept = (await self.store.read(schedule_id))[0]
            if kept is None:
                return None
            if all(
                getattr(kept.schedule, name) == value for name, value in fields.items()
            ):
                return ScheduleChange(kept)
            stamp = {
                "version": kept.schedule.version + 1,
                "changed_by": by,
                "changed_at": self.now(),
            }
            changed = kept.schedule.model_copy(update={**fields, **stamp})
            state = kept.state._replace(
                next=self.check(changed).next if not changed.paused else kept.state.next
            )
            if "caller" in fields:
                state = state._replace(problem="")
            if await self.store.put(changed, state, look_at(changed, state)) == 1:
                withdrawn = (
                    self.find_ahead(kept.state)
                    if changed.paused or "timing" in fields
                    else None
                )
                return ScheduleChange(KeptSchedule(changed, state), withdrawn)
        raise TakenId(f"{schedule_id!r} is being changed by others; try again")

    def find_ahead(self, state: ScheduleState) -> str | None:
        """Return the task of the last tick when that is still to come."""
        return (
            state.task_id
            if state.last is not None and state.last > self.now()
            else None
        )


def look_at(schedule: Schedule, state: ScheduleState) -> datetime | None:
    """Return when a scheduler has to look at *schedule*, None for never."""
    return None if schedule.paused or state.next is None else state.next - AHEAD


def make_id(name: str) -> str:
    """Return the id of a schedule of the task, or pipeline, *name*, unlike any other."""
    return f"{name[:24]}-{new_id(0).replace('-', '')[-10:]}"


def stamps_of(by: str, now: datetime) -> dict[str, Any]:
    """Return the fields of a new schedule that say who made it, and when."""
    return {"created_by": by, "created_at": now, "changed_by": by, "changed_at": now}


def _declared_id(agent_id: str, task: str) -> str:
    return f"{task[:24]}-{hashlib.blake2b(f'{agent_id} {task}'.encode(), digest_size=5).hexdigest()}"


def _same(one: Schedule, other: Schedule) -> bool:
    """Return whether both run the same at the same times for the same user, and the tenant that *one* names."""
    names = ("timing", "agent_id", "task", "parameters", "pipeline", "user_id")
    is_of_tenant = tenant_of(one.caller) in (None, tenant_of(other.caller))
    return is_of_tenant and all(
        getattr(one, name) == getattr(other, name) for name in names
    )
