"""One run of one phase: its condition, its parameters, its task, and the report that settles it.

Every step may be done again by another supervisor: the task's id follows from the run of the phase, uses of entries
are counted once for that id, and what the store is told stands under the number of the lease.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue, ValidationError

from contracts.errors import EntryTooLarge, InvalidInput
from contracts.messages import CompletionReport, PipelineEventKind, TaskAssignment, TaskCall
from contracts.pipelines import Phase
from memory.sessions.entries import NewEntry
from memory.sessions.pipeline_records import PhaseState
from runtime import tracing
from runtime.lease_loop import LeaseLost
from supervisor.pipelines.declaration.marks import DESIGN, FILE, STANDARD, tag_marks
from supervisor.pipelines.declaration.phase_reader import Gone, PhaseReader
from supervisor.pipelines.fan_out import FannedOut, FanOut, failure_words
from supervisor.pipelines.live import LiveRun, Parts, root_of
from supervisor.pipelines.phase_task import Failure, PhaseTask


@dataclass(frozen=True, slots=True)
class Settled:
    """The phase is over; *state* is stored."""

    state: PhaseState


@dataclass(frozen=True, slots=True)
class Restart:
    """The phase cannot run before those in *gone* have run again, each with the reason."""

    gone: Gone


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """The phase was cancelled with the whole run."""

    reason: str


PhaseEnd = Settled | Restart | CancelRequested


class PhaseRun:
    """Runs *phase*; *adopted* tells that another driver has begun this run of it."""

    def __init__(self, parts: Parts, live: LiveRun, phase: Phase, *, adopted: bool) -> None:
        self._parts = parts
        self._live = live
        self._phase = phase
        self._adopted = self._begun = adopted
        self._before = live.phases[phase.name]
        self._run = self._before.run if adopted else self._before.run + 1
        self._task_id = live.task_id(phase.name, self._run)
        self._reading = PhaseReader(parts, live, phase, self._task_id)

    async def perform(self) -> PhaseEnd:
        """Return how it ended, once that is stored.

        Raises:
            LeaseLost: somebody else drives the run.
            MemoryUnavailable: the store did not answer; whoever goes on finds everything as it is.
        """
        with tracing.span(f"phase {self._phase.name}", attributes={"tasklore.run": self._run}):
            return await self._perform()

    async def _perform(self) -> PhaseEnd:
        is_one = not self._phase.has_parts
        if is_one and self._adopted and (report := await self._reported()) is not None:
            return await self._conclude(report)
        try:
            told = await self._prepare()
            if isinstance(told, Restart | Settled):
                return told
            if not is_one:
                return await self._several()
            assignment = self._assignment(told)
        except (InvalidInput, EntryTooLarge, ValidationError) as error:
            return await self._fail(type(error).__name__, str(error))
        return await self._conclude(await self._report_of(assignment))

    async def _prepare(self) -> dict[str, JsonValue] | Restart | Settled:
        """Begin, and return the parameters or why there will be no task now; what is watched is noted before both."""
        if not self._adopted:
            holds = await self._reading.condition()
            if isinstance(holds, dict):
                return Restart(holds)
            if not holds:
                why = f"its condition does not hold: {self._phase.when}"
                state = PhaseState(status="skipped", run=self._before.run, why=why)
                return await self._settle(state, "phase_skipped", why)
            await self._note_seen()
            # Side by side: begun without a task it is simply begun again, and a step costs a round trip less.
            begun, told = await asyncio.gather(self._begin(), self._reading.parameters(), return_exceptions=True)
            if isinstance(begun, BaseException):
                raise begun
        else:
            told = await self._reading.parameters()
        if isinstance(told, BaseException):
            raise told
        return Restart(told[0]) if isinstance(told, list) else told

    async def _note_seen(self) -> None:
        phase, live, parts = self._phase, self._live, self._parts
        marks: dict[str, str] = {}
        if phase.reads_files:
            async with live.looking:
                marks = await self._look()
        project = live.record.project
        if phase.standards:
            marks |= tag_marks(STANDARD, await parts.projects.marks(project, "standard", phase.standards))
        if phase.design:
            marks |= tag_marks(DESIGN, await parts.projects.marks(project, "decision", phase.design))
        if not marks and not phase.reads_files:
            return
        # That it looked for files and found none has to be known, too: one may appear.
        noted = marks or {FILE: ""}
        if not await parts.runs.note_seen(live.session_id, live.fence, phase.name, noted):
            raise LeaseLost(f"run {live.session_id!r} is driven by somebody else")

    async def _look(self) -> dict[str, str]:
        """Return the marks of the phase's files.

        Raises:
            InvalidInput: they may not be looked at, or that was too much for a phase of this run before.
        """
        live = self._live
        if live.blind:
            raise InvalidInput(live.blind)
        root, user = root_of(live.record.pipeline, live.record.inputs), live.record.user_id
        looks = [(self._phase.reads_files, live.marks)]
        try:
            found = await self._parts.fingerprints.take(root, looks, user_id=user)
        except InvalidInput as error:
            live.blind = str(error)
            raise
        live.marks.update(found.marks[0])
        return found.marks[0]

    async def _begin(self) -> None:
        live, name = self._live, self._phase.name
        if not await self._parts.runs.begin_phase(live.session_id, live.fence, name, self._task_id, self._run):
            raise LeaseLost(f"run {live.session_id!r} is driven by somebody else")
        self._begun = True
        self._parts.tell(live.event("phase_started", self._parts.now(), name, task_id=self._task_id))

    def _assignment(self, parameters: dict[str, JsonValue], since: datetime | None = None) -> TaskAssignment:
        phase, record = self._phase, self._live.record
        is_own = since is not None
        since = since or self._parts.now()
        if not is_own and self._adopted and self._before.since_ms is not None:
            since = datetime.fromtimestamp(self._before.since_ms / 1000, UTC) + self._live.ahead
        memory = phase.memory
        if self._run > 1 and memory == "use":
            # What was remembered before belongs to the run that is not to count any more.
            memory = "refresh"
        return TaskAssignment(
            task_id=self._task_id,
            agent_id=phase.agent,
            supervisor_id=self._parts.supervisor_id,
            task=TaskCall(name=phase.task, parameters=parameters),
            created_at=since,
            deadline=since + phase.longest if phase.longest is not None else None,
            max_attempts=phase.retries + 1,
            memory=memory,
            user_id=record.user_id,
            session_id=record.session_id,
            phase=phase.name,
            writes=phase.writes,
            keep_ms=max(1, phase.keep_for // timedelta(milliseconds=1)) if phase.keep_for is not None else None,
        )

    async def _report_of(self, assignment: TaskAssignment) -> CompletionReport | PhaseState:
        """Return the report of *assignment*, sent now; or, where none can come, how the phase failed."""
        found = await PhaseTask(self._parts, self._phase, assignment, is_new=not self._adopted).report()
        return self._failed(found.error_type, found.error) if isinstance(found, Failure) else found

    async def _several(self) -> PhaseEnd:
        """Run a task for each item or round, and keep what they returned together."""
        phase, live = self._phase, self._live

        def assign(task_id: str, parameters: dict[str, JsonValue]) -> TaskAssignment:
            # It shares the session, and leaves what it returns to the driver: the phase has one entry for all.
            told = {"task_id": task_id, "parent_id": self._task_id, "phase": None, "writes": None, "keep_ms": None}
            return self._assignment(parameters, since=self._parts.now()).model_copy(update=told)

        fan_out = FanOut(
            self._parts,
            live,
            phase,
            base=self._task_id,
            before=live.task_id(phase.name, self._run - 1) if self._run > 1 else None,
            is_new=not self._adopted,
            assign=assign,
        )
        what = "round" if phase.repeat_until is not None else "item" if phase.for_each is not None else ""
        done, result, missed = await (self._rounds(fan_out) if phase.repeat_until is not None else self._items(fan_out))
        if done.is_cancelled:
            return CancelRequested(await self._parts.runs.cancel_reason(live.session_id) or "")
        if missed:
            return await self._fail("NotReached", missed, took_ms=done.took_ms, attempts=done.attempts)
        if done.failures and (phase.on_failure == "fail" or what != "item"):
            first = done.failures[min(done.failures)]
            kind, words = (
                (f"{what.title()}Failed", failure_words(done, what)) if what else (first.error_type, first.error)
            )
            return await self._fail(kind, words, took_ms=done.took_ms, attempts=done.attempts)
        entry = NewEntry(
            f"{phase.name}:results",
            result,
            phase=phase.name,
            agent=phase.agent,
            computation_ms=done.took_ms,
            ttl=phase.keep_for,
        )
        await self._parts.cache.set_many(live.session_id, [entry], task_id=self._task_id, phase=phase.name)
        state = PhaseState(
            status="done", run=self._run, task_id=self._task_id, took_ms=done.took_ms, attempts=done.attempts
        )
        return await self._settle(state, "phase_done", done.said(what) if what else "", run_ms=done.took_ms)

    async def _items(self, fan_out: FanOut) -> tuple[FannedOut, JsonValue, str]:
        is_list = self._phase.for_each is not None
        items = self._reading.items() if is_list else [None]

        def parameters_of(number: int) -> dict[str, JsonValue]:
            return self._reading.parameters_of(items[number], number)

        done = await fan_out.run(parameters_of, len(items))
        is_whole = not done.is_cancelled and not (done.failures and (self._phase.on_failure == "fail" or not is_list))
        found: list[JsonValue] = await fan_out.results(parameters_of, done) if is_whole else [None]
        return done, (list(found) if is_list else found[0]), ""

    async def _rounds(self, fan_out: FanOut) -> tuple[FannedOut, JsonValue, str]:
        done, last, is_reached = await fan_out.rounds(self._reading.parameters_of, self._reading.is_reached)
        words = f"{self._phase.repeat_until} does not hold after {done.total} rounds; raise `at_most`, then resume"
        return done, last, "" if is_reached or done.failures or done.is_cancelled else words

    async def _reported(self) -> CompletionReport | None:
        """Return the report of a run that another driver began, when there is one: then nothing is read again."""
        asked = self._assignment({})
        return await self._parts.reports.report_of(asked, 0.0)

    async def _conclude(self, found: CompletionReport | PhaseState) -> PhaseEnd:
        if isinstance(found, PhaseState):
            return await self._fail(found.error_type or "", found.error or "")
        if found.status == "completed":
            done = PhaseState(
                status="done",
                run=self._run,
                task_id=self._task_id,
                since_ms=self._before.since_ms if self._adopted else None,
                took_ms=found.run_ms,
                attempts=found.attempt,
                memory=found.memory.outcome,
            )
            return await self._settle(done, "phase_done", "", run_ms=found.run_ms)
        reason = await self._parts.runs.cancel_reason(self._live.session_id) if found.status == "cancelled" else None
        if reason is not None:
            return CancelRequested(reason)
        error = found.error
        state = self._failed(error.type if error else found.status, error.message if error else f"it is {found.status}")
        return await self._fail(state.error_type or "", state.error or "", took_ms=found.run_ms, attempts=found.attempt)

    def _failed(self, error_type: str, error: str) -> PhaseState:
        error = self._live.masker.mask_text(error)
        if not self._begun:
            return PhaseState(status="failed", run=self._before.run, error_type=error_type, error=error)
        return PhaseState(status="failed", run=self._run, task_id=self._task_id, error_type=error_type, error=error)

    async def _fail(self, error_type: str, error: str, *, took_ms: int = 0, attempts: int = 0) -> Settled:
        state = replace(self._failed(error_type, error), took_ms=took_ms, attempts=attempts)
        return await self._settle(state, "phase_failed", f"{error_type}: {state.error}", run_ms=took_ms)

    async def _settle(
        self, state: PhaseState, kind: PipelineEventKind, text: str, run_ms: int | None = None
    ) -> Settled:
        live, phase = self._live, self._phase
        corrects = phase.corrects if state.status == "done" else None
        storing = self._store(state, corrects)
        if state.status == "done" and corrects is None:
            # What depends on it may begin meanwhile: its entries are there, and should this be lost, its report is
            # found again. The run does not end before it is stored.
            live.meanwhile(storing)
        else:
            await storing
        live.phases[phase.name] = state
        if corrects is not None:
            live.corrected[corrects] = phase.name
        self._parts.meter.count_phase(state.status)
        told = live.event(kind, self._parts.now(), phase.name, text=text, task_id=state.task_id, run_ms=run_ms)
        self._parts.tell(told)
        return Settled(state)

    async def _store(self, state: PhaseState, corrects: str | None) -> None:
        live, name = self._live, self._phase.name
        if not await self._parts.runs.settle_phase(live.session_id, live.fence, name, state, corrects):
            raise LeaseLost(f"run {live.session_id!r} is driven by somebody else, or phase {name!r} began anew")
