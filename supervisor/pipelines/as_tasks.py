"""Declared pipelines as tasks of one agent, `Pipeline`: a task starts a run, and the end of that is the task's report.

So a sentence, a program and an agent start a pipeline as they start any task: its inputs are the task's parameters. The
message stays open while the run goes on, and nothing else is noted of it: whoever is given it next, after a supervisor
that died, begins nothing twice and waits on.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog
from pydantic import ValidationError

from contracts import subjects
from contracts.errors import (
    ConfigurationError,
    InvalidInput,
    InvalidPipeline,
    MemoryUnavailable,
    MessageTooLarge,
    NotAccepted,
)
from contracts.messages import AgentCard, CompletionReport, ErrorNote, TaskAssignment
from contracts.pipelines import PIPELINE_AGENT, Pipeline
from memory.ledger import Ledger
from memory.pipeline_records import NewRun
from runtime import tracing
from runtime.pull import Delivery, PullEngine
from supervisor.pipelines.against_cards import card_of
from supervisor.pipelines.checks import all_problems
from supervisor.pipelines.ending import failure_in
from supervisor.pipelines.files import Source, described, read_pipeline
from supervisor.pipelines.graph import Graph
from supervisor.pipelines.inputs import prepared_inputs, problems_in_inputs
from supervisor.pipelines.live import Parts, demand_root
from supervisor.pipelines.requests import Driving
from supervisor.reporting import Reporter

log = structlog.get_logger(__name__)

#: Runs that one supervisor waits for at once.
AT_ONCE = 1000
#: Seconds between looks whether a run has ended: first, and at most.
_LOOK_S, _LOOK_CAP_S = 0.02, 1.0
#: Seconds until a task is offered again that could not be dealt with: a server is away, or the fault is ours.
_AWAY_S, _MISTAKE_S = 2.0, 60.0


def read_pipelines(folder: Path) -> dict[str, Pipeline]:
    """Return what the TOML files of *folder* declare, by name; a file whose pipeline another one holds may be listed.

    Raises:
        ConfigurationError: the folder cannot be read, or two pipelines have one name.
        InvalidPipeline: a file declares none; with file and line.
    """
    if not folder.is_dir():
        raise ConfigurationError(
            f"TASKLORE_PIPELINES_DIR is {str(folder)!r}, which is no folder; make it, or leave it out"
        )
    found: dict[str, Pipeline] = {}
    for file in sorted(folder.glob("*.toml")):
        pipeline = read_pipeline(file).pipeline
        if pipeline.name in found:
            raise ConfigurationError(f"{file}: a pipeline {pipeline.name!r} is declared already; give it another name")
        found[pipeline.name] = pipeline
    return found


def agent_card(declared: Mapping[str, Pipeline]) -> AgentCard:
    """Return the card under which *declared* can be asked for."""
    tasks = tuple(card_of(pipeline) for pipeline in declared.values())
    spelled = json.dumps([task.model_dump(mode="json") for task in tasks], sort_keys=True)
    words = "Runs declared pipelines."
    return AgentCard(agent_id=PIPELINE_AGENT, description=words, tasks=tasks, digest=_digest(spelled))


def session_of(assignment: TaskAssignment, generation: int = 1) -> str:
    """Return the session of the run that *assignment* becomes: nobody reaches another one by choosing a task's id."""
    whose = assignment.supervisor_id, assignment.user_id
    return f"t-{_digest(json.dumps([*whose, assignment.task.name, assignment.task_id, generation]))}"


class _Cancelled(Exception):
    """Somebody wishes the task cancelled; its report is published by whoever noted that."""


class PipelineTasks:
    """Works on tasks of the agent `Pipeline`: a desk of a pull engine.

    Args:
        parts: What runs are made and driven with.
        declared: The pipelines by name.
        cards: The agents as of now, by id.
        driving: The desk that drives runs in this process.
        ledger: Where wishes to cancel stand.
        reporter: Reports what has ended.
    """

    def __init__(
        self,
        parts: Parts,
        declared: Mapping[str, Pipeline],
        *,
        cards: Callable[[], Mapping[str, AgentCard]],
        driving: Driving,
        ledger: Ledger,
        reporter: Reporter,
    ) -> None:
        self._parts = parts
        self._declared = declared
        self._cards = cards
        self._driving = driving
        self._ledger = ledger
        self._reporter = reporter
        self._serving: set[asyncio.Task[None]] = set()

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        """Begin the runs of *batch*; each message is settled when its run has ended and is reported."""
        for delivery in batch:
            task = asyncio.create_task(self._serve(delivery, line))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def drain(self) -> None:
        """Hand back what is waited for: runs go on, and another supervisor waits for their ends."""
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, delivery: Delivery, line: PullEngine) -> None:
        try:
            assignment = TaskAssignment.model_validate_json(delivery.body)
            with tracing.within(delivery.trace):
                await self._see_through(assignment, _generation_of(delivery))
        except ValidationError as error:
            log.warning("unreadable_pipeline_task", subject=delivery.subject, problems=error.error_count())
            line.settle(delivery)
        except _Cancelled:
            line.settle(delivery)
        except (MemoryUnavailable, NotAccepted) as error:
            log.info("pipeline_task_waits", subject=delivery.subject, error=str(error))
            line.hand_back(delivery, _AWAY_S)
        except asyncio.CancelledError:
            line.hand_back(delivery)
            raise
        except Exception:
            log.exception("pipeline_task_left", subject=delivery.subject)
            line.hand_back(delivery, _MISTAKE_S)
        else:
            line.settle(delivery)

    async def _see_through(self, assignment: TaskAssignment, generation: int) -> None:
        """Return when the run of *assignment* has ended and is reported."""
        try:
            session_id = await self._begin(assignment, generation)
        except InvalidPipeline as error:
            words = "; ".join(error.problems)
            report = self._failed(assignment, generation, "InvalidPipeline", words)
        except InvalidInput as error:
            note = ErrorNote(type="InvalidInput", message=str(error))
            report = self._reporter.report(assignment, generation, "rejected", error=note)
        else:
            report = await self._report_on(session_id, assignment, generation)
        try:
            await self._reporter.conclude(assignment, report)
        except MessageTooLarge:
            session_id = session_of(assignment, generation)
            words = f"its result is too large for a report; `tasklore pipeline status {session_id}` shows it"
            await self._reporter.conclude(
                assignment, self._failed(assignment, generation, "ResultTooLarge", words, report.run_ms)
            )

    async def _begin(self, assignment: TaskAssignment, generation: int) -> str:
        """Return the session of the run, begun unless it was before.

        Raises:
            InvalidInput: there is no such pipeline, or it takes other inputs.
            InvalidPipeline: it cannot run with the agents that are known.
        """
        session_id = session_of(assignment, generation)
        if await self._parts.runs.read(session_id) or await self._parts.runs.outcome(session_id):
            return session_id
        if (entry := await self._ledger.read(assignment.task_id)) and entry.generations[entry.newest].wish:
            raise _Cancelled
        # A program outside tells the ledger nothing: from here on the task can be cancelled.
        body = assignment.model_dump_json(exclude_none=True).encode()
        await self._ledger.accept(assignment.task_id, generation, body, str(tracing.current() or ""))
        name = assignment.task.name
        pipeline = self._declared.get(name)
        if pipeline is None:
            known = ", ".join(self._declared) or "none"
            raise InvalidInput(f"no pipeline {name!r} is declared here; declared are {known}")
        inputs = prepared_inputs(pipeline, assignment.task.parameters)
        if problems := problems_in_inputs(pipeline, inputs):
            raise InvalidInput("; ".join(problem.text for problem in problems))
        if problems := await asyncio.to_thread(all_problems, pipeline, dict(self._cards())):
            raise InvalidPipeline(described(problems, Source(pipeline)))
        await demand_root(self._parts, pipeline, inputs, assignment.user_id)
        new = NewRun(
            session_id=session_id,
            pipeline=pipeline,
            supervisor_id=self._parts.supervisor_id,
            inputs=inputs,
            dependencies=Graph.of(pipeline).dependencies,
            user_id=assignment.user_id,
            trace=str(tracing.current() or ""),
        )
        if await self._parts.runs.create(new):
            self._driving.look_soon(session_id)
        return session_id

    async def _report_on(self, session_id: str, assignment: TaskAssignment, generation: int) -> CompletionReport:
        """Return the report on the run, once it has ended or its task's time is over."""
        runs, pause_s = self._parts.runs, _LOOK_S
        while (told := await runs.outcome(session_id)) is None:
            if assignment.deadline is not None and self._parts.now() > assignment.deadline:
                words = "the task's deadline passed before it had ended"
                await self._cancel(session_id, words)
                error = ErrorNote(type="TaskExpired", message=words)
                return self._reporter.report(assignment, generation, "expired", error=error)
            await asyncio.sleep(pause_s)
            pause_s = min(_LOOK_CAP_S, 1.5 * pause_s)
            if pause_s == _LOOK_CAP_S and (wish := await self._ledger.wish(assignment.task_id)) is not None:
                await self._cancel(session_id, wish.reason or "its task was cancelled")
                raise _Cancelled
        outcome = json.loads(told)
        took_ms = int(outcome.get("took_ms") or 0)
        if (why := failure_in(outcome, session_id)) is not None:
            return self._failed(assignment, generation, "PipelineFailed", why, took_ms)
        result = outcome.get("result")
        return self._reporter.report(assignment, generation, "completed", result=result, run_ms=took_ms)

    async def _cancel(self, session_id: str, reason: str) -> None:
        if await self._parts.runs.wish_cancelled(session_id, reason) and not self._driving.wish(session_id, reason):
            self._driving.look_soon(session_id)

    def _failed(
        self, assignment: TaskAssignment, generation: int, kind: str, words: str, run_ms: int = 0
    ) -> CompletionReport:
        error = ErrorNote(type=kind, message=words)
        return self._reporter.report(assignment, generation, "failed", error=error, run_ms=run_ms)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _generation_of(delivery: Delivery) -> int:
    told = (delivery.headers or {}).get(subjects.GENERATION_HEADER, "1")
    return int(told) if told.isdecimal() and len(told) < 10 and int(told) else 1
