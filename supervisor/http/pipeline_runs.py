"""Runs of pipelines over HTTP: their owner, their state, and their events."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import structlog
from nats.aio.msg import Msg
from pydantic import BaseModel, JsonValue, ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import PipelineEvent
from tasklore.memory.ledger.requests import RequestRecord, place_of
from tasklore.supervisor.http.admission.keys import Caller
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import not_found, unavailable
from tasklore.supervisor.http.responses import View

log = structlog.get_logger(__name__)

#: Seconds between looks at a run without any news.
_LOOK_S = 1.0
#: Events that wait for a slow client; the state at the end makes up for those it missed.
_MOST_WAITING = 256


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


async def read_run(parts: ApiParts, caller: Caller, session_id: str) -> RunTold:
    """Return a run as it is now.

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
    left: dict[str, Any] | None = json.loads(outcome) if outcome is not None else None
    if record is None:
        return RunTold(
            session_id=session_id, state=str((left or {}).get("state")), outcome=left
        )
    return RunTold(
        session_id=session_id,
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
        outcome=left,
    )


async def events_of(
    parts: ApiParts, caller: Caller, session_id: str
) -> AsyncGenerator[bytes, None]:
    """Yield the state of a run, its events, and its state once it is over, which is the last event."""
    waiting: deque[PipelineEvent] = deque(maxlen=_MOST_WAITING)
    news = asyncio.Event()

    async def hear(message: Msg) -> None:
        try:
            waiting.append(PipelineEvent.model_validate_json(message.data))
        except ValidationError:
            return
        news.set()

    subscription = await parts.client.subscribe(
        subjects.run_events(session_id), cb=hear
    )
    try:
        state = await read_run(parts, caller, session_id)
        yield _event("state", state)
        while state.state == "running" and not parts.life.draining.is_set():
            try:
                async with asyncio.timeout(_LOOK_S):
                    await news.wait()
                news.clear()
            except TimeoutError:
                yield b": still here\n\n"
            while waiting:
                event = waiting.popleft()
                yield _event(event.kind, event)
            state = await read_run(parts, caller, session_id)
        if state.state != "running":
            yield _event("done", state)
    finally:
        if not parts.client.is_closed:
            await subscription.unsubscribe()


def _event(name: str, body: BaseModel) -> bytes:
    return f"event: {name}\ndata: {body.model_dump_json()}\n\n".encode()
