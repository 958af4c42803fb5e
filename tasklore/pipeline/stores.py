"""What the commands on pipelines share: the servers, open, and how a run is looked at."""

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from nats.aio.client import Client

from contracts.errors import UnknownSession
from contracts.identifiers import checked_name
from memory.projects.project import ProjectMemory
from memory.sessions.pipeline_records import RunRecord
from memory.sessions.pipeline_runs import PipelineRuns
from memory.sessions.session import SessionCache
from runtime.messaging.connection import Listener, connected
from runtime.servers import valkey
from runtime.settings import Settings
from tasklore.places import current_endpoints, demand_listener

#: Seconds for one look: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0


@dataclass(frozen=True, slots=True)
class Look:
    """A run as it is found: its `record` while the session is there, its `outcome` once it has ended.

    `away` are agents of running phases that have no live worker; none when nobody looked for workers.
    """

    session_id: str
    record: RunRecord | None
    outcome: dict[str, Any] | None
    away: frozenset[str] = frozenset()

    @property
    def state(self) -> str:
        """How far it is, as `RunRecord.state`; "gone" when nothing is known of it."""
        if self.record is not None:
            return self.record.state
        return str(self.outcome["state"]) if self.outcome is not None else "gone"

    @property
    def begun_agents(self) -> frozenset[str]:
        """The agents whose phases are under way."""
        if self.record is None or self.is_over:
            return frozenset()
        phases = self.record.phases
        under_way = {name for name, state in phases.items() if state.status == "running"}
        at_work = [phase.agents for phase in self.record.pipeline.phases if phase.name in under_way]
        return frozenset(chain.from_iterable(at_work))

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.state != "running"


@dataclass(frozen=True, slots=True)
class Stores:
    """Where sessions and runs are kept, open."""

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
        # What it left may be of an earlier run of the same session; only what has ended is asked for it.
        told = await self.runs.outcome(session_id)
        return Look(session_id, record, json.loads(told) if told is not None else None)

    async def found(self, session_id: str) -> Look:
        """Return the run as it is now, when there is one.

        Raises:
            UnknownSession: there is none, and how it ended is not known any more.
            InvalidInput: *session_id* is none.
            MemoryUnavailable: Redis did not answer.
        """
        look = await self.look(checked_name(session_id, "SESSION"))
        if look.record is None and look.outcome is None:
            raise UnknownSession(
                f"no run {session_id!r} is known, or its time is over; `tasklore pipeline list` shows those there are"
            )
        return look


@contextlib.asynccontextmanager
async def open_stores(name: str = "tasklore-pipeline") -> AsyncIterator[Stores]:
    """Open the sessions and runs of the system that runs here.

    Raises:
        Unreachable: there is none, or its Redis does not answer.
    """
    url, settings = current_endpoints().redis_url, Settings.load()
    await demand_listener(url)
    async with valkey.connect(url, name=name, deadline_s=2 * _DEADLINE_S) as client:
        await client.check()
        cache = SessionCache(client, max_value_bytes=settings.session_value_max_bytes, deadline_s=_DEADLINE_S)
        projects = ProjectMemory(client, deadline_s=_DEADLINE_S)
        yield Stores(PipelineRuns(client, deadline_s=_DEADLINE_S), cache, projects)


@contextlib.asynccontextmanager
async def open_wire(listener: Listener | None = None) -> AsyncIterator[Client]:
    """Open a connection to the NATS of the system that runs here.

    Raises:
        Unreachable: there is none, or it does not answer.
    """
    url = current_endpoints().nats
    await demand_listener(url)
    async with connected(url, "tasklore-pipeline", listener) as client:
        yield client
