"""A supervisor of pipelines whose stores are in this process and whose workers are functions."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import (
    InvalidInput,
    MessageTooLarge,
    NotAccepted,
    OwnerFull,
    PhaseReplaced,
)
from tasklore.contracts.messages import (
    AgentCard,
    CompletionReport,
    ErrorNote,
    PipelineEvent,
    PipelineReply,
    PipelineRequest,
    TaskAssignment,
    TaskCard,
    Usage,
)
from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tasklore.memory.holdings.store import Holding
from tasklore.memory.sessions.pipeline_records import (
    EndState,
    NewRun,
    PhaseState,
    RunRecord,
)
from tasklore.memory.sessions.session import NewEntry
from tasklore.runtime.metrics import Metrics
from tasklore.supervisor.admission.owner_bounds import OwnerBounds
from tasklore.supervisor.cancellation import Cancelling
from tasklore.supervisor.pipelines.declaration.fingerprint_child import answer
from tasklore.supervisor.pipelines.declaration.fingerprints import Fingerprints
from tasklore.supervisor.pipelines.drive import Drive
from tasklore.supervisor.pipelines.driver import PipelineDriver
from tasklore.supervisor.pipelines.live import DriverDependencies
from tasklore.supervisor.pipelines.requests import Driving, PipelineRequests
from tests.fakes.pipeline_runs import FakePipelineRuns
from tests.fakes.projects import FakeProject
from tests.fakes.sessions import FakeSessions
from tests.unit.supervisor.reports import FakeReports, report_on

#: Milliseconds that every task of the fakes takes.
TOOK_MS = 1_000
#: Seconds for a fact on a busy machine.
PATIENCE_S = 60.0

Work = Callable[[dict[str, Any]], Any]


class LinkedRuns(FakePipelineRuns):
    """Runs that change their sessions, as the scripts of the real ones do."""

    def __init__(self, sessions: FakeSessions) -> None:
        super().__init__()
        self._sessions = sessions
        self.calls: Counter[str] = Counter()
        #: What happens before a call of that name: for tests that let something happen in between.
        self.before: dict[str, Callable[[], None]] = {}

    async def create(self, new: NewRun) -> bool:
        made = await super().create(new)
        if made:
            pipeline = new.pipeline
            await self._sessions.create(
                new.session_id,
                domain=pipeline.domain,
                ttl=pipeline.ttl,
                dependencies=new.dependencies,
            )
            self._sessions.put_state(new.session_id, new.state)
            self._sessions.put_run(new.session_id, 0)
        return made

    async def begin_phase(
        self, session_id: str, fence: int, phase: str, task_id: str, run: int
    ) -> bool:
        self._note("begin_phase")
        begun = await super().begin_phase(session_id, fence, phase, task_id, run)
        if begun:
            self._sessions.put_task(session_id, phase, task_id)
        return begun

    async def settle_phase(
        self,
        session_id: str,
        fence: int,
        phase: str,
        state: PhaseState,
        corrects: str | None = None,
    ) -> bool:
        self._note("settle_phase")
        settled = await super().settle_phase(session_id, fence, phase, state, corrects)
        if settled:
            self._sessions.put_phase(
                session_id, phase, self._runs[session_id].record.phases[phase]
            )
            if corrects is not None and state.status == "done":
                self._sessions.put_correction(session_id, corrects, phase)
        return settled

    async def reset_phases(
        self, session_id: str, why: Mapping[str, str], **fields: Any
    ) -> RunRecord | None:
        self._note("reset_phases")
        record = await super().reset_phases(session_id, why, **fields)
        if record is not None:
            await self._sessions.invalidate_phases(session_id, list(why))
            for phase in why:
                self._sessions.put_task(session_id, phase, "")
            self._sessions._sessions[session_id].corrected = dict(record.corrected)
            self._sessions.put_state(session_id, record.state)
            if fields.get("restart"):
                self._sessions.put_run(session_id, record.began_ms)
        return record

    async def end(
        self,
        session_id: str,
        fence: int,
        state: EndState,
        outcome: bytes,
        *,
        keep: bool,
        error: str = "",
    ) -> bool:
        self._note("end")
        ended = await super().end(
            session_id, fence, state, outcome, keep=keep, error=error
        )
        if ended and await self.read(session_id) is None:
            await self._sessions.drop(session_id, force=True)
        elif ended:
            self._sessions.put_state(session_id, state)
        return ended

    def _note(self, name: str) -> None:
        self.calls[name] += 1
        if (happen := self.before.pop(name, None)) is not None:
            happen()


class FullBounds(OwnerBounds):
    """Bounds that everybody has met; `counted` are the kinds of what was counted all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[str] = []

    async def demand(
        self, caller: Caller | None, user_id: str | None, *things: Holding
    ) -> None:
        raise OwnerFull("you keep too much")

    async def count(
        self, caller: Caller | None, user_id: str | None, *things: Holding
    ) -> None:
        self.counted += [one.kind for one in things]


class FakeWorkers(FakeReports):
    """Stands for dispatch, desk of reports and canceller at once: a task runs in a function when it is assigned."""

    #: What a task has spent that was cancelled.
    spent_by_cancelled = Usage()

    def __init__(self, sessions: FakeSessions) -> None:
        self.sessions = sessions
        self.works: dict[str, Work] = {}
        self.runs: Counter[str] = Counter()
        self.assigned: list[TaskAssignment] = []
        self.cancelled: dict[str, str] = {}
        self.bounds = OwnerBounds()
        self.refuses = 0
        self.is_away = False
        self._reports: dict[str, asyncio.Future[CompletionReport]] = {}
        self._doing: set[asyncio.Task[None]] = set()

    async def assign(
        self, assignment: TaskAssignment, *, patience_s: float = 10.0
    ) -> None:
        if self.refuses:
            self.refuses -= 1
            raise NotAccepted("no room", 0.01)
        if len(assignment.model_dump_json()) > 960 * 1024:
            raise MessageTooLarge("too many bytes")
        report = self._report(assignment.task_id)
        known = any(one.task_id == assignment.task_id for one in self.assigned)
        if not self.is_away and not report.done() and not known:
            doing = asyncio.create_task(self._do(assignment))
            self._doing.add(doing)
            doing.add_done_callback(self._doing.discard)
        self.assigned.append(assignment)

    async def report_of(
        self, assignment: TaskAssignment, within_s: float, *, is_new: bool = False
    ) -> CompletionReport | None:
        await asyncio.wait(
            [report := self._report(assignment.task_id)], timeout=within_s
        )
        return report.result() if report.done() else None

    async def is_under_way(self, task_id: str) -> bool:
        begun = any(
            one.task_id == task_id and one.phase in self.runs for one in self.assigned
        )
        return begun and not self._report(task_id).done()

    async def cancel(
        self, task_id: str, reason: str, *, grace_s: float = 2.0
    ) -> Cancelling:
        report = self._report(task_id)
        if report.done():
            return Cancelling("too_late", report.result().status)
        self.cancelled[task_id] = reason
        known = next((one for one in self.assigned if one.task_id == task_id), None)
        if known is None:
            return Cancelling("noted")
        error = ErrorNote(type="TaskCancelled", message=reason)
        report.set_result(
            report_on(
                known,
                "cancelled",
                run_ms=TOOK_MS,
                error=error,
                usage=self.spent_by_cancelled,
            )
        )
        return Cancelling("cancelled", "cancelled")

    async def _do(self, assignment: TaskAssignment) -> None:
        report = await self._run(assignment)
        waiting = self._report(assignment.task_id)
        if not waiting.done():
            waiting.set_result(report)

    async def _run(self, assignment: TaskAssignment) -> CompletionReport:
        phase = assignment.phase or ""
        self.runs[phase] += 1
        report = report_on(assignment, run_ms=TOOK_MS)
        try:
            result = self.works[assignment.task.name](assignment.task.parameters)
            result = await result if asyncio.iscoroutine(result) else result
            entries = [
                NewEntry(
                    key=f"{phase}:{name}",
                    value=result if name == "results" else result[name],
                    agent=assignment.agent_id,
                    computation_ms=TOOK_MS,
                )
                for name in assignment.writes or ()
            ]
            await self.sessions.set_many(
                assignment.session_id or "", entries, task_id=assignment.task_id
            )
            if assignment.writes is None:
                report = report.model_copy(update={"result": result})
        except PhaseReplaced as error:
            report = report_on(
                assignment,
                "cancelled",
                run_ms=TOOK_MS,
                error=ErrorNote(type="PhaseReplaced", message=str(error)),
            )
        except Exception as error:  # noqa: BLE001 - a crash becomes a report
            report = report_on(
                assignment,
                "failed",
                run_ms=TOOK_MS,
                error=ErrorNote(type=type(error).__name__, message=str(error)),
            )
        return report

    def _report(self, task_id: str) -> asyncio.Future[CompletionReport]:
        if task_id not in self._reports:
            self._reports[task_id] = asyncio.get_running_loop().create_future()
        return self._reports[task_id]


class HereFingerprints(Fingerprints):
    """Takes them in this process."""

    async def _ask(self, job: Mapping[str, Any], user_id: str | None) -> dict[str, Any]:
        try:
            return answer(json.loads(json.dumps(job)))
        except InvalidInput as error:
            return {"refused": str(error)}


class FakeSystem:
    """Everything that a driver works with; the functions in *works* are tasks of the agent "A"."""

    def __init__(self, folder: Path, **works: Work) -> None:
        self.sessions = FakeSessions()
        self.runs = LinkedRuns(self.sessions)
        self.projects = FakeProject()
        self.workers = FakeWorkers(self.sessions)
        self.workers.works |= works
        self.metrics = Metrics()
        self.events: list[PipelineEvent] = []
        self.evidence = folder / "evidence"
        self.parts = self.parts_of(self.workers)
        self.woken: list[str] = []
        self.requests = PipelineRequests(
            self.parts,
            cards=lambda: {"A": self.card()},
            driving=Driving(
                lambda session_id: self.woken.append(session_id),
                lambda _session, _reason: False,
            ),
        )

    def parts_of(self, workers: FakeWorkers) -> DriverDependencies:
        return DriverDependencies(
            supervisor_id="S",
            runs=self.runs,  # type: ignore[arg-type]  # fakes from here on
            cache=self.sessions,
            projects=self.projects,  # type: ignore[arg-type]
            dispatch=workers,  # type: ignore[arg-type]
            reports=workers,  # type: ignore[arg-type]
            canceller=workers,  # type: ignore[arg-type]
            tell=self.events.append,
            meter=self.metrics,
            evidence_dir=self.evidence,
            fingerprints=HereFingerprints([Path("/")]),
        )

    def card(self) -> AgentCard:
        schema = {
            "type": "object",
            "properties": {name: {} for name in "abcdefxyz"},
            "additionalProperties": True,
        }
        tasks = tuple(
            TaskCard(name=name, parameters=schema) for name in self.workers.works
        )
        return AgentCard(agent_id="A", tasks=tasks, digest="0")

    async def ask(
        self, action: str, session_id: str | None = "s1", **fields: Any
    ) -> PipelineReply:
        pipeline = fields.pop("pipeline", None)
        declared = (
            pipeline.model_dump(mode="json", exclude_defaults=True)
            if pipeline is not None
            else None
        )
        request = PipelineRequest(
            action=action, session_id=session_id, pipeline=declared, **fields
        )
        return await self.requests.take_up(request)

    async def begin(self, pipeline: Pipeline, **fields: Any) -> PipelineReply:
        reply = await self.ask("run", pipeline=pipeline, **fields)
        assert reply.kind == "accepted", reply
        return reply

    async def drive(
        self,
        session_id: str = "s1",
        holder: str = "h",
        parts: DriverDependencies | None = None,
    ) -> None:
        async with asyncio.timeout(PATIENCE_S):
            fence = await self.claim(session_id, holder)
            await Drive(parts or self.parts, session_id, fence).run()

    async def claim(self, session_id: str = "s1", holder: str = "h") -> int:
        fence = await self.runs.claim(session_id, holder, 60_000)
        assert fence is not None
        return fence

    async def steal(self, session_id: str = "s1") -> int:
        self.runs._runs[session_id].leased_until_ms = 0
        return await self.claim(session_id, "thief")

    async def steal_as(self, holder: str) -> None:
        await self.claim("s1", holder)
        self.runs._runs["s1"].leased_until_ms = 0

    def driver(self, holder: str = "h", lease_s: float = 5.0) -> PipelineDriver:
        return PipelineDriver(self.parts, holder=holder, lease_s=lease_s)

    async def record(self, session_id: str = "s1") -> RunRecord:
        """Return the run as it is stored."""
        record = await self.runs.read(session_id)
        assert record is not None
        return record

    async def outcome(self, session_id: str = "s1") -> dict[str, Any]:
        """Return how the run ended."""
        outcome = await self.runs.outcome(session_id)
        assert outcome is not None
        return dict(json.loads(outcome))

    async def statuses(self, session_id: str = "s1") -> dict[str, str]:
        """Return the status of each phase."""
        return {
            name: state.status
            for name, state in (await self.record(session_id)).phases.items()
        }

    def kinds(self, *kinds: str) -> list[tuple[str, str | None]]:
        return [
            (one.kind, one.phase)
            for one in self.events
            if not kinds or one.kind in kinds
        ]


@contextlib.asynccontextmanager
async def at_work(driver: PipelineDriver) -> AsyncIterator[PipelineDriver]:
    """Let *driver* work while the block runs, and leave in good order."""
    working = asyncio.create_task(driver.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield driver
            await driver.drain()
            await working
    finally:
        working.cancel()


async def the_end(system: "FakeSystem", session_id: str = "s1") -> dict[str, Any]:
    while (outcome := await system.runs.outcome(session_id)) is None:  # noqa: ASYNC110 - the store tells nobody
        await asyncio.sleep(0.001)
    return dict(json.loads(outcome))


async def until(fact: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not fact():  # noqa: ASYNC110 - the fakes tell nobody
            await asyncio.sleep(0)


def a_pipeline(*phases: Phase, name: str = "p", **fields: Any) -> Pipeline:
    return Pipeline(name=name, phases=phases, **fields)


def a_phase(name: str = "p", task: str = "echo", **fields: Any) -> Phase:
    return Phase(**{"name": name, "agent": "A", "task": task, **fields})


def a_chain(*names: str, task: str = "echo", **fields: Any) -> Pipeline:
    """Return phases that each read the results of the one before."""
    phases = [a_phase(names[0], task, parameters={"x": "${input.x}"})]
    phases += [
        a_phase(name, task, parameters={"x": f"${{{before}:results.x}}"})
        for before, name in pairwise(names)
    ]
    return a_pipeline(*phases, inputs={"x": Input(default=1)}, **fields)


def echo(parameters: dict[str, Any]) -> dict[str, Any]:
    return parameters


def fail(_parameters: dict[str, Any]) -> Any:
    raise OSError("disk full")


class Waiting:
    """A task that returns its parameters once it is released."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.begun = asyncio.Event()

    async def __call__(self, parameters: dict[str, Any]) -> dict[str, Any]:
        self.begun.set()
        await self.release.wait()
        return parameters
