"""Declared pipelines as tasks of one agent, `Pipeline`: a task starts a run, and the end of that is the task's report.

So a sentence, a program and an agent start a pipeline as they start any task: its inputs are the task's parameters. The
message stays open while the run goes on, and nothing else is noted of it: the supervisor that is given it next, after
one that died, begins nothing twice and waits on.
"""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

import structlog
from pydantic import ValidationError

from tasklore.contracts.errors import (
    ConfigurationError,
    InvalidInput,
    InvalidPipeline,
    MemoryUnavailable,
    MessageTooLarge,
    NotAccepted,
)
from tasklore.contracts.faults import fault_of
from tasklore.contracts.messages import (
    AgentCard,
    CompletionReport,
    ErrorNote,
    Status,
    TaskAssignment,
)
from tasklore.contracts.pipelines import PIPELINE_AGENT, Pipeline
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.task_rows import row_of
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.runtime import tracing
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.partitions import UNREADABLE, Owner, set_aside
from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.runtime.metrics import Metrics
from tasklore.supervisor.pipelines.declaration.cards import card_of
from tasklore.supervisor.pipelines.declaration.files import read_pipeline
from tasklore.supervisor.pipelines.declaration.inputs import (
    fill_defaults,
    problems_in_inputs,
)
from tasklore.supervisor.pipelines.outcome import failure_in
from tasklore.supervisor.pipelines.requests import PipelineRequests
from tasklore.supervisor.reports.closed_tasks import Reporter

log = structlog.get_logger(__name__)

#: Runs that one supervisor waits for at once.
AT_ONCE = 1000
#: Seconds between looks whether a run has ended: first, and at most.
_LOOK_S = 0.02
_LOOK_CAP_S = 1.0
#: Seconds until a task is offered again that could not be dealt with: a server is away, or the fault is ours.
_AWAY_S = 2.0
_MISTAKE_S = 60.0


def read_pipelines(folder: Path) -> dict[str, Pipeline]:
    """Return the pipelines in the TOML files of *folder* by name, phases of others included.

    Raises:
        ConfigurationError: the folder cannot be read, or two pipelines have one name.
        InvalidPipeline: a file declares none; with file and line.
    """
    if not folder.is_dir():
        raise ConfigurationError(
            f"TASKLORE_PIPELINES_DIR is {str(folder)!r}, which is not a folder; create "
            "it, or omit it"
        )
    found: dict[str, Pipeline] = {}
    for file in sorted(folder.glob("*.toml")):
        pipeline = read_pipeline(file).pipeline
        if pipeline.name in found:
            raise ConfigurationError(
                f"{file}: a pipeline {pipeline.name!r} is declared already; give it another name"
            )
        found[pipeline.name] = pipeline
    return found


def agent_card(declared: Mapping[str, Pipeline]) -> AgentCard:
    """Return the card under which *declared* can be asked for."""
    tasks = tuple(card_of(pipeline) for pipeline in declared.values())
    spelled = json.dumps(
        [task.model_dump(mode="json") for task in tasks], sort_keys=True
    )
    words = "Runs declared pipelines."
    return AgentCard(
        agent_id=PIPELINE_AGENT, description=words, tasks=tasks, digest=_digest(spelled)
    )


@dataclass(frozen=True, slots=True)
class _Task:
    """A task that is a pipeline, in its generation."""

    assignment: TaskAssignment
    generation: int

    @property
    def session_id(self) -> str:
        """The session of its run: choosing a task's id reaches no other one."""
        asked = self.assignment
        words = [
            asked.supervisor_id,
            asked.user_id,
            asked.task.name,
            asked.task_id,
            self.generation,
        ]
        return f"t-{_digest(json.dumps(words))}"


class PipelineTasks:
    """Works on tasks of the agent `Pipeline`: a driver of a pull engine.

    Args:
        declared: The pipelines by name.
        requests: Begins and cancels runs.
        runs: Keeps the outcomes of runs.
        ledger: Keeps requests to cancel, and reports.
        outbox: Takes reports, and letters on messages that are no tasks.
        meter: Counts the letters.
        name: The reporting process.
    """

    def __init__(
        self,
        declared: Mapping[str, Pipeline],
        requests: PipelineRequests,
        *,
        runs: PipelineRuns,
        ledger: Ledger,
        outbox: Outbox,
        meter: Metrics,
        name: str,
    ) -> None:
        self._declared = declared
        self._requests = requests
        self._runs = runs
        self._ledger = ledger
        self._outbox = outbox
        self._meter = meter
        self._whose = Owner(name, PIPELINE_AGENT)
        self._reporter = Reporter(outbox, ledger, name)
        self._serving: set[asyncio.Task[None]] = set()

    async def work(self, batch: list[Delivery], line: PullEngine) -> None:
        """Begin the runs of *batch*; each message is settled when its run has ended and is reported."""
        for delivery in batch:
            task = asyncio.create_task(self._serve(delivery, line))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

    async def drain(self) -> None:
        """Hand the tasks back: runs go on, and another supervisor waits for their ends."""
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, delivery: Delivery, line: PullEngine) -> None:
        try:
            with tracing.within(delivery.trace):
                await self._see_through(delivery)
        except (MemoryUnavailable, NotAccepted) as error:
            log.info("pipeline_task_waits", subject=delivery.subject, error=str(error))
            line.hand_back(delivery, _AWAY_S)
        except asyncio.CancelledError:
            line.hand_back(delivery)
            raise
        except Exception:
            # Another version may know how to go on.
            log.exception("pipeline_task_left", subject=delivery.subject)
            line.hand_back(delivery, _MISTAKE_S)
        else:
            line.settle(delivery)

    async def _see_through(self, delivery: Delivery) -> None:
        """Return when nothing is left to do about *delivery*: its run has ended and is reported, or it is none."""
        try:
            task = _Task(_assignment_in(delivery), delivery.generation)
        except InvalidInput as error:
            await set_aside(
                delivery,
                error=error,
                reason=UNREADABLE,
                whose=self._whose,
                outbox=self._outbox,
                meter=self._meter,
            )
            return
        entry = await self._ledger.read(task.assignment.named)
        known = entry.generations.get(task.generation) if entry is not None else None
        if known is not None and known.report is not None:
            await self._reporter.publish(known.report)
            return
        # A program outside tells the ledger nothing: from here on the task can be cancelled.
        body = task.assignment.model_dump_json(exclude_none=True).encode()
        await self._ledger.accept(
            task.assignment.named,
            task.generation,
            assignment=body,
            trace=str(tracing.current() or ""),
            row=row_of(task.assignment, task.generation, task.assignment.agent_id),
        )
        if known is not None and known.cancel_request is not None:
            report = self._fail(
                task,
                "cancelled",
                "TaskCancelled",
                known.cancel_request.reason,
                attempt=0,
            )
        else:
            report = await self._report_on(task)
        try:
            await self._reporter.conclude(task.assignment, report)
        except MessageTooLarge:
            words = f"its result is too large for a report; `tasklore pipelines status {task.session_id}` shows it"
            await self._reporter.conclude(
                task.assignment, self._fail(task, "failed", "ResultTooLarge", words)
            )

    async def _report_on(self, task: _Task) -> CompletionReport:
        """Return the report on the run of *task*, begun unless it was before, once that has ended."""
        try:
            outcome = await self._runs.outcome(task.session_id)
            if outcome is None and await self._runs.read(task.session_id) is None:
                await self._begin(task)
        except InvalidPipeline as error:
            return self._fail(
                task, "failed", "InvalidPipeline", "; ".join(error.problems), attempt=0
            )
        except InvalidInput as error:
            return self._fail(task, "rejected", "InvalidInput", str(error), attempt=0)
        return await self._outcome_of(task)

    async def _begin(self, task: _Task) -> None:
        """Begin the run of *task*.

        Raises:
            InvalidInput: there is no such pipeline, or it takes other inputs.
            InvalidPipeline: it cannot run with the agents that are known.
        """
        asked = task.assignment
        pipeline = self._declared.get(asked.task.name)
        if pipeline is None:
            known = ", ".join(self._declared)
            raise InvalidInput(
                f"no pipeline {asked.task.name!r} is declared here; declared are {known}"
            )
        inputs = asked.task.parameters
        if problems := problems_in_inputs(pipeline, fill_defaults(pipeline, inputs)):
            raise InvalidInput("; ".join(problem.text for problem in problems))
        await self._requests.begin(
            pipeline,
            inputs,
            session_id=task.session_id,
            user_id=asked.user_id,
            caller=asked.asked_by,
        )

    async def _outcome_of(self, task: _Task) -> CompletionReport:
        """Return the report on the run of *task*; it is cancelled with the task, and when the deadline has passed."""
        deadline = task.assignment.deadline
        pause_s = _LOOK_S
        if deadline is not None and deadline.tzinfo is None:
            deadline = deadline.replace(tzinfo=UTC)
        while (body := await self._runs.outcome(task.session_id)) is None:
            wish = (
                await self._ledger.cancel_request(task.assignment.named)
                if pause_s == _LOOK_CAP_S
                else None
            )
            if wish is not None:
                await self._cancel(task, wish.reason or "its task was cancelled")
                return self._fail(task, "cancelled", "TaskCancelled", wish.reason)
            if deadline is not None and deadline <= self._requests.now():
                words = "the task's deadline passed before it had ended"
                await self._cancel(task, words)
                return self._fail(task, "expired", "TaskExpired", words)
            await asyncio.sleep(pause_s)
            pause_s = min(_LOOK_CAP_S, 1.5 * pause_s)
        outcome = json.loads(body)
        took_ms = int(outcome.get("took_ms") or 0)
        if (why := failure_in(outcome, task.session_id)) is not None:
            return self._fail(task, "failed", "PipelineFailed", why, run_ms=took_ms)
        result = outcome.get("result")
        asked = task.assignment
        return self._reporter.report(
            asked,
            task.generation,
            "completed",
            result=result,
            attempt=1,
            run_ms=took_ms,
        )

    async def _cancel(self, task: _Task, reason: str) -> None:
        record = await self._runs.read(task.session_id)
        if record is not None:
            # It may have ended meanwhile.
            with contextlib.suppress(InvalidInput):
                await self._requests.cancel(record, reason)

    def _fail(
        self,
        task: _Task,
        status: Status,
        kind: str,
        words: str,
        *,
        attempt: int = 1,
        run_ms: int = 0,
    ) -> CompletionReport:
        error = ErrorNote(type=kind, message=words)
        asked = task.assignment
        return self._reporter.report(
            asked, task.generation, status, error=error, attempt=attempt, run_ms=run_ms
        )


def _assignment_in(delivery: Delivery) -> TaskAssignment:
    """Return the assignment in *delivery*.

    Raises:
        InvalidInput: it is none, or one for another agent.
    """
    try:
        assignment = TaskAssignment.model_validate_json(delivery.body)
    except ValidationError as error:
        first = error.errors(
            include_url=False, include_input=False, include_context=False
        )[0]
        raise InvalidInput(
            f"this is not a task assignment: {fault_of(first)}"
        ) from error
    if assignment.agent_id != PIPELINE_AGENT:
        raise InvalidInput(
            f"agent_id is {assignment.agent_id!r}, but the subject is of {PIPELINE_AGENT!r}"
        )
    return assignment


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
