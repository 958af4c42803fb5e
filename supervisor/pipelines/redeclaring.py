"""Another declaration for a run that rests: which of its results still hold under it, and with which inputs it goes on.

A phase whose declaration changed in what its result may rest on is stale. How its task is run (`timeout`, `retries`,
`keep_for`, `memory`, `at_once`, `at_most`) only counts from now on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from contracts.errors import InvalidInput
from contracts.pipelines import Phase, Pipeline
from memory.sessions.pipeline_records import PhaseState, RunRecord
from supervisor.pipelines.declaration.graph import Graph
from supervisor.pipelines.declaration.inputs import fill_defaults, problems_in_inputs
from supervisor.pipelines.declaration.mentions import mentions_of
from supervisor.pipelines.declaration.references import Reference, read_text

#: Fields of a phase that its result does not rest on.
_BESIDE_THE_RESULT = frozenset(
    {
        "timeout",
        "retries",
        "optional",
        "late_after",
        "cancel_after",
        "keep_for",
        "memory",
        "at_once",
        "at_most",
        "description",
    }
)


@dataclass(frozen=True, slots=True)
class Redeclaration:
    """`record` is the run as the new declaration has it, with its inputs.

    `stale` are phases whose results no longer hold, each with the reason, without what depends on them now; `new`
    phases were not there before, `removed` ones are there no more.
    """

    record: RunRecord
    stale: Mapping[str, str]
    new: tuple[str, ...]
    removed: tuple[str, ...]


def redeclared(record: RunRecord, pipeline: Pipeline, given: Mapping[str, JsonValue]) -> Redeclaration:
    """Return what *pipeline*, which is sound, makes of *record*; *given* are inputs that are new, or secret.

    Raises:
        InvalidInput: it is another pipeline, an input is missing or does not fit, or one that counts would change.
    """
    before = record.pipeline
    if pipeline.name != before.name:
        raise InvalidInput(
            f"run {record.session_id!r} is one of {before.name!r}, not of {pipeline.name!r}; correct that declaration, "
            "or start a new run with this one"
        )
    inputs = _inputs(record, pipeline, given)
    names = [phase.name for phase in pipeline.phases]
    new = tuple(name for name in names if name not in record.phases)
    removed = tuple(name for name in record.phases if name not in names)
    follows = before.project_id != pipeline.project_id
    after = replace(
        record,
        pipeline=pipeline,
        inputs=inputs,
        project=pipeline.project_id if follows else record.project,
        phases={name: record.phases.get(name, PhaseState()) for name in names},
    )
    stale = {name: why for name, why in _stale(record, after, removed) if after.phases[name].status != "pending"}
    return Redeclaration(after, stale, new, removed)


def _stale(before: RunRecord, after: RunRecord, removed: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the phases of *after* that do not hold any more, each with a reason; a later one counts."""
    known = {phase.name: phase for phase in before.pipeline.phases}
    changed = [phase.name for phase in after.pipeline.phases if _is_other(phase, known.get(phase.name))]
    # What they wrote was read; by the new declaration it may not even be known that somebody did.
    written = [name for name in (*changed, *removed) if name in known and before.phases[name].status == "done"]
    still = Graph.of(after.pipeline).dependents(changed)
    for name in Graph.of(before.pipeline).dependents(written):
        if name in after.phases and name not in still:
            yield name, "it rests on a phase whose declaration changed"
    others = {name for name, value in after.inputs.items() if name in before.inputs and before.inputs[name] != value}
    secret = {name for name in others if after.pipeline.inputs[name].secret}
    told = others - secret
    moved = before.pipeline.root != after.pipeline.root or not told.isdisjoint(_inputs_of_root(after.pipeline))
    for phase in after.pipeline.phases:
        if phase.name not in known:
            continue
        read = {one.reference.name for one in mentions_of(phase)[0] if one.reference.kind == "input"}
        if moved and phase.reads_files:
            yield phase.name, "the root of its files changed"
        if default := sorted(read & told):
            yield phase.name, f"the default of input {default[0]!r} changed"
    yield from ((name, "its declaration changed") for name in changed if name in known)


def _is_other(phase: Phase, before: Phase | None) -> bool:
    """Return whether the result of *phase* may be another than that of what it was *before*."""
    if before is None:
        return True
    return phase.model_dump(exclude=set(_BESIDE_THE_RESULT)) != before.model_dump(exclude=set(_BESIDE_THE_RESULT))


def _inputs_of_root(pipeline: Pipeline) -> set[str]:
    pieces = read_text(pipeline.root or "")
    return {piece.name for piece in pieces if isinstance(piece, Reference) and piece.kind == "input"}


def _inputs(record: RunRecord, pipeline: Pipeline, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the inputs by the declaration *pipeline*: those kept, *given* ones, and defaults, also corrected ones.

    Raises:
        InvalidInput: as `redeclared`.
    """
    kept = {name: value for name, value in record.inputs.items() if name in pipeline.inputs}
    for name in list(kept):
        before, after = record.pipeline.inputs.get(name), pipeline.inputs[name]
        was_default = before is not None and not before.required and before.default == kept[name]
        if was_default and not after.required:
            # Nobody gave it, as far as can be told.
            kept[name] = after.default
    problems = [
        f"input {name!r} was another when the run began, and what it made rests on that; start a new run"
        for name, value in given.items()
        if name in kept and not pipeline.inputs[name].secret and kept[name] != value
    ]
    inputs = fill_defaults(pipeline, {**kept, **given})
    problems += [one.text for one in problems_in_inputs(pipeline, inputs)]
    if problems:
        raise InvalidInput("; ".join(problems))
    return inputs
