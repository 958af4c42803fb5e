"""The store of schedules: records by id, how far each is, when to look at it, and whose it is."""

import builtins
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import Field, JsonValue
from redis.asyncio import Redis

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.callers import Caller, owner_of
from tasklore.contracts.identifiers import Name, user_token
from tasklore.contracts.message_parts import Part
from tasklore.memory import keys
from tasklore.memory.command_batch import CommandBatch
from tasklore.memory.records.owned import OwnedRecords, RecordBounds, RecordPlace

#: Schedules for one user, of one maker (a tenant, or a key without one), and of all together.
MOST_OF_USER = 100
MOST_OF_MAKER = 1_000
MOST = 5_000
#: How many of all are kept free for the code of agents and for operators.
RESERVED = 1_000
#: Stands for the code of agents among the owners; no user token has it.
_CODE = "~code"
#: Stands among the supervisor ids with schedules once all are listed; none is called so.
_COMPLETE = "~complete"


class Schedule(Part):
    """One schedule: a task of an agent with its parameters, or a pipeline as declared with its inputs.

    `anchor` is where `every_s` counts from. `declared` schedules stand in the code of their agent. `keep` leaves the
    session of a pipeline there after success. `caller` is its maker, whose the tasks of its ticks are; None where the
    code of an agent or an operator made it, and in a record of 0.2. `version` grows with
    each change; `by` and `at` say who made the last one, and when.
    """

    id: Name
    timing: Timing
    agent_id: Name | None = None
    task: Name | None = None
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    pipeline: dict[str, JsonValue] | None = None
    keep: bool = False
    user_id: str | None = None
    caller: Caller | None = None
    paused: bool = False
    declared: bool = False
    anchor: datetime
    created_by: str = ""
    created_at: datetime
    changed_by: str = ""
    changed_at: datetime
    version: int = 1

    @property
    def target(self) -> str:
        """The name of the task or pipeline, as people write it."""
        return (
            f"{self.agent_id}.{self.task}"
            if self.pipeline is None
            else f"pipeline {self.pipeline.get('name')}"
        )

    def tick_id(self, supervisor_id: str, tick: datetime) -> str:
        """Return the id of the task, or session, of a tick: the same in every process."""
        whole = hashlib.blake2b(
            f"{supervisor_id} {self.id}".encode(), digest_size=4
        ).hexdigest()
        return f"{self.id}-{whole}-{int(tick.timestamp())}"


class ScheduleState(NamedTuple):
    """How far a schedule is: its `next` tick, None for none; the last one and its task; why that began nothing.

    `missed` counts ticks that passed while no supervisor ran and were not made up for.
    """

    next: datetime | None = None
    last: datetime | None = None
    task_id: str | None = None
    missed: int = 0
    problem: str = ""

    def spell(self) -> str:
        """Return it as it is stored."""
        at = [
            None if one is None else int(one.timestamp() * 1000)
            for one in (self.next, self.last)
        ]
        return json.dumps([*at, *self[2:]])

    @classmethod
    def read(cls, body: bytes) -> "ScheduleState":
        """Return the state that *body* spells."""
        following, last, *rest = json.loads(body)
        times = [
            None if one is None else datetime.fromtimestamp(one / 1000, UTC)
            for one in (following, last)
        ]
        return cls._make([*times, *rest])


class KeptSchedule(NamedTuple):
    """A schedule and how far it is."""

    schedule: Schedule
    state: ScheduleState


class ScheduleStore:
    """Keeps the schedules of one supervisor id; every method raises MemoryUnavailable without an answer in time.

    Args:
        client: A client that does not decode responses.
        supervisor_id: Whose schedules.
        deadline_s: Seconds for one round trip.
    """

    def __init__(
        self, client: Redis, supervisor_id: str, *, deadline_s: float = 1.0
    ) -> None:
        self._batch = CommandBatch(client, deadline_s, has_large_replies=True)
        self._records = OwnedRecords[KeptSchedule](
            self._batch, keys.schedules(supervisor_id), read=_read, place=_place_of
        )
        self._supervisor_id = supervisor_id

    async def put(
        self, schedule: Schedule, state: ScheduleState, look_at: datetime | None
    ) -> int:
        """Store *schedule*, its version one above that which is there, 1 for a new one; return 1 when that is done.

        0 means that another version is there, -1 that its user has `MOST_OF_USER`, -2 that there are `MOST`, or all
        that makers may have, -3 that its maker has `MOST_OF_MAKER`.
        """
        maker = owner_of(schedule.caller)
        bounds = RecordBounds(
            of_owner=MOST_OF_USER if schedule.user_id else MOST,
            of_maker=MOST_OF_MAKER,
            of_all=MOST - RESERVED if maker else MOST,
        )
        # First, so that no schedule of a user is ever unknown to forgetting.
        await self._batch.run([("SADD", keys.schedule_books(), self._supervisor_id)])
        return await self._records.put(
            RecordPlace(schedule.id, _owner_of(schedule), maker),
            schedule.model_dump_json(),
            version=schedule.version,
            state=state.spell(),
            look_at=look_at,
            bounds=bounds,
        )

    async def is_idle(self) -> bool:
        """Return whether there is no schedule to look at, now or later."""
        return await self._records.is_idle()

    async def due(self, now: datetime, lease_ms: int, limit: int) -> list[str]:
        """Return ids that are due, the longest first; no other process is given them for *lease_ms*."""
        return await self._records.take(now, lease_ms=lease_ms, limit=limit)

    async def advance(
        self, kept: KeptSchedule, state: ScheduleState, look_at: datetime | None
    ) -> bool:
        """Note that *kept* has come to *state*; False when it was changed, removed or noted meanwhile."""
        return await self._records.note(
            kept.schedule.id,
            version=kept.schedule.version,
            before=kept.state.spell(),
            state=state.spell(),
            look_at=look_at,
        )

    async def remove(self, schedule: Schedule) -> bool:
        """Remove *schedule*; False when it was gone."""
        return await self._records.remove(
            _place_of(KeptSchedule(schedule, ScheduleState()))
        )

    async def read(self, *ids: str) -> list[KeptSchedule | None]:
        """Return the schedule of each of *ids*, None for one that is not there."""
        return await self._records.read(*ids)

    async def list(
        self,
        user_id: str | None = None,
        *,
        after: str = "",
        limit: int = 200,
        declared: bool = False,
    ) -> Sequence[KeptSchedule]:
        """Return at most *limit* schedules, *after* an id of the page before: those of a user, *declared* ones, or all.

        Of all, those of each owner are together; of one owner they are in the order of their ids.
        """
        owner = (
            _CODE if declared else user_token(user_id) if user_id is not None else None
        )
        return await self._records.list(owner, after=after, limit=limit)

    async def count_of(self, user_id: str) -> int:
        """Return how many schedules a user has."""
        return await self._records.count(user_token(user_id))

    async def forget(self, user_id: str) -> int:
        """Remove the schedules of a user, and return how many there were."""
        return await self._records.forget(user_token(user_id))


class UserSchedules:
    """The schedules of a user, of every supervisor id, so that forgetting them finds these too."""

    def __init__(self, client: Redis, *, deadline_s: float = 1.0) -> None:
        self._client = client
        self._batch = CommandBatch(client, deadline_s)
        self._deadline_s = deadline_s

    async def count(self, user_id: str) -> int:
        """Return how many there are."""
        return sum([await one.count_of(user_id) for one in await self._stores()])

    async def forget(self, user_id: str) -> int:
        """Remove them, and return how many there were."""
        return sum([await one.forget(user_id) for one in await self._stores()])

    async def _stores(self) -> builtins.list[ScheduleStore]:
        listed = (await self._batch.run([("SMEMBERS", keys.schedule_books())]))[0]
        supervisors = {one.decode() for one in listed}
        if _COMPLETE not in supervisors:
            supervisors = await self._scan()
        return [
            ScheduleStore(self._client, one, deadline_s=self._deadline_s)
            for one in sorted(supervisors - {_COMPLETE})
        ]

    async def build_index(self) -> None:
        """List the supervisor ids of all schedules, and say that all are listed.

        Looks at every key of the server once: for what 0.2 stored. No process of 0.2 may store more from then on.
        """
        found = await self._scan()
        listed = ("SADD", keys.schedule_books(), _COMPLETE, *sorted(found))
        await self._batch.run([listed])

    async def _scan(self) -> set[str]:
        """Return the supervisor ids of all schedules by the keys of the server."""
        pattern = keys.schedules("any").records.replace("any", "*")
        cursor = b"0"
        found = set[bytes]()
        while True:
            scan = ("SCAN", cursor, "MATCH", pattern, "COUNT", 1_000, "TYPE", "hash")
            cursor, page = (await self._batch.run([scan]))[0]
            found.update(page)
            if int(cursor) == 0:
                break
        return {one.decode().partition("{")[2].rstrip("}") for one in found}


def _owner_of(schedule: Schedule) -> str:
    if schedule.declared:
        return _CODE
    return user_token(schedule.user_id) if schedule.user_id else ""


def _place_of(kept: KeptSchedule) -> RecordPlace:
    schedule = kept.schedule
    return RecordPlace(schedule.id, _owner_of(schedule), owner_of(schedule.caller))


def _read(record: bytes, state: bytes) -> KeptSchedule:
    return KeptSchedule(Schedule.model_validate_json(record), ScheduleState.read(state))
