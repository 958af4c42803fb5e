"""Runs that rest and go on: which phases run again, which are reused, and which are only marked as stale.

A run may go on by another declaration. A phase whose declaration changed in a field that its result rests on is stale;
fields that only say how its task is run count from then on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import PhaseNote, PipelineReply, PipelineRequest
from tasklore.contracts.pipelines import Phase, Pipeline, items_phase
from tasklore.memory.sessions.pipeline_records import PhaseState, Redeclared, RunRecord
from tasklore.supervisor.pipelines.declaration.fingerprints import Fingerprint
from tasklore.supervisor.pipelines.declaration.graph import Graph, mentions_of
from tasklore.supervisor.pipelines.declaration.inputs import (
    fill_defaults,
    problems_in_inputs,
)
from tasklore.supervisor.pipelines.declaration.marks import (
    DESIGN,
    STANDARD,
    changes,
    summarise,
    tag_marks,
)
from tasklore.supervisor.pipelines.declaration.references import Reference, read_text
from tasklore.supervisor.pipelines.live import (
    RUN_ROLE,
    DriverDependencies,
    LiveRun,
    demand_root,
    root_of,
)
from tasklore.supervisor.pipelines.planning import (
    Changes,
    ResumePlan,
    resume_plan,
    stale_phases,
)

#: Fields of a phase that its result does not rest on.
_BESIDE_THE_RESULT = {
    "timeout", "retries", "optional", "late_after", "cancel_after", "keep_for", "memory", "at_once", "at_most",
    "description",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Redeclaration:
    """A run as another declaration has it, with its inputs.

    `stale` are phases whose results no longer hold, each with the reason, without those that depend on them; `new`
    phases were not there before, `removed` ones are there no more.
    """

    record: RunRecord
    stale: Mapping[str, str] = field(default_factory=dict)
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Resumption:
    """Resumes runs that rest, and marks phases as stale in them."""

    def __init__(self, parts: DriverDependencies) -> None:
        self._parts = parts

    async def resume(
        self,
        record: RunRecord,
        request: PipelineRequest,
        *,
        begins_at: str | None = None,
        pipeline: Pipeline | None = None,
    ) -> PipelineReply:
        """Run the phases of *record* again that are not through or stale, *begins_at*, and all that depend on them.

        With *pipeline*, a declaration that is sound, it goes on by that one.

        Raises:
            InvalidInput: there is nothing to do, a name is unknown, or another request was quicker.
            UnknownSession: its time to live is over.
            MemoryUnavailable: the store did not answer.
        """
        if pipeline is not None:
            changed = redeclare(record, pipeline, request.inputs)
        else:
            changed = Redeclaration(
                replace(record, inputs=_renew_secrets(record, request.inputs))
            )
        record = changed.record
        await demand_root(self._parts, record.pipeline, record.inputs, record.user_id)
        session_id = record.session_id
        graph = Graph.of(record.pipeline)
        # Those that were marked before, each with its reason, and those that are stale since.
        marked = {
            name: state.why
            for name, state in record.phases.items()
            if state.status == "pending" and state.why
        }
        stale = {**marked, **await self._find_stale(record, request), **changed.stale}
        if begins_at is not None:
            stale[begins_at] = "it was asked to run again"
        entries = await self._parts.cache.entries(session_id)
        statuses = {name: state.status for name, state in record.phases.items()}
        plan = resume_plan(
            record.pipeline,
            graph=graph,
            statuses=statuses,
            live_keys={entry.key for entry in entries},
            restart=stale,
        )
        # One that was cancelled when all was through has its result still to tell.
        if not plan.again and record.state == "completed":
            raise InvalidInput(
                f"run {session_id!r} is {record.state} and nothing of it is stale; `rerun` begins again at a phase"
            )
        # Another declaration has other parameters, or leaves items as they are.
        await self._drop_items(
            record, graph, {name for name in stale if name not in changed.stale}
        )
        # A phase that never began has nothing to lose, and is not stale.
        phases = record.phases
        stale = {
            name: why
            for name, why in plan.again.items()
            if phases[name].status != "pending" or phases[name].why
        }
        resumed = await self._parts.runs.reset_phases(
            session_id,
            {**stale, **dict.fromkeys((*changed.new, *changed.removed), "")},
            restart=True,
            expected_run=record.run,
            inputs=record.inputs,
            declared=None
            if pipeline is None
            else Redeclared(record.pipeline, graph.dependencies, record.project),
            caller=self._parts.makers.payer_of(request.caller, record.caller, RUN_ROLE),
        )
        if resumed is None:
            raise _overtaken(record)
        self._publish_stale(resumed, stale)
        live = LiveRun.of(resumed, 0)
        for name in plan.reused:
            self._parts.tell(live.event("phase_reused", self._parts.now(), name))
        return _accept(record, plan, changed)

    async def mark_stale(
        self, record: RunRecord, request: PipelineRequest
    ) -> PipelineReply:
        """Mark the stale phases of *record*, drop their entries, and run nothing.

        Raises:
            InvalidInput: a name is unknown, or another request let it go on meanwhile.
            UnknownSession: its time to live is over.
            MemoryUnavailable: the store did not answer.
        """
        found = await self._find_stale(record, request)
        if not found:
            return PipelineReply(
                session_id=record.session_id, kind="accepted", text="nothing is stale"
            )
        reset = self._parts.runs.reset_phases(
            record.session_id, found, restart=False, expected_run=record.run
        )
        if await reset is None:
            raise _overtaken(record)
        self._publish_stale(record, found)
        names = ", ".join(
            name for name in Graph.of(record.pipeline).order if name in found
        )
        return PipelineReply(
            session_id=record.session_id,
            kind="accepted",
            text=f"stale: {names}; `resume` runs them again",
            stale=tuple(PhaseNote(phase=name, why=why) for name, why in found.items()),
        )

    async def _drop_items(
        self, record: RunRecord, graph: Graph, stale: set[str]
    ) -> None:
        """Drop the items of phases that are *stale* themselves.

        Where only phases before are, items with the same parameters stand.
        """
        dropped = [
            items_phase(one.name)
            for one in record.pipeline.phases
            if one.has_parts
            and one.name in stale
            and (
                one.reads_files
                or one.standards
                or one.design
                or graph.ancestors(one.name).isdisjoint(stale)
            )
        ]
        if dropped:
            await self._parts.cache.invalidate_phases(record.session_id, dropped)

    def _publish_stale(self, record: RunRecord, stale: Mapping[str, str]) -> None:
        live = LiveRun.of(record, 0)
        for name, why in stale.items():
            self._parts.tell(
                live.event("phase_stale", self._parts.now(), name, text=why)
            )

    async def _find_stale(
        self, record: RunRecord, request: PipelineRequest
    ) -> dict[str, str]:
        """Return each stale phase with the reason: those *request* names, those whose sources changed, and dependents.

        Raises:
            InvalidInput: it names a phase that is not there, or files lead out of the root.
            MemoryUnavailable: the store did not answer.
        """
        graph = Graph.of(record.pipeline)
        statuses = {name: state.status for name, state in record.phases.items()}
        seen, fitting = await self._find_changes(record, request.changed)
        named = Changes(
            files=tuple(dict.fromkeys(fitting.values())),
            standards=request.standards,
            design=request.design,
            phases=(request.phase,) if request.phase is not None else (),
            keys=request.keys,
            fits=lambda glob, path: fitting.get(glob) == path,
        )
        stale = stale_phases(record.pipeline, graph, named, statuses)
        everything = replace(named, phases=(*named.phases, *seen))
        # What was seen to change comes in its own words; what depends on it, in those of the graph.
        return {
            **stale_phases(record.pipeline, graph, everything, statuses),
            **stale,
            **seen,
        }

    async def _find_changes(
        self, record: RunRecord, files: Sequence[str]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return the phases whose sources differ from their marks, each with the difference.

        Also return the globs that fit one of *files*, each with the first that it fits.
        """
        noted = await self._parts.runs.seen(record.session_id)
        begun = [
            phase
            for phase in record.pipeline.phases
            if phase.name in noted
            and record.phases[phase.name].status in ("done", "failed")
        ]
        readers = [phase for phase in begun if phase.reads_files]
        fingerprint = Fingerprint()
        globs = [glob for phase in record.pipeline.phases for glob in phase.reads_files]
        if readers or (files and globs):
            looks = [(phase.reads_files, noted[phase.name]) for phase in readers]
            fingerprint = await self._parts.fingerprints.take(
                root_of(record.pipeline, record.inputs),
                looks,
                user_id=record.user_id,
                changed=files,
                globs=list(dict.fromkeys(globs)),
            )
        projects = self._parts.projects
        marks = {
            phase.name: found
            for phase, found in zip(readers, fingerprint.marks, strict=True)
        }
        found = {}
        for phase in begun:
            now = marks.get(phase.name, {})
            if phase.standards:
                now |= tag_marks(
                    STANDARD,
                    await projects.marks(record.project, "standard", phase.standards),
                )
            if phase.design:
                now |= tag_marks(
                    DESIGN,
                    await projects.marks(record.project, "decision", phase.design),
                )
            if differing := changes(noted[phase.name], now):
                found[phase.name] = summarise(differing)
        return found, fingerprint.changed


def redeclare(
    record: RunRecord, pipeline: Pipeline, given: Mapping[str, JsonValue]
) -> Redeclaration:
    """Return *record* as *pipeline*, which is sound, has it; *given* are inputs that are new, or secret.

    Raises:
        InvalidInput: it is another pipeline, an input is missing or does not fit, or one that counts would change.
    """
    before = record.pipeline
    if pipeline.name != before.name:
        raise InvalidInput(
            f"run {record.session_id!r} is one of {before.name!r}, not of {pipeline.name!r}; correct that declaration, "
            "or start a new run with this one"
        )
    kept = {
        name: value for name, value in record.inputs.items() if name in pipeline.inputs
    }
    for name in list(kept):
        last = before.inputs.get(name)
        now = pipeline.inputs[name]
        if (
            last is not None
            and not last.required
            and last.default == kept[name]
            and not now.required
        ):
            # As far as can be known it was not given, and a corrected default counts.
            kept[name] = now.default
    secret = {name for name, one in pipeline.inputs.items() if one.secret}
    inputs = fill_defaults(pipeline, {**kept, **given})
    _refuse_inputs(
        [
            *_changed_inputs(kept, given, secret),
            *(one.text for one in problems_in_inputs(pipeline, inputs)),
        ]
    )
    names = [phase.name for phase in pipeline.phases]
    removed = tuple(name for name in record.phases if name not in names)
    after = replace(
        record,
        pipeline=pipeline,
        inputs=inputs,
        project=pipeline.project_id
        if before.project_id != pipeline.project_id
        else record.project,
        phases={name: record.phases.get(name, PhaseState()) for name in names},
    )
    stale = {
        name: why
        for name, why in _stale(record, after, removed)
        if after.phases[name].status != "pending"
    }
    return Redeclaration(
        after,
        stale,
        tuple(name for name in names if name not in record.phases),
        removed,
    )


def _stale(
    before: RunRecord, after: RunRecord, removed: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield the phases of *after* that do not hold any more, each with a reason; a later one counts."""
    known = {phase.name: phase for phase in before.pipeline.phases}
    changed = [
        phase.name
        for phase in after.pipeline.phases
        if phase.name not in known
        or _results_rest_on(phase) != _results_rest_on(known[phase.name])
    ]
    # Their entries were read; by the new declaration it may not even be known by which phases.
    written = [
        name
        for name in (*changed, *removed)
        if name in known and before.phases[name].status == "done"
    ]
    still = Graph.of(after.pipeline).dependents(changed)
    for name in Graph.of(before.pipeline).dependents(written):
        if name in after.phases and name not in still:
            yield name, "it rests on a phase whose declaration changed"
    others = {
        name
        for name, value in after.inputs.items()
        if name in before.inputs and before.inputs[name] != value
    }
    others -= {name for name in others if after.pipeline.inputs[name].secret}
    pieces = read_text(after.pipeline.root or "")
    in_root = {
        piece.name
        for piece in pieces
        if isinstance(piece, Reference) and piece.kind == "input"
    }
    is_moved = before.pipeline.root != after.pipeline.root or not others.isdisjoint(
        in_root
    )
    for phase in after.pipeline.phases:
        if phase.name not in known:
            continue
        read = {
            one.reference.name
            for one in mentions_of(phase)[0]
            if one.reference.kind == "input"
        }
        if is_moved and phase.reads_files:
            yield phase.name, "the root of its files changed"
        if default := sorted(read & others):
            yield phase.name, f"the default of input {default[0]!r} changed"
    yield from ((name, "its declaration changed") for name in changed if name in known)


def _results_rest_on(phase: Phase) -> dict[str, object]:
    return phase.model_dump(exclude=_BESIDE_THE_RESULT)


def _renew_secrets(
    record: RunRecord, given: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the inputs with which a run goes on by its own declaration: only secrets may be renewed.

    Raises:
        InvalidInput: another input would change, or does not fit.
    """
    if not given:
        return record.inputs
    declared = record.pipeline.inputs
    inputs = {**record.inputs, **given}
    secret = {name for name, one in declared.items() if one.secret}
    kept = {name: record.inputs.get(name) for name in declared}
    problems = [one.text for one in problems_in_inputs(record.pipeline, inputs)]
    _refuse_inputs([*problems, *_changed_inputs(kept, given, secret)])
    return inputs


def _changed_inputs(
    kept: Mapping[str, JsonValue], given: Mapping[str, JsonValue], secret: set[str]
) -> Iterator[str]:
    for name, value in given.items():
        if name in kept and name not in secret and kept[name] != value:
            yield f"input {name!r} was another when the run began, and what it made rests on that; start a new run"


def _refuse_inputs(problems: list[str]) -> None:
    if problems:
        raise InvalidInput("; ".join(problems))


def _overtaken(record: RunRecord) -> InvalidInput:
    return InvalidInput(
        f"somebody else has just resumed run {record.session_id!r}; check its status"
    )


def _accept(
    record: RunRecord, plan: ResumePlan, changed: Redeclaration
) -> PipelineReply:
    """Return the reply that lists the phases that run again, and those that are reused."""
    return PipelineReply(
        session_id=record.session_id,
        kind="accepted",
        text=_describe(record, plan, changed.removed),
        stale=tuple(
            PhaseNote(phase=name, why="it is new" if name in changed.new else why)
            for name, why in plan.again.items()
        ),
        reused=tuple(
            PhaseNote(
                phase=name, why="it is done", saved_ms=record.phases[name].computing_ms
            )
            for name in plan.reused
        ),
    )


def _describe(record: RunRecord, plan: ResumePlan, removed: tuple[str, ...]) -> str:
    gone = (
        f"cache incomplete, missing: {', '.join(plan.missing)}; "
        if plan.missing
        else ""
    )
    reused = (
        f"{len(plan.reused)} of {len(record.phases)} phases are reused"
        if plan.reused
        else "no phase is reused"
    )
    dropped = f"; no longer declared: {', '.join(removed)}" if removed else ""
    return f"{gone}{reused}, {len(plan.again)} run{dropped}"
