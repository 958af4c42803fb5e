"""One run of one phase: its condition, its parameters, its task, and the report that settles it.

Every step may be done again by another supervisor: the task's id follows from the run of the phase, uses of entries
are counted once for that id, and the store takes each step under the number of the lease.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue, ValidationError

from tasklore.contracts.errors import EntryTooLarge, InvalidInput
from tasklore.contracts.messages import (
    CompletionReport,
    PipelineEventKind,
    TaskAssignment,
    TaskCall,
)
from tasklore.contracts.pipelines import Phase
from tasklore.memory.sessions.entries import NewEntry
from tasklore.memory.sessions.pipeline_records import PhaseState, PhaseStatus
from tasklore.runtime import tracing
from tasklore.supervisor.pipelines.declaration.marks import (
    DESIGN,
    FILE,
    STANDARD,
    tag_marks,
)
from tasklore.supervisor.pipelines.declaration.phase_reader import Gone, PhaseReader
from tasklore.supervisor.pipelines.fan_out import FanOut, failure_words
from tasklore.supervisor.pipelines.live import DriverDependencies, LiveRun, root_of
from tasklore.supervisor.pipelines.phase_task import Failure, PhaseTask


@dataclass(frozen=True, slots=True)
class EndedPhase:
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


PhaseEnd = EndedPhase | Restart | CancelRequested


class PhaseRun:
    """Runs *phase*; *adopted* when another driver has begun this run of it."""

    def __init__(
        self, parts: DriverDependencies, live: LiveRun, phase: Phase, *, adopted: bool
    ) -> None:
        self._parts = parts
        self._live = live
        self._phase = phase
        self._adopted = self._begun = adopted
        self._before = live.phases[phase.name]
        self._run = self._before.run if adopted else self._before.run + 1
        self._task_id = live.task_id(phase.name, self._run)
        self._reader = PhaseReader(parts, live, phase, self._task_id)

    async def perform(self) -> PhaseEnd:
        """Return how it ended, once that is stored.

        Raises:
            LeaseLost: another process drives the run.
            MemoryUnavailable: the store did not answer; the next driver finds everything as it is.
        """
        with tracing.span(
            f"phase {self._phase.name}", attributes={"tasklore.run": self._run}
        ):
            is_one = not self._phase.has_parts
            if is_one and self._adopted:
                # With a report nothing is read again.
                report = await self._parts.reports.report_of(self._assignment({}), 0.0)
                if report is not None:
                    return await self._conclude(report)
            try:
                prepared = await self._prepare()
                if isinstance(prepared, Restart | EndedPhase):
                    return prepared
                if not is_one:
                    return await self._run_parts()
                assignment = self._assignment(prepared)
            except (InvalidInput, EntryTooLarge, ValidationError) as error:
                return await self._fail(Failure(type(error).__name__, str(error)))
            is_new = not self._adopted
            task = PhaseTask(
                self._parts, self._phase, assignment, is_new=is_new, has_looked=True
            )
            found = await task.report()
            return await (
                self._fail(found)
                if isinstance(found, Failure)
                else self._conclude(found)
            )

    async def _prepare(self) -> dict[str, JsonValue] | Restart | EndedPhase:
        """Begin, and return the parameters or why there will be no task now; marks of files are noted before both."""
        if self._adopted:
            found = await self._reader.parameters()
        else:
            holds = await self._reader.condition()
            if isinstance(holds, dict):
                return Restart(holds)
            if not holds:
                why = f"its condition does not hold: {self._phase.when}"
                state = PhaseState(status="skipped", run=self._before.run, why=why)
                return await self._settle(state, "phase_skipped", why)
            await self._note_seen()
            # Side by side: begun without a task it is simply begun again, and a step costs a round trip less.
            begun, read = await asyncio.gather(
                self._begin(), self._reader.parameters(), return_exceptions=True
            )
            for problem in (begun, read):
                if isinstance(problem, BaseException):
                    raise problem
            found = read  # type: ignore[assignment] # no exception any more
        return Restart(found[0]) if isinstance(found, list) else found

    async def _note_seen(self) -> None:
        phase = self._phase
        live = self._live
        parts = self._parts
        marks: dict[str, str] = {}
        if phase.reads_files:
            async with live.looking:
                marks = await self._look()
        project = live.record.project
        if phase.standards:
            marks |= tag_marks(
                STANDARD,
                await parts.projects.marks(project, "standard", phase.standards),
            )
        if phase.design:
            marks |= tag_marks(
                DESIGN, await parts.projects.marks(project, "decision", phase.design)
            )
        if not marks and not phase.reads_files:
            return
        # That it looked for files and found none has to be known, too: one may appear.
        if not await parts.runs.note_seen(
            live.session_id, live.fence, phase.name, marks or {FILE: ""}
        ):
            raise live.lost()

    async def _look(self) -> dict[str, str]:
        """Return the marks of the phase's files.

        Raises:
            InvalidInput: they may not be looked at, or that was too much for a phase of this run before.
        """
        live = self._live
        if live.blind:
            raise InvalidInput(live.blind)
        root = root_of(live.record.pipeline, live.record.inputs)
        user = live.record.user_id
        try:
            found = await self._parts.fingerprints.take(
                root, [(self._phase.reads_files, live.marks)], user_id=user
            )
        except InvalidInput as error:
            live.blind = str(error)
            raise
        live.marks.update(found.marks[0])
        return found.marks[0]

    async def _begin(self) -> None:
        live = self._live
        name = self._phase.name
        if not await self._parts.runs.begin_phase(
            live.session_id,
            fence=live.fence,
            phase=name,
            task_id=self._task_id,
            run=self._run,
        ):
            raise live.lost()
        self._begun = True
        self._parts.tell(
            live.event("phase_started", self._parts.now(), name, task_id=self._task_id)
        )

    def _assignment(
        self, parameters: dict[str, JsonValue], since: datetime | None = None
    ) -> TaskAssignment:
        """Return the assignment of the phase; of one of its parts, since when."""
        phase = self._phase
        record = self._live.record
        if since is None:
            since = self._parts.now()
            if self._adopted and self._before.since_ms is not None:
                since = (
                    datetime.fromtimestamp(self._before.since_ms / 1000, UTC)
                    + self._live.ahead
                )
        return TaskAssignment(
            task_id=self._task_id,
            agent_id=phase.agent,
            supervisor_id=self._parts.supervisor_id,
            task=TaskCall(name=phase.task, parameters=parameters),
            created_at=since,
            deadline=since + phase.longest if phase.longest is not None else None,
            max_attempts=phase.retries + 1,
            # A remembered answer belongs to the run that is not to count any more.
            memory="refresh"
            if self._run > 1 and phase.memory == "use"
            else phase.memory,
            user_id=record.user_id,
            caller=record.caller,
            session_id=record.session_id,
            phase=phase.name,
            writes=phase.writes,
            keep_ms=max(1, phase.keep_for // timedelta(milliseconds=1))
            if phase.keep_for is not None
            else None,
        )

    async def _run_parts(self) -> PhaseEnd:
        """Run a task for each item or round, or a pipeline, and keep the results together."""
        phase = self._phase
        live = self._live

        def assign(task_id: str, parameters: dict[str, JsonValue]) -> TaskAssignment:
            # It shares the session, and leaves its result to the driver: the phase has one entry for all.
            changed = {
                "task_id": task_id,
                "parent_id": self._task_id,
                "phase": None,
                "writes": None,
                "keep_ms": None,
            }
            return self._assignment(parameters, since=self._parts.now()).model_copy(
                update=changed
            )

        since_ms = self._before.since_ms if self._adopted else None
        began = (
            self._parts.now()
            if since_ms is None
            else datetime.fromtimestamp(since_ms / 1000, UTC)
        )

        def took_ms() -> int:
            """Return how long the phase has run: its items run side by side."""
            return max(0, (self._parts.now() - began) // timedelta(milliseconds=1))

        before = live.task_id(phase.name, self._run - 1) if self._run > 1 else None
        is_new = not self._adopted
        fan_out = FanOut(
            self._parts,
            live,
            phase,
            base=self._task_id,
            before=before,
            is_new=is_new,
            assign=assign,
        )
        result: JsonValue = None
        if phase.repeat_until is not None:
            what = "round"
            done, result, is_reached = await fan_out.rounds(
                self._reader.parameters_of, self._reader.is_reached
            )
            if not (is_reached or done.failures or done.is_cancelled):
                words = f"{phase.repeat_until} does not hold after {done.total} rounds; raise `at_most`, then resume"
                return await self._fail(
                    Failure("NotReached", words),
                    took_ms=took_ms(),
                    computed_ms=done.computed_ms,
                    attempts=done.attempts,
                )
        else:
            is_list = phase.for_each is not None
            what, items = ("item", self._reader.items()) if is_list else ("", [None])

            def parameters_of(number: int) -> dict[str, JsonValue]:
                return self._reader.parameters_of(items[number], number)

            done = await fan_out.run(parameters_of, len(items))
            if not done.is_cancelled and not (
                done.failures and (phase.on_failure == "fail" or not is_list)
            ):
                found = await fan_out.results(parameters_of, done)
                result = found if is_list else found[0]
        if done.is_cancelled:
            return CancelRequested(
                await self._parts.runs.cancel_reason(live.session_id) or ""
            )
        if done.failures and (phase.on_failure == "fail" or what != "item"):
            first = done.failures[min(done.failures)]
            failure = (
                Failure(f"{what.title()}Failed", failure_words(done, what))
                if what
                else first
            )
            return await self._fail(
                failure,
                took_ms=took_ms(),
                computed_ms=done.computed_ms,
                attempts=done.attempts,
            )
        entry = NewEntry(
            key=f"{phase.name}:results",
            value=result,
            phase=phase.name,
            agent=phase.agent,
            computation_ms=done.computed_ms,
            ttl=phase.keep_for,
        )
        await self._parts.cache.set_many(
            live.session_id, [entry], task_id=self._task_id, phase=phase.name
        )
        state = self._state(
            "done",
            took_ms=took_ms(),
            computed_ms=done.computed_ms,
            attempts=done.attempts,
        )
        return await self._settle(
            state,
            "phase_done",
            done.describe(what) if what else "",
            run_ms=state.took_ms,
        )

    async def _conclude(self, report: CompletionReport) -> PhaseEnd:
        """Settle the phase by the report of its task."""
        if report.status == "completed":
            since_ms = self._before.since_ms if self._adopted else None
            state = PhaseState(
                status="done",
                run=self._run,
                task_id=self._task_id,
                since_ms=since_ms,
                took_ms=report.run_ms,
                computed_ms=_computed_ms(report),
                attempts=report.attempt,
                memory=report.memory.outcome,
            )
            return await self._settle(state, "phase_done", "", run_ms=report.run_ms)
        if report.status == "cancelled":
            reason = await self._parts.runs.cancel_reason(self._live.session_id)
            if reason is not None:
                return CancelRequested(reason)
        return await self._fail(
            Failure.of(report),
            took_ms=report.run_ms,
            computed_ms=_computed_ms(report),
            attempts=report.attempt,
        )

    def _state(
        self,
        status: PhaseStatus,
        *,
        took_ms: int,
        attempts: int,
        computed_ms: int | None = None,
        error: Failure | None = None,
    ) -> PhaseState:
        return PhaseState(
            status=status,
            run=self._run if self._begun else self._before.run,
            task_id=self._task_id if self._begun else None,
            took_ms=took_ms,
            computed_ms=computed_ms,
            attempts=attempts,
            error_type=error.error_type if error is not None else None,
            error=self._live.masker.mask_text(error.error)
            if error is not None
            else None,
        )

    async def _fail(
        self,
        failure: Failure,
        *,
        took_ms: int = 0,
        computed_ms: int | None = None,
        attempts: int = 0,
    ) -> EndedPhase:
        state = self._state(
            "failed",
            took_ms=took_ms,
            computed_ms=computed_ms,
            attempts=attempts,
            error=failure,
        )
        return await self._settle(
            state,
            "phase_failed",
            f"{failure.error_type}: {state.error}",
            run_ms=took_ms,
        )

    async def _settle(
        self,
        state: PhaseState,
        kind: PipelineEventKind,
        text: str,
        run_ms: int | None = None,
    ) -> EndedPhase:
        live = self._live
        phase = self._phase
        corrects = phase.corrects if state.status == "done" else None

        async def store() -> None:
            if not await self._parts.runs.settle_phase(
                live.session_id,
                fence=live.fence,
                phase=phase.name,
                state=state,
                corrects=corrects,
            ):
                raise live.lost()

        if state.status == "done" and corrects is None:
            # Phases after it may begin meanwhile: its entries are there, and should this be lost, its report is found
            # again. The run does not end before it is stored.
            live.meanwhile(store())
        else:
            await store()
        live.phases[phase.name] = state
        if corrects is not None:
            live.corrected[corrects] = phase.name
        self._parts.meter.count_phase(state.status)
        at = self._parts.now()
        self._parts.tell(
            live.event(
                kind, at, phase.name, text=text, task_id=state.task_id, run_ms=run_ms
            )
        )
        return EndedPhase(state)


def _computed_ms(report: CompletionReport) -> int | None:
    """Return for how long the task of *report* computed, None where it waited for no other task."""
    return report.run_ms - report.waited_ms if report.waited_ms else None
