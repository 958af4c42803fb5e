"""Runs as they are told over HTTP: whose one is, how far it is, and what becomes of it."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, ClassVar

import structlog
from nats.aio.msg import Msg
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from contracts import subjects
from contracts.errors import MemoryUnavailable
from contracts.messages import PipelineEvent
from memory.ledger.requests import RequestRecord, place_of
from memory.sessions.pipeline_records import RunRecord
from supervisor.http.admission.keys import Caller
from supervisor.http.parts import Parts
from supervisor.http.problems import Refused, not_found

log = structlog.get_logger(__name__)

#: Seconds between looks at a run when nothing is heard of it.
_LOOK_S = 1.0
#: Events that wait for a slow client; the state at the end tells what it missed.
_MOST_WAITING = 256


class PhaseTold(BaseModel):
    """How far one phase is; see docs/pipelines.md for the words."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")

    phase: str
    status: str
    run: int
    task_id: str | None = None
    took_ms: int = 0
    attempts: int = 0
    error_type: str | None = None
    error: str | None = None
    why: str = ""
    memory: str = ""
    saved_ms: int = 0


class RunTold(BaseModel):
    """A run: `phases` while its session is there, `outcome` for a day after its end, with its result."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

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


async def note_own(parts: Parts, caller: Caller, session_id: str) -> None:
    """Note that *caller* started a run: what is left of a completed one does not tell whose it was."""
    record = RequestRecord(digest="", task_id=session_id, at_ms=time.time_ns() // 1_000_000)
    try:
        await parts.records.claim(_place(caller, session_id), record)
    except MemoryUnavailable as error:
        log.warning("run_not_noted", session=session_id, error=str(error))


async def demand_run(parts: Parts, caller: Caller, session_id: str) -> str:
    """Return the state of a run that *caller* may see.

    Raises:
        Refused: 404, there is none, or it is another user's.
        MemoryUnavailable: the store did not answer in time.
    """
    return (await run_of(parts, caller, session_id)).state


async def run_of(parts: Parts, caller: Caller, session_id: str) -> RunTold:
    """Return a run as it is now.

    Raises:
        Refused: 404, there is none, or it is another user's.
        MemoryUnavailable: the store did not answer in time.
    """
    record = await parts.runs.read(session_id)
    # What it left may be of an earlier run of the same session; only what has ended is asked for it.
    is_running = record is not None and record.state == "running"
    outcome = None if is_running else await parts.runs.outcome(session_id)
    if (record is None and outcome is None) or not await _is_own(parts, caller, session_id, record):
        raise _unknown(session_id)
    left: dict[str, Any] | None = json.loads(outcome) if outcome is not None else None
    if record is None:
        return RunTold(session_id=session_id, state=str((left or {}).get("state")), outcome=left)
    return RunTold(
        session_id=session_id,
        state=record.state,
        pipeline=record.pipeline.name,
        version=record.pipeline.version,
        run=record.run,
        project=record.project,
        user=record.user_id,
        created_at=_time(record.created_ms),
        updated_at=_time(record.updated_ms),
        phases=tuple(PhaseTold(phase=name, **asdict(state)) for name, state in record.phases.items()),
        outcome=left,
    )


async def events_of(parts: Parts, caller: Caller, session_id: str) -> AsyncGenerator[bytes, None]:
    """Yield the state of a run, what happens in it, and its state once it is over, which is the last event."""
    waiting: deque[PipelineEvent] = deque(maxlen=_MOST_WAITING)
    news = asyncio.Event()

    async def hear(message: Msg) -> None:
        try:
            waiting.append(PipelineEvent.model_validate_json(message.data))
        except ValidationError:
            return
        news.set()

    subscription = await parts.client.subscribe(subjects.run_events(session_id), cb=hear)
    try:
        state = await run_of(parts, caller, session_id)
        yield _event("state", state)
        while state.state == "running" and not parts.life.draining.is_set():
            if not await _stirred(news):
                yield b": still here\n\n"
            while waiting:
                happened = waiting.popleft()
                yield _event(happened.kind, happened)
            state = await run_of(parts, caller, session_id)
        if state.state != "running":
            yield _event("done", state)
    finally:
        if not parts.client.is_closed:
            await subscription.unsubscribe()


async def _stirred(news: asyncio.Event) -> bool:
    """Return whether something was heard, after a second at the latest."""
    try:
        async with asyncio.timeout(_LOOK_S):
            await news.wait()
    except TimeoutError:
        return False
    news.clear()
    return True


def _event(name: str, body: BaseModel) -> bytes:
    return f"event: {name}\ndata: {body.model_dump_json()}\n\n".encode()


async def _is_own(parts: Parts, caller: Caller, session_id: str, record: RunRecord | None) -> bool:
    if caller.user_scope is None:
        return True
    if record is not None:
        return record.user_id == caller.user_scope
    return (await parts.records.find(_place(caller, session_id))).record is not None


def _place(caller: Caller, session_id: str) -> str:
    return place_of(caller.space, "pipeline", session_id)


def _unknown(session_id: str) -> Refused:
    return not_found(f"no run {session_id!r} is known, or its time is over; GET /v1/pipelines lists those there are")


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
