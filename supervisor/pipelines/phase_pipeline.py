"""A phase that is a pipeline: a run of its own, in a session of its own, driven beside the one that waits for it.

Its session is called as the phase's task would be. Whoever drives the outer run also drives this one, as long as no
desk does: so runs that wait for others never keep these from beginning.
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
from runtime.lease_loop import LeaseLost
from supervisor.pipelines.declaration.graph import Graph
from supervisor.pipelines.declaration.inputs import fill_defaults, problems_in_inputs
from supervisor.pipelines.declaration.masker import Masker
from supervisor.pipelines.ending import failure_in
from supervisor.pipelines.live import Parts
from supervisor.pipelines.phase_task import Failure
from supervisor.pipelines.resuming import Resuming

if TYPE_CHECKING:
    from supervisor.pipelines.driver import Drive

log = structlog.get_logger(__name__)

#: Seconds of a lease of an inner run, its renewals within it, and seconds between looks whether it has ended.
_LEASE_S, _RENEWALS, _LOOK_S = 10.0, 3, 0.25


@dataclass(frozen=True, slots=True)
class Returned:
    """What the inner run came to, as a report tells it."""

    result: JsonValue
    run_ms: int
    attempt: int = 1
    status: Literal["completed"] = "completed"


class PhasePipeline:
    """The run of *pipeline* that *assignment* of *phase* stands for.

    *before* is the session of the run of this phase before, which goes on where it failed; None where there was none.
    What *masker* hides of its parameters is a secret of the inner run, too.
    """

    def __init__(
        self,
        parts: Parts,
        phase: Phase,
        pipeline: Pipeline,
        assignment: TaskAssignment,
        *,
        before: str | None,
        masker: Masker,
    ) -> None:
        self._parts = parts
        self._phase = phase
        self._pipeline = _with_secrets(pipeline, assignment.task.parameters, masker)
        self._assignment = assignment
        self._before = before
        self._holder = f"phase-{secrets.token_hex(8)}"

    async def report(self) -> Returned | Failure:
        """Return its result, once it has ended, or why there is none.

        Raises:
            MemoryUnavailable: the store did not answer; whoever goes on finds everything as it is.
        """
        inputs = fill_defaults(self._pipeline, self._assignment.task.parameters)
        if problems := problems_in_inputs(self._pipeline, inputs):
            return Failure(InvalidInput.__name__, f"pipeline {self._pipeline.name!r}: {problems[0].text}")
        session_id = await self._begin(inputs)
        deadline, now = self._assignment.deadline, self._parts.now()
        try:
            async with asyncio.timeout(None if deadline is None else max(0.0, (deadline - now).total_seconds())):
                while (told := await self._parts.runs.outcome(session_id)) is None:
                    await self._drive(session_id)
        except TimeoutError:
            words = f"it did not end within its timeout of {self._phase.timeout}"
            await self._parts.runs.request_cancel(session_id, words)
            return Failure("TaskExpired", f"pipeline {self._pipeline.name!r} (run {session_id}): {words}")
        return self._read(session_id, json.loads(told))

    async def _begin(self, inputs: dict[str, JsonValue]) -> str:
        """Let the run begin, or go on where it failed; return its session."""
        runs, before = self._parts.runs, self._before
        known = await runs.read(before) if before is not None else None
        if before is not None and known is not None and known.inputs == inputs:
            if known.state in ("failed", "cancelled"):
                # Somebody who was quicker let it go on.
                with suppress(InvalidInput):
                    await Resuming(self._parts).go_on(known, PipelineRequest(action="resume", session_id=before))
            return before
        made = NewRun(
            session_id=self._assignment.task_id,
            pipeline=self._pipeline,
            supervisor_id=self._parts.supervisor_id,
            inputs=inputs,
            dependencies=Graph.of(self._pipeline).dependencies,
            user_id=self._assignment.user_id,
        )
        await runs.create(made)
        return made.session_id

    async def _drive(self, session_id: str) -> None:
        """Drive it, unless somebody does: then return after a while."""
        from supervisor.pipelines.driver import Drive

        lease_ms = int(_LEASE_S * 1000)
        with suppress(RunSetAside):
            fence = await self._parts.runs.claim(session_id, self._holder, lease_ms)
            if fence is not None:
                drive = Drive(self._parts, session_id, fence)
                renewing = asyncio.create_task(self._renew(session_id, fence, drive))
                try:
                    with suppress(LeaseLost):
                        await drive.run()
                    return
                finally:
                    renewing.cancel()
                    with suppress(MemoryUnavailable):
                        await asyncio.shield(self._parts.runs.give_back(session_id, self._holder, fence))
        await asyncio.sleep(_LOOK_S)

    async def _renew(self, session_id: str, fence: int, drive: "Drive") -> None:
        while True:
            await asyncio.sleep(_LEASE_S / _RENEWALS)
            try:
                if not await self._parts.runs.renew(session_id, self._holder, fence, int(_LEASE_S * 1000)):
                    return
                reason = await self._parts.runs.cancel_reason(session_id)
            except MemoryUnavailable as error:
                log.info("pipeline_lease_not_renewed", session=session_id, error=str(error))
                continue
            if reason is not None:
                drive.cancel(reason)

    def _read(self, session_id: str, told: dict[str, JsonValue]) -> Returned | Failure:
        if (why := failure_in(told, session_id)) is not None:
            return Failure("PipelineFailed", why)
        took_ms = told.get("took_ms")
        return Returned(told.get("result"), took_ms if isinstance(took_ms, int) else 0)


def _with_secrets(pipeline: Pipeline, parameters: Mapping[str, JsonValue], masker: Masker) -> Pipeline:
    hidden = {name for name, value in parameters.items() if name in pipeline.inputs and masker.mask(value)[1]}
    inputs = {name: one.model_copy(update={"secret": True}) for name, one in pipeline.inputs.items() if name in hidden}
    return pipeline.model_copy(update={"inputs": {**pipeline.inputs, **inputs}}) if hidden else pipeline
