"""Whether a pipeline can run as it is declared: everything that is wrong with it at once, each with its place."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, islice

from contracts.errors import InvalidInput
from contracts.messages import AgentCard
from contracts.pipelines import MOST_LEVELS, Phase, Pipeline, items_phase
from contracts.session_keys import EntryKey, read_key
from supervisor.pipelines.declaration.against_cards import problems_with, write_problems
from supervisor.pipelines.declaration.declarations import place_in_words
from supervisor.pipelines.declaration.globs import MOST_GLOBS, unusable
from supervisor.pipelines.declaration.graph import Graph, cycle_in, declared_edges, told_cycle
from supervisor.pipelines.declaration.inputs import misfit, prepared_inputs, problems_in_inputs, typed_inputs
from supervisor.pipelines.declaration.places import Reference, is_json, read_text
from supervisor.pipelines.declaration.problems import MOST_PROBLEMS, Place, Problem, known_ones, listed, nearest
from supervisor.pipelines.declaration.references import Mention, mentions_of

__all__ = [
    "Problem", "all_problems", "prepared_inputs", "problems_in_inputs", "problems_of", "problems_with", "typed_inputs",
]  # fmt: skip

#: Characters of a pattern that are repeated: who is told has to see the cure behind it.
_SHOWN = 100
#: For so long the ledger remembers a task: a phase that may take longer could run twice.
LONGEST_TIMEOUT = timedelta(days=7)


def problems_of(pipeline: Pipeline) -> list[Problem]:
    """Return what is wrong with *pipeline* by itself, in the order of its phases; empty when it may run.

    Whether the agents are there and take what they are given is the question of `problems_with`.
    """
    return list(islice(_own_problems(pipeline), MOST_PROBLEMS))


def _own_problems(pipeline: Pipeline) -> Iterator[Problem]:
    declared = _Declared.of(pipeline)
    yield from (*_pipeline_problems(pipeline), *_result_problems(declared), *_duplicates(pipeline))
    yield from _glob_problems(pipeline)
    for n, phase in enumerate(pipeline.phases):
        for problem in chain(_phase_problems(n, phase, declared), declared.unreadable[n]):
            yield Problem(("phases", n, *problem.place), problem.text)
    edges = declared_edges(pipeline.phases, declared.keys())
    circle = cycle_in(edges)
    if circle:
        yield Problem(("phases", declared.index[circle[0]]), told_cycle(circle, edges))
    else:
        yield from _left_out_problems(declared, Graph.of_phases(pipeline.phases, declared.keys()))


def all_problems(pipeline: Pipeline, cards: Mapping[str, AgentCard]) -> list[Problem]:
    """Return what keeps *pipeline* from running with the agents of *cards*, as far as it can be told at once."""
    own = problems_of(pipeline)
    # What else does not fit the agents may follow from that; what a result does not have does not.
    return [*own, *write_problems(pipeline, cards)] if own else problems_with(pipeline, cards)


@dataclass(frozen=True, slots=True)
class _Declared:
    """A pipeline taken apart: its phases by name, and by index what each refers to."""

    pipeline: Pipeline
    phases: Mapping[str, Phase]
    index: Mapping[str, int]
    mentions: tuple[list[Mention], ...]
    unreadable: tuple[list[Problem], ...]

    @classmethod
    def of(cls, pipeline: Pipeline) -> "_Declared":
        read = [mentions_of(phase) for phase in pipeline.phases]
        index: dict[str, int] = {}
        for n, phase in enumerate(pipeline.phases):
            index.setdefault(phase.name, n)
        return cls(
            pipeline,
            {name: pipeline.phases[n] for name, n in index.items()},
            index,
            tuple(mentions for mentions, _ in read),
            tuple(problems for _, problems in read),
        )

    def keys(self) -> dict[str, list[str]]:
        """Return the keys of the entries that each phase reads."""
        keys: dict[str, list[str]] = {name: [] for name in self.phases}
        for phase, mentions in zip(self.pipeline.phases, self.mentions, strict=True):
            keys[phase.name] += [one.reference.name for one in mentions if one.reference.kind == "entry"]
        return keys


def _pipeline_problems(pipeline: Pipeline) -> Iterator[Problem]:
    for name, declared in pipeline.inputs.items():
        if not is_json(declared.default):
            said = f"input {name!r}: its default has a number that JSON does not know (nan or inf)"
            yield Problem(("inputs", name, "default"), said)
        elif not declared.required and (why := misfit(declared, declared.default)):
            yield Problem(("inputs", name, "default"), f"input {name!r}: its default {why}")
    try:
        pieces = read_text(pipeline.root or "")
    except InvalidInput as error:
        yield Problem(("root",), f"root: {error}")
        return
    for piece in pieces:
        if isinstance(piece, Reference) and piece.kind != "input":
            yield Problem(("root",), f"root: {piece.text} is not known before the run; only inputs are")
        elif isinstance(piece, Reference) and piece.name not in pipeline.inputs:
            yield Problem(("root",), f"root: {_no_input(piece, pipeline)}")


def _glob_problems(pipeline: Pipeline) -> Iterator[Problem]:
    if (number := sum(len(phase.reads_files) for phase in pipeline.phases)) > MOST_GLOBS:
        said = f"reads_files: all phases together have {number:,} patterns, at most {MOST_GLOBS:,} are taken"
        yield Problem(("phases",), f"{said}; join them by wildcards, or split the pipeline")


def _number_problems(phase: Phase) -> Iterator[Problem]:
    for name, value in phase.parameters.items():
        if not is_json(value):
            why = "has a number that JSON does not know (nan or inf); write it as a text"
            yield Problem(("parameters", name), f"parameters.{name} {why}")


def _result_problems(declared: _Declared) -> Iterator[Problem]:
    if declared.pipeline.result is not None:
        try:
            key = read_key(declared.pipeline.result)
        except InvalidInput as error:
            yield Problem(("result",), f"result: {error}")
        else:
            why = _why_not_written(key, declared)
            if why:
                yield Problem(("result",), f"result is {str(key)!r}, but {why}")


def _duplicates(pipeline: Pipeline) -> Iterator[Problem]:
    names: set[str] = set()
    corrected: dict[str, str] = {}
    for n, phase in enumerate(pipeline.phases):
        if phase.name in names:
            yield Problem(("phases", n, "name"), f"name: another phase is called {phase.name!r}; rename one")
        names.add(phase.name)
        if phase.corrects in corrected:
            other = corrected[phase.corrects]
            why = f"{other!r} corrects it already; correct {other!r} instead"
            yield Problem(("phases", n, "corrects"), f"corrects {phase.corrects!r}, but {why}")
        elif phase.corrects is not None:
            corrected[phase.corrects] = phase.name


def _phase_problems(at: int, phase: Phase, declared: _Declared) -> Iterator[Problem]:
    yield from _order_problems(phase, declared)
    yield from _number_problems(phase)
    for mention in declared.mentions[at]:
        why = _why_not_there(mention.reference, phase, declared)
        if why:
            field, text = ".".join(map(str, mention.place[:2])), mention.reference.text
            said = f"reads {text!r}" if mention.place[0] == "reads" else f"{field} reads {text!r}"
            yield Problem(mention.place, f"{said}, but {why}")
    written: set[str] = set()
    for n, data_type in enumerate(phase.writes):
        if data_type in written:
            yield Problem(("writes", n), f"writes {data_type!r} twice; leave one out")
        written.add(data_type)
    yield from _part_problems(phase, declared)
    yield from _file_problems(phase, declared.pipeline.root)
    for kind, tags in (("standards", phase.standards), ("design", phase.design)):
        if not all(tag.strip() for tag in tags):
            yield Problem((kind,), f"{kind} has an empty tag; leave it out")
    yield from _time_problems(phase)


def _time_problems(phase: Phase) -> Iterator[Problem]:
    if phase.longest is not None and phase.longest > LONGEST_TIMEOUT:
        field = "timeout" if phase.longest == phase.timeout else "cancel_after"
        most = f"more than {LONGEST_TIMEOUT.days} days, after which a task is forgotten"
        yield Problem((field,), f"{field} is {phase.longest.days} days, {most}; split the phase")
    if phase.cancel_after is not None and phase.late_after is None:
        yield Problem(("cancel_after",), "cancel_after counts from when the phase is late; give it a `late_after`, too")
    if phase.cancel_after is not None and phase.has_parts:
        yield Problem(("cancel_after",), "cancel_after: only a phase of one task can be cancelled by it; use `timeout`")
    if phase.late_after is not None and phase.corrects is not None:
        said = f"late_after: what waits for the correction of {phase.corrects!r} would mix both; leave it out"
        yield Problem(("late_after",), said)


def _part_problems(phase: Phase, declared: _Declared) -> Iterator[Problem]:
    if not phase.has_parts:
        return
    yield from _list_problems(phase)
    yield from _inner_problems(phase)
    field = "pipeline"
    if phase.for_each is not None or phase.repeat_until is not None:
        field = "for_each" if phase.for_each is not None else "repeat_until"
    if field == "for_each" and phase.repeat_until is not None:
        said = "repeat_until: a phase with `for_each` has no rounds; let a phase after it repeat"
        yield Problem(("repeat_until",), said)
    if phase.writes != ("results",):
        yield Problem(("writes",), f"writes: a phase with `{field}` writes `results` alone; leave it out")
    if phase.corrects is not None:
        yield Problem(("corrects",), f"corrects: a phase with `{field}` corrects none; let a phase after it do that")
    if (other := items_phase(phase.name)) in declared.phases:
        yield Problem(("name",), f"name: the items of {phase.name!r} are kept as {other!r}; rename that phase")


def _inner_problems(phase: Phase) -> Iterator[Problem]:
    if phase.pipeline is None:
        return
    if _levels(phase.pipeline) >= MOST_LEVELS:
        said = f"pipeline: there are more than {MOST_LEVELS} pipelines inside each other; make it flatter"
        yield Problem(("pipeline",), said)
        return
    for problem in problems_of(phase.pipeline):
        where = place_in_words(problem.place, {"phases": phase.pipeline.phases})
        yield Problem(("pipeline",), f"pipeline {phase.pipeline.name!r}: {where}{problem.text}")


def _levels(pipeline: Pipeline) -> int:
    return 1 + max((_levels(one.pipeline) for one in pipeline.phases if one.pipeline is not None), default=0)


def _list_problems(phase: Phase) -> Iterator[Problem]:
    if phase.for_each is None:
        return
    try:
        pieces = read_text(phase.for_each)
    except InvalidInput:
        return
    if len(pieces) != 1 or not isinstance(pieces[0], Reference) or pieces[0].kind in ("item", "last", "index"):
        said = f"for_each is {phase.for_each!r}; write one reference to a list, such as ${{plan:results.papers}}"
        yield Problem(("for_each",), said)


def _file_problems(phase: Phase, root: str | None) -> Iterator[Problem]:
    if phase.reads_files and root is None:
        why = "needs a `root`, below which the files are looked for where the supervisor runs"
        yield Problem(("reads_files",), f'reads_files {why}; write root = "${{input.folder}}" or a whole path')
    for n, glob in enumerate(phase.reads_files):
        if reason := unusable(glob):
            yield Problem(("reads_files", n), f"reads_files {glob[:_SHOWN]!r} {reason}")


def _order_problems(phase: Phase, declared: _Declared) -> Iterator[Problem]:
    named: list[tuple[Place, str, str]] = [(("after", n), "runs after", name) for n, name in enumerate(phase.after)]
    if phase.corrects is not None:
        named.append((("corrects",), "corrects", phase.corrects))
    for place, verb, name in named:
        if name == phase.name:
            yield Problem(place, f"{verb} itself; name another phase")
        elif name not in declared.phases:
            yield Problem(place, f"{verb} {name!r}, but {_no_phase(name, declared)}")


def _why_not_there(reference: Reference, phase: Phase, declared: _Declared) -> str | None:
    """Return why *phase* can never find what *reference* names."""
    if reference.kind == "input":
        return None if reference.name in declared.pipeline.inputs else _no_input(reference, declared.pipeline)
    if reference.kind == "item" or (reference.kind == "index" and phase.repeat_until is None):
        return None if phase.for_each else "the phase has no `for_each`; give it a list, or leave this out"
    if reference.kind in ("last", "index"):
        return None if phase.repeat_until else "the phase has no `repeat_until`; give it one, or leave this out"
    if reference.kind == "standards":
        cure = 'name those it asks for, such as standards = ["docs"]'
        return None if phase.standards else f"the phase has no tags of standards; {cure}"
    if reference.phase == phase.name:
        return "that is what it writes itself; read what an earlier phase writes"
    return _why_not_written(read_key(reference.name), declared)


def _why_not_written(key: EntryKey, declared: _Declared) -> str | None:
    """Return why there is never an entry *key*; entries with an identifier are the task's own, and not foreseen."""
    phase = declared.phases.get(key.phase)
    if phase is None:
        return _no_phase(key.phase, declared)
    if key.identifier is not None or key.data_type in phase.writes:
        return None
    cure = nearest(key.data_type, phase.writes) or f"; add {key.data_type!r} to its writes"
    return f"{key.phase!r} writes {listed(phase.writes)}{cure}"


def _left_out_problems(declared: _Declared, graph: Graph) -> Iterator[Problem]:
    """Yield what a phase needs and does not find when another is left out, or has been corrected by less."""
    for n, phase in enumerate(declared.pipeline.phases):
        for mention in declared.mentions[n]:
            reference = mention.reference
            if reference.phase not in declared.phases or reference.phase == phase.name or reference.optional:
                continue
            key = read_key(reference.name)
            row = [declared.phases[name] for name in graph.replacements(key.phase, phase.name)]
            why = "" if row and row[0].when is None else _why_absent(declared.phases[key.phase])
            if why:
                cure = f"write {_optional(reference)!r}, which is null then"
                why = f"{key.phase!r} {why}; {cure}"
                field = "" if mention.place[0] == "reads" else f"{'.'.join(map(str, mention.place))} "
                yield Problem(("phases", n, *mention.place), f"{field}reads {reference.text!r}, but {why}")
            for correction in row:
                is_written = key.data_type in declared.phases[key.phase].writes
                if key.identifier is None and is_written and key.data_type not in correction.writes:
                    why = f"does not write {key.data_type!r}, which {phase.name!r} reads"
                    place: Place = ("phases", declared.index[correction.name], "writes")
                    cure = "add it to `writes`, or read it with '?'"
                    yield Problem(place, f"corrects {correction.corrects!r} but {why}; {cure}")


def _why_absent(phase: Phase) -> str:
    """Return why the entries of *phase* may be missing when the phases after it begin, "" when they may not."""
    if phase.when is not None:
        return "may be left out by its `when`"
    if phase.optional:
        return "may fail, being `optional`"
    return "may be late, by its `late_after`" if phase.late_after is not None else ""


def _optional(reference: Reference) -> str:
    """Return how *reference* is written with a mark that it may be missing."""
    return f"{reference.text[:-1]}?}}" if reference.text.startswith("${") else f"{reference.text}?"


def _no_phase(name: str, declared: _Declared) -> str:
    return f"there is no phase {name!r}{known_ones(name, declared.phases, 'there are')}"


def _no_input(reference: Reference, pipeline: Pipeline) -> str:
    return f"there is no input {reference.name!r}{known_ones(reference.name, pipeline.inputs, 'declared are')}"
