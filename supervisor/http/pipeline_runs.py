"""Runs of pipelines over HTTP: their owner, their state, and their events."""

import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Literal

import structlog
from pydantic import Field, JsonValue, RootModel

from tasklore.contracts.errors import MemoryUnavailable, TaskloreError
from tasklore.contracts.messages import PipelineEvent, PipelineEventKind
from tasklore.memory.ledger.requests import RequestRecord, place_of
from tasklore.supervisor.feed.runs import (
    RunFeedEvent,
    RunPosition,
    RunStanding,
    RunStep,
    follow_run,
)
from tasklore.supervisor.http.admission.keys import Caller
from tasklore.supervisor.http.event_streams import HEARTBEAT, StreamEvent
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.refusals import Refused, not_found, unavailable

log = structlog.get_logger(__name__)


class PhaseTold(View):
    """The state of one phase; see docs/reference/pipelines.md for the words."""

    phase: str
    status: str
    run: int
    task_id: str | None = None
    took_ms: int = 0
    computed_ms: int | None = None
    attempts: int = 0
    error_type: str | None = None
    error: str | None = None
    why: str = ""
    late: str = ""
    memory: str = ""
    saved_ms: int = 0


class RunTold(View):
    """A run: `phases` while its session is there, `outcome` for a day after its end, with its result."""

    session_id: str
    state: str
    pipeline: str | None = None
    version: int | None = None
    run: int | None = None
    project: str | None = None
    user: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    phases: tuple[PhaseTold, ...] = ()
    outcome: dict[str, JsonValue] | None = None


class RunStepEvent(StreamEvent):
    """A step of a run, as its driver says it."""

    event: PipelineEventKind
    data: PipelineEvent


class RunStateEvent(StreamEvent):
    """How the run stands now: the first event of a client that says no place."""

    event: Literal["state"]
    data: RunTold


class RunDoneEvent(StreamEvent):
    """How the run stands at its end; nothing follows."""

    event: Literal["done"]
    data: RunTold


class RunStreamEvent(
    RootModel[
        Annotated[
            RunStateEvent | RunStepEvent | RunDoneEvent, Field(discriminator="event")
        ]
    ]
):
    """One server-sent event of a run; `data` is shown as it is once its JSON is read."""


async def claim_run(parts: ApiParts, caller: Caller, session_id: str) -> None:
    """Note that *caller* started a run: the outcome of a completed one does not name its user.

    Raises:
        Refused: 503, that could not be noted, and the key of one user would not find the end of the run.
    """
    record = RequestRecord(
        digest="", task_id=session_id, at_ms=time.time_ns() // 1_000_000
    )
    try:
        await parts.records.claim(
            place_of(caller.space, "pipeline", session_id), record
        )
    except MemoryUnavailable as error:
        log.warning("run_not_noted", session=session_id, error=str(error))
        if caller.user is not None:
            raise unavailable(
                f"the run goes on, but that it is yours could not be kept; send it again with session_id {session_id!r}"
            ) from error


async def read_standing(
    parts: ApiParts, caller: Caller, session_id: str
) -> RunStanding:
    """Return how a run stands.

    Raises:
        Refused: 404, there is none, or it is another user's.
        MemoryUnavailable: the store did not answer in time.
    """
    record = await parts.runs.read(session_id)
    # An outcome may be of an earlier run of the same session; only a run that has ended is asked for it.
    is_running = record is not None and record.state == "running"
    outcome = None if is_running else await parts.runs.outcome(session_id)
    is_own = caller.user is None or (
        record is not None and record.user_id == caller.user
    )
    if not is_own and record is None:
        is_own = (
            await parts.records.find(place_of(caller.space, "pipeline", session_id))
        ).record is not None
    if not is_own or (record is None and outcome is None):
        raise not_found(
            f"no run {session_id!r} is known, or its time is over; GET /v1/pipelines lists those there are"
        )
    left = json.loads(outcome) if outcome is not None else None
    return RunStanding(session_id, record, left)


async def read_run(parts: ApiParts, caller: Caller, session_id: str) -> RunTold:
    """Return a run as it is now; errors as of `read_standing`."""
    return _view_run(await read_standing(parts, caller, session_id))


def _view_run(standing: RunStanding) -> RunTold:
    record = standing.record
    if record is None:
        return RunTold(
            session_id=standing.session_id,
            state=standing.state,
            outcome=standing.outcome,
        )
    return RunTold(
        session_id=standing.session_id,
        state=record.state,
        pipeline=record.pipeline.name,
        version=record.pipeline.version,
        run=record.run,
        project=record.project,
        user=record.user_id,
        created_at=datetime.fromtimestamp(record.created_ms / 1000, UTC),
        updated_at=datetime.fromtimestamp(record.updated_ms / 1000, UTC),
        phases=tuple(
            PhaseTold(phase=name, late=record.lateness(name), **asdict(state))
            for name, state in record.phases.items()
        ),
        outcome=standing.outcome,
    )


async def events_of(
    parts: ApiParts, caller: Caller, session_id: str, after: RunPosition | None
) -> AsyncGenerator[bytes, None]:
    """Yield the state of a run, or what happened behind *after*; its steps; and its state once it is over."""
    sources = parts.feeds.demand_sources()
    feed = follow_run(
        sources.link,
        session_id,
        look=partial(read_standing, parts, caller, session_id),
        after=after,
        leaving=parts.life.draining,
        beat_s=parts.heartbeat_s,
    )
    try:
        async with aclosing(feed):
            async for events in feed:
                yield b"".join(map(_encode, events)) or HEARTBEAT
    except (Refused, TaskloreError) as error:
        # It is no longer known, or the store does not answer: a client that comes back is told.
        log.info("run_not_followed", session=session_id, error=str(error))


def _encode(event: RunFeedEvent) -> bytes:
    name = "" if event.at is None else str(event.at)
    if isinstance(event, RunStep):
        step = RunStepEvent(id=name, event=event.event.kind, data=event.event)
        return step.encode()
    run = _view_run(event.standing)
    if event.is_end:
        return RunDoneEvent(id=name, event="done", data=run).encode()
    return RunStateEvent(id=name, event="state", data=run).encode()
