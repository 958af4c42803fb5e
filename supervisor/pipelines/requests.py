"""Requests for pipelines and their replies: runs are made, go on, are marked stale, or are cancelled.

Nothing is driven here: a run is written down, and the driver looks for it.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import structlog
from pydantic import JsonValue, ValidationError

from tasklore.contracts.callers import Caller, tenant_of
from tasklore.contracts.errors import (
    InvalidInput,
    InvalidPipeline,
    MemoryUnavailable,
    MessageTooLarge,
    NotAccepted,
    OwnerFull,
    TaskloreError,
    UnknownSession,
)
from tasklore.contracts.faults import OUR_FAULT, fault_of
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.messages import AgentCard, PipelineReply, PipelineRequest
from tasklore.contracts.parameters.body_sizes import demand_few_values
from tasklore.contracts.pipelines import Pipeline
from tasklore.memory.holdings.store import Holding
from tasklore.memory.sessions.pipeline_records import NewRun, RunRecord
from tasklore.runtime import tracing
from tasklore.supervisor.pipelines.declaration.checks import all_problems
from tasklore.supervisor.pipelines.declaration.declarations import pipeline_from
from tasklore.supervisor.pipelines.declaration.files import (
    PipelineSource,
    describe_problems,
)
from tasklore.supervisor.pipelines.declaration.graph import Graph
from tasklore.supervisor.pipelines.declaration.inputs import (
    fill_defaults,
    problems_in_inputs,
)
from tasklore.supervisor.pipelines.live import (
    RUN_ROLE,
    DriverDependencies,
    LiveRun,
    demand_root,
)
from tasklore.supervisor.pipelines.outcome import digest_of, digest_of_run
from tasklore.supervisor.pipelines.resumption import Resumption

log = structlog.get_logger(__name__)

#: Problems in one reply: a caller that mends these asks again.
_MOST_PROBLEMS = 100
#: What may be asked for.
_ACTIONS = "run, resume, rerun, invalidate, cancel"


@dataclass(frozen=True, slots=True)
class Driving:
    """The driver of this process: it looks for a run at once, or cancels one (False: it is not driven here)."""

    look_soon: Callable[[str], None]
    cancel: Callable[[str, str], bool]


class PipelineRequests:
    """Answers requests for one supervisor id.

    Args:
        parts: The parts of drivers.
        cards: The agents as of now, by id.
        driving: The driver of this process.
        mint: Makes the id of a session that has none, from the time in ms.
    """

    def __init__(
        self,
        parts: DriverDependencies,
        *,
        cards: Callable[[], Mapping[str, AgentCard]],
        driving: Driving,
        mint: Callable[[int], str] = new_id,
    ) -> None:
        self._parts = parts
        self._cards = cards
        self._driving = driving
        self._mint = mint
        self._resumption = Resumption(parts)

    def now(self) -> datetime:
        """Return the time by which deadlines are kept."""
        return self._parts.now()

    async def answer_bytes(self, body: bytes) -> PipelineReply:
        """Return the answer to a request as it comes off the wire, whatever it is."""
        try:
            demand_few_values(body)
            request = PipelineRequest.model_validate_json(body)
        except MessageTooLarge as error:
            return _refuse(None, str(error))
        except ValidationError as error:
            problems = error.errors(
                include_url=False, include_input=False, include_context=False
            )
            return _refuse(
                None, "this request cannot be read", [fault_of(one) for one in problems]
            )
        # Whoever asks here has shown no key: a caller would be what they say of themselves.
        unproven = request.model_copy(update={"caller": None})
        try:
            return await self.take_up(unproven, from_door=True)
        except OwnerFull as error:
            return _refuse(request.session_id, str(error))
        except MemoryUnavailable as error:
            return _refuse(
                request.session_id,
                f"the store of sessions did not answer; ask again: {error}",
            )

    async def take_up(
        self, request: PipelineRequest, *, from_door: bool = False
    ) -> PipelineReply:
        """Return the reply to *request*: it is taken up, or refused with the cure.

        Raises:
            MemoryUnavailable: the store of sessions does not answer; nothing is wrong with the request.
            OwnerFull: it came *from_door*, and who asks keeps too much; nothing was kept.
        """
        session_id = request.session_id
        if request.pipeline is not None and request.action in ("invalidate", "cancel"):
            return _refuse(
                session_id,
                "a declaration goes with 'run', 'resume' and 'rerun'; leave it out",
            )
        try:
            match request.action:
                case "run":
                    return await self._run(request, from_door=from_door)
                case "resume" | "rerun":
                    return await self._go_on(request)
                case "invalidate":
                    return await self._invalidate(request)
                case "cancel":
                    return await self._cancel(request)
                case _:
                    return _refuse(
                        session_id,
                        f"this supervisor knows {_ACTIONS}; it may be older than who asks",
                    )
        except (OwnerFull, MemoryUnavailable):
            raise
        except InvalidPipeline as error:
            return _refuse(
                session_id, "the pipeline cannot run as it is declared", error.problems
            )
        except TaskloreError as error:
            return _refuse(session_id, str(error))
        except Exception:
            log.exception("pipeline_request_failed", action=request.action)
            return _refuse(session_id, OUR_FAULT)

    async def demand_sound(
        self, declaration: Mapping[str, JsonValue], given: Mapping[str, JsonValue]
    ) -> None:
        """Check that the pipeline of *declaration* can run on the inputs *given*, with the agents that are known now.

        Raises:
            InvalidPipeline: it cannot; with every problem.
        """
        pipeline = await asyncio.to_thread(pipeline_from, declaration)
        inputs = fill_defaults(pipeline, given)
        await asyncio.to_thread(_demand_sound, pipeline, dict(self._cards()), inputs)

    async def begin(
        self,
        pipeline: Pipeline,
        given: Mapping[str, JsonValue],
        *,
        session_id: str | None = None,
        user_id: str | None = None,
        keep: bool = False,
        caller: Caller | None = None,
        from_door: bool = False,
    ) -> PipelineReply:
        """Let *pipeline* run on the inputs *given*, for *caller*; the same again under one *session_id* begins nothing.

        The run is counted to its owner; one that comes *from_door* may be refused for that.

        Raises:
            OwnerFull: they keep too much; nothing was kept.
            InvalidPipeline: it cannot run; with every problem.
            InvalidInput: its files may not be looked at, or the session has another run.
            MemoryUnavailable: the store does not answer.
        """
        inputs = fill_defaults(pipeline, given)
        await asyncio.to_thread(_demand_sound, pipeline, dict(self._cards()), inputs)
        await demand_root(self._parts, pipeline, inputs, user_id)
        digest = digest_of(pipeline, inputs, user_id=user_id, tenant=tenant_of(caller))
        if (
            session_id is not None
            and (found := await self._find(session_id, digest)) is not None
        ):
            return found
        session_id = session_id or self._mint(int(self._parts.now().timestamp() * 1000))
        new = NewRun(
            session_id=session_id,
            pipeline=pipeline,
            supervisor_id=self._parts.supervisor_id,
            inputs=inputs,
            dependencies=Graph.of(pipeline).dependencies,
            user_id=user_id,
            keep=keep,
            caller=caller,
            trace=str(tracing.current() or ""),
        )
        size = len(pipeline.model_dump_json()) + len(json.dumps(dict(inputs)))
        bounds = self._parts.dispatch.bounds
        take = bounds.demand if from_door else bounds.count
        await take(caller, user_id, Holding("runs", size, session_id))
        if await self._parts.runs.create(new):
            reply = PipelineReply(
                session_id=session_id,
                kind="accepted",
                text=f"{pipeline.name} runs as {session_id}",
            )
            return await self._announce(reply)
        if (found := await self._find(session_id, digest)) is not None:
            return found
        raise InvalidInput(
            f"session id {session_id!r} is taken by a session without a pipeline; choose another"
        )

    async def cancel(self, record: RunRecord, reason: str) -> None:
        """Cancel the run *record*.

        Raises:
            InvalidInput: it does not run.
            MemoryUnavailable: the store does not answer.
        """
        session_id = record.session_id
        if record.state != "running" or not await self._parts.runs.request_cancel(
            session_id, reason
        ):
            raise InvalidInput(f"run {session_id!r} does not run: it is {record.state}")
        if self._driving.cancel(session_id, reason):
            return

        async def cancel(task_id: str) -> None:
            try:
                await self._parts.canceller.cancel(task_id, reason)
            except (NotAccepted, MemoryUnavailable) as error:
                # The request is noted: the driver of the run does this, too.
                log.info("task_not_cancelled_yet", task_id=task_id, error=str(error))

        # Its driver, in another process, hears of the request with the first report of these.
        async with asyncio.TaskGroup() as group:
            for state in record.phases.values():
                if state.status == "running" and state.task_id:
                    group.create_task(cancel(state.task_id))
        self._driving.look_soon(session_id)

    async def _run(self, request: PipelineRequest, *, from_door: bool) -> PipelineReply:
        if request.pipeline is None:
            raise InvalidInput(
                "a run needs the declaration of its pipeline in 'pipeline'"
            )
        pipeline = await asyncio.to_thread(pipeline_from, request.pipeline)
        return await self.begin(
            pipeline,
            request.inputs,
            session_id=request.session_id,
            user_id=request.user_id,
            keep=request.keep,
            caller=request.caller,
            from_door=from_door,
        )

    async def _find(self, session_id: str, digest: str) -> PipelineReply | None:
        """Return the reply to a request for a run that there is, or was within a day; None when there is none."""
        record = await self._parts.runs.read(session_id)
        if record is not None:
            known = digest_of_run(record)
            state = str(record.state)
        elif (outcome := await self._parts.runs.outcome(session_id)) is not None:
            ended = json.loads(outcome)
            known = str(ended.get("digest"))
            state = str(ended.get("state"))
        else:
            return None
        if known != digest:
            text = f"session id {session_id!r} is taken by another run; choose another, or leave it out"
            return _refuse(session_id, text)
        return PipelineReply(
            session_id=session_id,
            kind="accepted",
            text=f"it was taken up before, and is {state}",
        )

    async def _go_on(self, request: PipelineRequest) -> PipelineReply:
        """Resume a run, or run a phase of it again."""
        begins_at = request.phase if request.action == "rerun" else None
        if request.action == "rerun" and begins_at is None:
            raise InvalidInput("a rerun needs the phase to begin again at, in 'phase'")
        if (taken := await self._take_over(request)) is not None:
            return taken
        record = await self._demand_resting(request)
        pipeline = None
        if (declaration := request.pipeline) is not None:
            pipeline = await asyncio.to_thread(pipeline_from, declaration)
            await asyncio.to_thread(_demand_sound, pipeline, dict(self._cards()))
        reply = await self._resumption.resume(
            record, request, begins_at=begins_at, pipeline=pipeline
        )
        return await self._announce(reply)

    async def _take_over(self, request: PipelineRequest) -> PipelineReply | None:
        """Let a run that rests for the key of its maker go on as one of who resumes it; None: it does not.

        Raises:
            NotPermitted: they may not act for the tenant of its maker.
        """
        if request.action != "resume" or request.pipeline is not None or request.inputs:
            return None
        record = await self._demand(request)
        makers = self._parts.makers
        loss = makers.find_loss(record.caller, RUN_ROLE)
        if record.state != "running" or request.caller is None or loss is None:
            return None
        taker = makers.payer_of(request.caller, record.caller, RUN_ROLE)
        await self._parts.runs.take_over(record, taker)
        self._driving.look_soon(record.session_id)
        log.info(
            "pipeline_taken_over",
            session=record.session_id,
            by=request.caller.name,
            why=loss,
        )
        return PipelineReply(
            session_id=record.session_id,
            kind="accepted",
            text=f"it continues as yours: {loss}",
        )

    async def _invalidate(self, request: PipelineRequest) -> PipelineReply:
        return await self._resumption.mark_stale(
            await self._demand_resting(request), request
        )

    async def _cancel(self, request: PipelineRequest) -> PipelineReply:
        record = await self._demand(request)
        await self.cancel(record, request.reason or "cancelled on request")
        return PipelineReply(
            session_id=record.session_id, kind="accepted", text="it is being cancelled"
        )

    async def _demand_resting(self, request: PipelineRequest) -> RunRecord:
        """Return the run of *request*, which must not be running.

        Raises:
            InvalidInput: it runs.
            UnknownSession: there is none.
        """
        record = await self._demand(request)
        if record.state == "running":
            raise InvalidInput(
                f"run {record.session_id!r} is running; wait for its end or cancel it (`tasklore pipelines cancel "
                f"{record.session_id}`) before you {request.action} it"
            )
        return record

    async def _demand(self, request: PipelineRequest) -> RunRecord:
        if request.session_id is None:
            raise InvalidInput(f"to {request.action} needs the run's 'session_id'")
        record = await self._parts.runs.read(request.session_id)
        if record is not None:
            return record
        outcome = await self._parts.runs.outcome(request.session_id)
        ended = (
            f"it ended as {json.loads(outcome).get('state')} and is gone"
            if outcome is not None
            else "there is none"
        )
        raise UnknownSession(
            f"no run {request.session_id!r}: {ended}; `tasklore pipelines list` lists "
            "them, and a failed one can be resumed from its evidence: `tasklore "
            "pipelines restore FILE`"
        )

    async def _announce(self, reply: PipelineReply) -> PipelineReply:
        """Publish that the run of *reply* was accepted, and let the driver look for it; return *reply*."""
        session_id = reply.session_id or ""
        record = await self._parts.runs.read(session_id)
        if record is not None:
            self._parts.tell(LiveRun.of(record, 0).event("accepted", self._parts.now()))
        self._driving.look_soon(session_id)
        return reply


def _demand_sound(
    pipeline: Pipeline,
    cards: Mapping[str, AgentCard],
    inputs: Mapping[str, JsonValue] | None = None,
) -> None:
    """Check that *pipeline* can run with the agents of *cards*, on *inputs* when they are given.

    Raises:
        InvalidPipeline: it cannot run; with every problem.
    """
    problems = [
        *all_problems(pipeline, cards),
        *(problems_in_inputs(pipeline, inputs) if inputs is not None else []),
    ]
    if problems:
        raise InvalidPipeline(describe_problems(problems, PipelineSource(pipeline)))


def _refuse(
    session_id: str | None, text: str, problems: tuple[str, ...] | list[str] = ()
) -> PipelineReply:
    shown = tuple(problems[:_MOST_PROBLEMS]) or (text,)
    if len(problems) > _MOST_PROBLEMS:
        shown += (f"and {len(problems) - _MOST_PROBLEMS} more",)
    return PipelineReply(
        session_id=session_id, kind="refused", text=text, problems=shown
    )
