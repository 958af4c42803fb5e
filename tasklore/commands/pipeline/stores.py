"""The servers of these commands, open, and a run as it is read from them."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from tasklore.commands.places import open_redis
from tasklore.contracts.errors import UnknownSession
from tasklore.contracts.identifiers import checked_name
from tasklore.memory.projects.project import ProjectMemory
from tasklore.memory.sessions.pipeline_records import RunRecord
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tasklore.runtime.servers import valkey
from tasklore.runtime.settings import Settings

#: Seconds for one read: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0


@dataclass(frozen=True, slots=True)
class Look:
    """A run at one time: its `record` while the session exists, its `outcome` once it has ended.

    `away` are agents of running phases without a live worker.
    """

    session_id: str
    record: RunRecord | None
    outcome: dict[str, Any] | None
    away: frozenset[str] = frozenset()

    @property
    def state(self) -> str:
        """The state, as `RunRecord.state`; "gone" when nothing is left of the run."""
        if self.record is not None:
            return self.record.state
        return str(self.outcome["state"]) if self.outcome is not None else "gone"

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.state != "running"

    @property
    def running_agents(self) -> frozenset[str]:
        """The agents of running phases."""
        if self.record is None or self.is_over:
            return frozenset()
        running = {
            name
            for name, state in self.record.phases.items()
            if state.status == "running"
        }
        phases = (
            phase for phase in self.record.pipeline.phases if phase.name in running
        )
        return frozenset(agent for phase in phases for agent in phase.agents)


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of sessions, runs and projects, open."""

    runs: PipelineRuns
    cache: SessionCache
    projects: ProjectMemory

    async def look(self, session_id: str) -> Look:
        """Return the run as it is now.

        Raises:
            MemoryUnavailable: Redis did not answer.
        """
        record = await self.runs.read(session_id)
        if record is not None and record.state == "running":
            return Look(session_id, record, None)
        # An outcome may be of an earlier run of the same session; it is read only for a run that has ended.
        outcome = await self.runs.outcome(session_id)
        return Look(
            session_id, record, json.loads(outcome) if outcome is not None else None
        )

    async def find(self, session_id: str) -> Look:
        """Return the run as it is now.

        Raises:
            UnknownSession: there is no such run, or its outcome has expired.
            InvalidInput: *session_id* is no name.
            MemoryUnavailable: Redis did not answer.
        """
        look = await self.look(checked_name(session_id, "SESSION"))
        if look.state == "gone":
            raise UnknownSession(
                f"no run {session_id!r} is known, or its time is over; `tasklore pipeline list` shows those there are"
            )
        return look

    async def find_record(self, session_id: str) -> RunRecord:
        """Return a run whose session exists.

        Raises:
            UnknownSession: it does not; the message names the cure.
            InvalidInput: *session_id* is no name.
        """
        look = await self.find(session_id)
        if look.record is not None:
            return look.record
        evidence = (look.outcome or {}).get("evidence")
        cure = (
            f"`tasklore pipeline resume --evidence {evidence}` restores it"
            if evidence
            else "run the pipeline anew"
        )
        raise UnknownSession(
            f"the run {session_id!r} is {look.state} and its session is gone; {cure}"
        )


@contextlib.asynccontextmanager
async def open_stores(name: str = "tasklore-pipeline") -> AsyncIterator[Stores]:
    """Open the sessions and runs of the system that runs here.

    Raises:
        Unreachable: no system runs here, or its Redis does not answer.
    """
    settings = Settings.load()
    async with open_redis(name, 2 * _DEADLINE_S) as client:
        yield stores_on(client, max_value_bytes=settings.session_value_max_bytes)


def stores_on(client: valkey.Valkey, **cache_options: Any) -> Stores:
    """Return the stores over a connection that is open."""
    return Stores(
        PipelineRuns(client, deadline_s=_DEADLINE_S),
        SessionCache(client, deadline_s=_DEADLINE_S, **cache_options),
        ProjectMemory(client, deadline_s=_DEADLINE_S),
    )
