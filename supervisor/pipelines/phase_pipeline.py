"""A phase that is a pipeline: a run of its own, in a session of its own, driven beside the one that waits for it.

Its session is called as the phase's task would be. The driver of the outer run also drives this one, as long as no desk
does: so runs that wait for others never keep these from beginning.
"""

import asyncio
import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import structlog
from pydantic import JsonValue

from contracts.errors import InvalidInput, MemoryUnavailable, RunSetAside
from contracts.messages import PipelineRequest, TaskAssignment
from contracts.pipelines import Phase, Pipeline
from memory.sessions.pipeline_records import NewRun
from runtime.lease_loop import RENEWALS, LeaseLost
from supervisor.pipelines.declaration.graph import Graph
from supervisor.pipelines.declaration.inputs import fill_defaults, problems_in_inputs
from supervisor.pipelines.declaration.masker import Masker
from supervisor.pipelines.live import Parts
from supervisor.pipelines.outcome import failure_in
from supervisor.pipelines.phase_task import Failure
from supervisor.pipelines.resumption import Resumption

if TYPE_CHECKING:
    from supervisor.pipelines.driver import Drive

log = structlog.get_logger(__name__)

#: Seconds of a lease of an inner run, and between looks whether it has ended.
_LEASE_S, _LOOK_S = 10.0, 0.25


@dataclass(frozen=True, slots=True)
class Returned:
    """The result of an inner run, with the fields of a report."""

    result: JsonValue
    run_ms: int
    attempt: int = 1
    status: Literal["completed"] = "completed"


async def run_pipeline(
    parts: Parts, phase: Phase, pipeline: Pipeline, assignment: TaskAssignment, *, before: str | None, masker: Masker
) -> Returned | Failure:
    """Run *pipeline* as *assignment* of *phase* would run; return its result, or why there is none.

    *before* is the session of the run of this phase before, which goes on where it failed; None where there was none.
    Parameters that *masker* hides are secrets of the inner run, too.

    Raises:
        MemoryUnavailable: the store did not answer; the next driver finds everything as it is.
    """
    hidden = {
        name for name, value in assignment.task.parameters.items() if name in pipeline.inputs and masker.mask(value)[1]
    }
    declared = {
        name: one.model_copy(update={"secret": True}) if name in hidden else one
        for name, one in pipeline.inputs.items()
    }
    pipeline = pipeline.model_copy(update={"inputs": declared})
    inputs = fill_defaults(pipeline, assignment.task.parameters)
    if problems := problems_in_inputs(pipeline, inputs):
        return Failure(InvalidInput.__name__, f"pipeline {pipeline.name!r}: {problems[0].text}")
    session_id = await _begin(parts, pipeline, assignment, inputs, before)
    holder = f"phase-{secrets.token_hex(8)}"
    deadline, now = assignment.deadline, parts.now()
    try:
        async with asyncio.timeout(None if deadline is None else max(0.0, (deadline - now).total_seconds())):
            while (body := await parts.runs.outcome(session_id)) is None:
                await _drive(parts, session_id, holder)
    except TimeoutError:
        words = f"it did not end within its timeout of {phase.timeout}"
        await parts.runs.request_cancel(session_id, words)
        return Failure("TaskExpired", f"pipeline {pipeline.name!r} (run {session_id}): {words}")
    outcome = json.loads(body)
    if (why := failure_in(outcome, session_id)) is not None:
        return Failure("PipelineFailed", why)
    took_ms = outcome.get("took_ms")
    return Returned(outcome.get("result"), took_ms if isinstance(took_ms, int) else 0)


async def _begin(
    parts: Parts, pipeline: Pipeline, assignment: TaskAssignment, inputs: Mapping[str, JsonValue], before: str | None
) -> str:
    """Begin the run, or let it go on where it failed; return its session."""
    known = await parts.runs.read(before) if before is not None else None
    if before is not None and known is not None and known.inputs == inputs:
        if known.state in ("failed", "cancelled"):
            # Another request may have been quicker.
            with suppress(InvalidInput):
                await Resumption(parts).resume(known, PipelineRequest(action="resume", session_id=before))
        return before
    new = NewRun(
        session_id=assignment.task_id,
        pipeline=pipeline,
        supervisor_id=parts.supervisor_id,
        inputs=inputs,
        dependencies=Graph.of(pipeline).dependencies,
        user_id=assignment.user_id,
    )
    await parts.runs.create(new)
    return new.session_id


async def _drive(parts: Parts, session_id: str, holder: str) -> None:
    """Drive the run, unless another process does: then return after a while."""
    from supervisor.pipelines.driver import Drive

    with suppress(RunSetAside):
        fence = await parts.runs.claim(session_id, holder, int(_LEASE_S * 1000))
        if fence is not None:
            drive = Drive(parts, session_id, fence)
            renewing = asyncio.create_task(_renew(parts, drive, holder))
            try:
                with suppress(LeaseLost):
                    await drive.run()
                return
            finally:
                renewing.cancel()
                with suppress(MemoryUnavailable):
                    await asyncio.shield(parts.runs.give_back(session_id, holder, fence))
    await asyncio.sleep(_LOOK_S)


async def _renew(parts: Parts, drive: "Drive", holder: str) -> None:
    while True:
        await asyncio.sleep(_LEASE_S / RENEWALS)
        try:
            if not await parts.runs.renew(drive.session_id, holder, drive.fence, int(_LEASE_S * 1000)):
                return
            reason = await parts.runs.cancel_reason(drive.session_id)
        except MemoryUnavailable as error:
            log.info("pipeline_lease_not_renewed", session=drive.session_id, error=str(error))
            continue
        if reason is not None:
            drive.cancel(reason)
