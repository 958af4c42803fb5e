"""Runs that rest and go on: what runs again, what is reused, and what is only marked as stale."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from contracts.errors import InvalidInput
from contracts.messages import PhaseNote, PipelineReply, PipelineRequest
from contracts.pipelines import Pipeline, items_phase
from memory.sessions.pipeline_records import PhaseState, Redeclared, RunRecord
from supervisor.pipelines.declaration.graph import Graph
from supervisor.pipelines.declaration.inputs import problems_in_inputs
from supervisor.pipelines.declaration.staleness import Staleness
from supervisor.pipelines.live import LiveRun, Parts, demand_root
from supervisor.pipelines.planning import ResumePlan, resume_plan
from supervisor.pipelines.redeclaring import Redeclaration, redeclared


class Resuming:
    """Lets runs go on that do not run, and marks what is stale in them."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._staleness = Staleness(parts)

    async def go_on(
        self,
        record: RunRecord,
        request: PipelineRequest,
        *,
        begins_at: str | None = None,
        pipeline: Pipeline | None = None,
    ) -> PipelineReply:
        """Let *record* run again: what is not through, what is stale, the phase *begins_at*, and what depends on them.

        With *pipeline*, a declaration that is sound, it goes on by that one.

        Raises:
            InvalidInput: there is nothing to do, something named is not there, or somebody else was quicker.
            UnknownSession: its time to live is over.
            MemoryUnavailable: the store did not answer.
        """
        changed = _continued(record, request.inputs, pipeline)
        record = changed.record
        await demand_root(self._parts, record.pipeline, record.inputs, record.user_id)
        session_id, graph = record.session_id, Graph.of(record.pipeline)
        # Those that were marked before, each with its reason, and what is stale since.
        marked = {name: state.why for name, state in record.phases.items() if state.status == "pending" and state.why}
        stale = {**marked, **await self._staleness.of(record, request), **changed.stale}
        if begins_at is not None:
            stale[begins_at] = "it was asked to run again"
        entries = await self._parts.cache.entries(session_id)
        statuses = {name: state.status for name, state in record.phases.items()}
        plan = resume_plan(record.pipeline, graph, statuses, {entry.key for entry in entries}, stale)
        # One that was cancelled when all was through has its result still to tell.
        if not plan.again and record.state == "completed":
            raise InvalidInput(
                f"run {session_id!r} is {record.state} and nothing of it is stale; `rerun` begins again at a phase"
            )
        # Another declaration has other parameters, or leaves what was computed as it is.
        await self._drop_items(record, graph, {name: why for name, why in stale.items() if name not in changed.stale})
        # What never began has nothing to lose, and is not stale.
        stale = {name: why for name, why in plan.again.items() if not _is_fresh(record.phases[name])}
        self._tell_plan(await self._reset(changed, stale, None if pipeline is None else graph), stale, plan.reused)
        return PipelineReply(
            session_id=session_id,
            kind="accepted",
            text=_plan_in_words(record, plan, changed.removed),
            stale=tuple(
                PhaseNote(phase=name, why="it is new" if name in changed.new else why)
                for name, why in plan.again.items()
            ),
            reused=_reused_in(plan, record.phases),
        )

    async def _drop_items(self, record: RunRecord, graph: Graph, stale: Mapping[str, str]) -> None:
        """Drop what the items of phases returned that are *stale* themselves.

        Where only phases before are, items whose parameters are the same stand.
        """
        dropped = [
            items_phase(one.name)
            for one in record.pipeline.phases
            if one.has_parts
            and one.name in stale
            and (one.reads_files or one.standards or one.design or graph.ancestors(one.name).isdisjoint(stale))
        ]
        if dropped:
            await self._parts.cache.invalidate_phases(record.session_id, dropped)

    async def _reset(self, changed: Redeclaration, stale: Mapping[str, str], graph: Graph | None) -> RunRecord:
        """Let the run go on, its *stale* phases pending, with what was *changed*; *graph* is that of a new declaration.

        Raises:
            InvalidInput: somebody else was quicker.
            UnknownSession: its time to live is over.
            MemoryUnavailable: the store did not answer.
        """
        record = changed.record
        resumed = await self._parts.runs.reset_phases(
            record.session_id,
            {**stale, **dict.fromkeys((*changed.new, *changed.removed), "")},
            restart=True,
            expected_run=record.run,
            inputs=record.inputs,
            declared=Redeclared(record.pipeline, graph.dependencies, record.project) if graph is not None else None,
        )
        if resumed is None:
            raise InvalidInput(f"somebody else made run {record.session_id!r} go on just now; look at its status")
        return resumed

    async def mark(self, record: RunRecord, request: PipelineRequest) -> PipelineReply:
        """Mark what is stale in *record*, its entries gone, and run nothing.

        Raises:
            InvalidInput: something named is not there, or somebody else let it go on meanwhile.
            UnknownSession: its time to live is over.
            MemoryUnavailable: the store did not answer.
        """
        graph = Graph.of(record.pipeline)
        found = await self._staleness.of(record, request)
        if not found:
            return PipelineReply(session_id=record.session_id, kind="accepted", text="nothing is stale")
        runs, session_id = self._parts.runs, record.session_id
        if await runs.reset_phases(session_id, found, restart=False, expected_run=record.run) is None:
            raise InvalidInput(f"somebody else made run {record.session_id!r} go on just now; look at its status")
        live = LiveRun.of(record, 0)
        for name, why in found.items():
            self._parts.tell(live.event("phase_stale", self._parts.now(), name, text=why))
        names = ", ".join(name for name in graph.order if name in found)
        return PipelineReply(
            session_id=record.session_id,
            kind="accepted",
            text=f"stale: {names}; `resume` runs them again",
            stale=tuple(PhaseNote(phase=name, why=why) for name, why in found.items()),
        )

    def _tell_plan(self, record: RunRecord, stale: Mapping[str, str], reused: Sequence[str]) -> None:
        live = LiveRun.of(record, 0)
        for name, why in stale.items():
            self._parts.tell(live.event("phase_stale", self._parts.now(), name, text=why))
        for name in reused:
            self._parts.tell(live.event("phase_reused", self._parts.now(), name))


def _continued(record: RunRecord, given: Mapping[str, JsonValue], pipeline: Pipeline | None) -> Redeclaration:
    """Return *record* as it goes on, with the inputs *given* and by the declaration *pipeline*, None: its own.

    Raises:
        InvalidInput: that cannot be.
    """
    if pipeline is not None:
        return redeclared(record, pipeline, given)
    return Redeclaration(replace(record, inputs=_renewed_inputs(record, given)), {}, (), ())


def _is_fresh(state: PhaseState) -> bool:
    """Return whether it has not begun, nor was marked after it had."""
    return state.status == "pending" and not state.why


def _reused_in(plan: ResumePlan, phases: Mapping[str, PhaseState]) -> tuple[PhaseNote, ...]:
    return tuple(PhaseNote(phase=name, why="it is done", saved_ms=phases[name].took_ms) for name in plan.reused)


def _renewed_inputs(record: RunRecord, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the inputs with which a run goes on: only secrets may be renewed.

    Raises:
        InvalidInput: another input would change, or does not fit.
    """
    if not given:
        return record.inputs
    declared = record.pipeline.inputs
    problems = [one.text for one in problems_in_inputs(record.pipeline, {**record.inputs, **given})]
    problems += [
        f"input {name!r} was another when the run began, and what it made rests on that; start a new run"
        for name, value in given.items()
        if name in declared and not declared[name].secret and record.inputs.get(name) != value
    ]
    if problems:
        raise InvalidInput("; ".join(problems))
    return {**record.inputs, **given}


def _plan_in_words(record: RunRecord, plan: ResumePlan, removed: Sequence[str]) -> str:
    gone = f"cache incomplete, missing: {', '.join(plan.missing)}; " if plan.missing else ""
    reused = f"{len(plan.reused)} of {len(record.phases)} phases are reused" if plan.reused else "no phase is reused"
    dropped = f"; no longer declared: {', '.join(removed)}" if removed else ""
    return f"{gone}{reused}, {len(plan.again)} run{dropped}"
