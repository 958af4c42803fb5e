"""Where a storm takes place: servers, two supervisors and two workers out of one forge, and somebody who asks."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import nats
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.messages import PipelineReply, PipelineRequest
from tasklore.memory import keys
from tasklore.memory.sessions.pipeline_records import RunRecord
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.memory.sessions.session import SessionCache
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.chaos.forged import Forged
from tests.acceptance.chaos.history import Event, Follower, History
from tests.acceptance.chaos.smith import Smith
from tests.acceptance.faults.cast import Cast
from tests.acceptance.pipeline_storm.agent import FOLDER_VARIABLE, agent, hold_of
from tests.acceptance.pipeline_storm.nine_phases import PIPELINE
from tests.acceptance.system import QUICK

AGENT = "tests.acceptance.pipeline_storm.agent"
SUPERVISOR = "storm"
#: Of each role: one that is killed, and one that goes on.
EACH = 2
#: Seconds for whatever is waited for: far above what it takes on a busy machine.
PATIENCE_S = 90.0
#: Seconds between looks at what makes no event.
LOOK_S = 0.005
#: Settings under which a killed process is missed soon.
SETTINGS = {
    "TASKLORE_ACK_WAIT_S": "2",
    "TASKLORE_PIPELINE_LEASE_S": "1",
    "TASKLORE_SUPERVISOR_ID": SUPERVISOR,
    "TASKLORE_LOG_LEVEL": "warning",
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Execution:
    """One time that a phase ran: *ended_at* is None when it was killed in between; seconds since 1970."""

    phase: str
    task_id: str
    pid: int
    started_at: float
    ended_at: float | None


@dataclass(eq=False)
class Stage:
    """A stage; *cast* are the processes that serve."""

    folder: Path
    cast: Cast
    client: Client
    redis: Redis
    runs: PipelineRuns
    cache: SessionCache
    _events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Follow what the agents write down."""
        self._follower = Follower(self.folder / "journal")

    async def begin(self, deed: str = "") -> None:
        """Return once all serve; every supervisor commits *deed*, see `sabotage`."""
        await self.cast.begin(
            {"worker": EACH, "supervisor": EACH}, deeds={"supervisor": deed}
        )
        await self.until(self._is_known)

    async def ask(self, request: PipelineRequest) -> PipelineReply:
        """Return what a supervisor says to *request*."""
        body = request.model_dump_json(exclude_none=True).encode()
        reply = await self.client.request(
            subjects.pipelines(SUPERVISOR), body, timeout=PATIENCE_S
        )
        return PipelineReply.model_validate_json(reply.data)

    async def start(self, session_id: str, number: int) -> None:
        """Start a run that is kept, for *number*."""
        reply = await self.ask(
            PipelineRequest(
                action="run",
                session_id=session_id,
                pipeline=PIPELINE.model_dump(mode="json"),
                inputs={"number": number},
                keep=True,
            )
        )
        if reply.kind != "accepted":
            raise RuntimeError(f"run {session_id!r} was not taken up: {reply}")

    async def record(self, session_id: str) -> RunRecord:
        """Return the run that there must be."""
        record = await self.runs.read(session_id)
        assert record is not None, session_id
        return record

    async def outcome(self, session_id: str) -> dict[str, Any]:
        """Return how the run ended, once it has."""
        found: dict[str, Any] = json.loads(
            await self.until(lambda: self.runs.outcome(session_id))
        )
        return found

    async def driver(self, session_id: str) -> Forged:
        """Return the supervisor that drives the run, once one does."""

        async def found() -> Forged | None:
            holder = (await self.record(session_id)).holder or ""
            return next(
                (
                    one
                    for one in self.cast.serving["supervisor"]
                    if str(one.pid) in holder.split("-")
                ),
                None,
            )

        return await self.until(found)

    def executions(self, session_id: str) -> list[Execution]:
        """Return every time that a phase of the run was run so far, by when it started."""
        self._events += self._follower.news()
        mine = [
            event
            for event in self._events
            if event.about.partition("/")[0] == session_id
        ]
        ends = {
            (event.task, event.pid): event.at
            for event in mine
            if event.kind == "run-end"
        }
        return [
            Execution(
                event.about.partition("/")[2],
                event.task,
                event.pid,
                event.at,
                ends.get((event.task, event.pid)),
            )
            for event in sorted(mine, key=lambda event: event.at)
            if event.kind == "run-start"
        ]

    async def started(self, session_id: str, phase: str) -> Execution:
        """Return the first execution of *phase*, once it has started."""

        async def found() -> Execution | None:
            return next(
                (one for one in self.executions(session_id) if one.phase == phase), None
            )

        return await self.until(found)

    async def reported_at(self, task_id: str) -> float | None:
        """Return when the report of a task was stored, in seconds since 1970; None while it is not."""
        subject = (
            f"$JS.API.DIRECT.GET.REPORTS.{subjects.report(SUPERVISOR, task_id, 1)}"
        )
        headers = (
            await self.client.request(subject, b"", timeout=PATIENCE_S)
        ).headers or {}
        stored = headers.get("Nats-Time-Stamp")
        return None if stored is None else datetime.fromisoformat(stored).timestamp()

    async def waiting_tasks(self) -> int:
        """Return how many tasks lie in their stream."""
        return (await self.client.jetstream().stream_info("TASKS")).state.messages

    async def until(self, attempt: Callable[[], Awaitable[T | None]]) -> T:
        """Return what *attempt* returns once that is something.

        Raises:
            TimeoutError: it is nothing for `PATIENCE_S`, or a process has died that nobody killed.
        """
        gives_up_at = time.monotonic() + PATIENCE_S
        while not (found := await attempt()):
            dead = self.cast.dead
            if dead or time.monotonic() > gives_up_at:
                logs = [
                    path.name
                    for path in (self.folder / "served").glob("*.log")
                    if path.stat().st_size
                ]
                raise TimeoutError(
                    f"waited in vain; died by themselves: {dead}; logs with words: {logs}"
                )
            await asyncio.sleep(LOOK_S)
        return found

    def hold(self, session_id: str, phase: str) -> Path:
        """Keep *phase* of a run from ending; return the file to be removed."""
        held = hold_of(self.folder, session_id, phase)
        held.touch()
        return held

    async def _is_known(self) -> bool:
        """Return whether supervisors know the agent by its card."""
        bucket = await self.client.jetstream().key_value(subjects.AGENTS_BUCKET)
        with contextlib.suppress(nats.js.errors.KeyNotFoundError):
            return (await bucket.get(agent.agent_id)).value is not None
        return False

    async def drives_nothing(self) -> bool:
        """Return whether no run is listed as running."""
        return not await self.redis.exists(keys.running(SUPERVISOR))


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    """Put up a stage without a process that serves, with data and logs below *folder*."""
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(
            EmbeddedServers(folder / "servers", "standard")
        )
        smith = await stack.enter_async_context(Smith([AGENT], folder / "served"))
        client = await nats.connect(servers.nats_url)
        stack.push_async_callback(client.close)
        redis = await stack.enter_async_context(
            valkey.connect(servers.redis_url, deadline_s=PATIENCE_S)
        )
        environment = {
            **QUICK,
            **SETTINGS,
            "TASKLORE_NATS_URL": servers.nats_url,
            "TASKLORE_REDIS_URL": servers.redis_url,
            "TASKLORE_EVIDENCE_DIR": str(folder / "evidence"),
            FOLDER_VARIABLE: str(folder),
        }
        history = stack.enter_context(contextlib.closing(History(folder / "history")))
        runs = PipelineRuns(redis, deadline_s=PATIENCE_S)
        cache = SessionCache(redis, deadline_s=PATIENCE_S)
        cast = Cast(smith, history, environment)
        stack.push_async_callback(cast.close)
        yield Stage(folder, cast, client, redis, runs, cache)
