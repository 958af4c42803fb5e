"""Whether a pipeline can run as it is declared: all problems at once, each with its place."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import islice

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import nearest
from tasklore.contracts.messages import AgentCard
from tasklore.contracts.pipelines import MOST_LEVELS, Phase, Pipeline, items_phase
from tasklore.contracts.session_keys import EntryKey, read_key
from tasklore.supervisor.pipelines.declaration.cards import (
    problems_with,
    write_problems,
)
from tasklore.supervisor.pipelines.declaration.globs import MOST_GLOBS, reason_against
from tasklore.supervisor.pipelines.declaration.graph import (
    Graph,
    Mention,
    describe_cycle,
    edges_of,
    find_cycle,
    mentions_of,
)
from tasklore.supervisor.pipelines.declaration.inputs import misfit
from tasklore.supervisor.pipelines.declaration.problems import (
    MOST_PROBLEMS,
    Flaw,
    Place,
    place_in_words,
    quote_names,
    suggest,
)
from tasklore.supervisor.pipelines.declaration.references import (
    Reference,
    is_json,
    read_text,
    references_in,
)

#: For so long the ledger remembers a task: a phase that may take longer could run twice.
LONGEST_TIMEOUT = timedelta(days=7)


def problems_of(pipeline: Pipeline) -> list[Flaw]:
    """Return the problems of *pipeline* by itself, in the order of its phases; `problems_with` asks the agents."""
    return list(islice(_Checks(pipeline).problems(), MOST_PROBLEMS))


def all_problems(pipeline: Pipeline, cards: Mapping[str, AgentCard]) -> list[Flaw]:
    """Return what keeps *pipeline* from running with the agents of *cards*, as far as it can be known at once."""
    own = problems_of(pipeline)
    # Other misfits with the agents may follow from that; a property that a result does not have does not.
    return (
        [*own, *write_problems(pipeline, cards)]
        if own
        else problems_with(pipeline, cards)
    )


class _Checks:
    """The checks of one pipeline; of several phases of one name the first counts."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._index = {
            phase.name: n for n, phase in reversed([*enumerate(pipeline.phases)])
        }
        self._phases = {name: pipeline.phases[n] for name, n in self._index.items()}
        read = [mentions_of(phase) for phase in pipeline.phases]
        self._mentions: list[list[Mention]] = [mentions for mentions, _ in read]
        self._unreadable = [problems for _, problems in read]
        self._keys: dict[str, list[str]] = {phase.name: [] for phase in pipeline.phases}
        for phase, mentions in zip(pipeline.phases, self._mentions, strict=True):
            self._keys[phase.name] += [
                one.reference.name for one in mentions if one.reference.kind == "entry"
            ]

    def problems(self) -> Iterator[Flaw]:
        yield from self.whole()
        yield from self.duplicates()
        for n, phase in enumerate(self._pipeline.phases):
            for problem in (*self.phase(n, phase), *self._unreadable[n]):
                yield Flaw(("phases", n, *problem.place), problem.text)
        edges = edges_of(self._pipeline.phases, self._keys)
        if cycle := find_cycle(edges):
            yield Flaw(("phases", self._index[cycle[0]]), describe_cycle(cycle, edges))
        else:
            yield from self.absences(Graph.of_phases(self._pipeline.phases, self._keys))

    def whole(self) -> Iterator[Flaw]:
        for name, declared in self._pipeline.inputs.items():
            why = None if declared.required else misfit(declared, declared.default)
            if not is_json(declared.default):
                why = "has a number that JSON does not know (nan or inf)"
            if why:
                yield Flaw(
                    ("inputs", name, "default"), f"input {name!r}: its default {why}"
                )
        yield from self.root()
        if self._pipeline.result is not None:
            try:
                key = read_key(self._pipeline.result)
            except InvalidInput as error:
                yield Flaw(("result",), f"result: {error}")
            else:
                if why := self.why_unwritten(key):
                    yield Flaw(("result",), f"result is {str(key)!r}, but {why}")
                elif (
                    phase := self._phases.get(key.phase)
                ) is not None and phase.optional:
                    why = f"{key.phase!r} is `optional`, so that the run would be completed without it"
                    yield Flaw(
                        ("result",),
                        f"result is {str(key)!r}, but {why}; name another phase, or let it fail the run",
                    )
        if (
            number := sum(len(phase.reads_files) for phase in self._pipeline.phases)
        ) > MOST_GLOBS:
            why = f"all phases together have {number:,} patterns, at most {MOST_GLOBS:,} are taken"
            yield Flaw(
                ("phases",),
                f"reads_files: {why}; join them by wildcards, or split the pipeline",
            )

    def root(self) -> Iterator[Flaw]:
        try:
            references = references_in(self._pipeline.root)
        except InvalidInput as error:
            yield Flaw(("root",), f"root: {error}")
            return
        for reference in references:
            why = self.why_missing(reference)
            if reference.kind != "input":
                why = f"{reference.text} is not known before the run; only inputs are"
            if why:
                yield Flaw(("root",), f"root: {why}")

    def duplicates(self) -> Iterator[Flaw]:
        corrected: dict[str, str] = {}
        for n, phase in enumerate(self._pipeline.phases):
            if self._index[phase.name] != n:
                yield Flaw(
                    ("phases", n, "name"),
                    f"name: another phase is called {phase.name!r}; rename one",
                )
            if phase.corrects in corrected:
                other = corrected[phase.corrects]
                why = f"{other!r} corrects it already; correct {other!r} instead"
                yield Flaw(
                    ("phases", n, "corrects"), f"corrects {phase.corrects!r}, but {why}"
                )
            elif phase.corrects is not None:
                corrected[phase.corrects] = phase.name

    def phase(self, at: int, phase: Phase) -> Iterator[Flaw]:
        """Yield the problems of one phase, with places inside it."""
        yield from self.order(phase)
        for name, value in phase.parameters.items():
            if not is_json(value):
                why = "has a number that JSON does not know (nan or inf); write it as a text"
                yield Flaw(("parameters", name), f"parameters.{name} {why}")
        for mention in self._mentions[at]:
            if unreadable := self.why_unreadable(mention.reference, phase):
                field = (
                    ""
                    if mention.place[0] == "reads"
                    else f"{'.'.join(map(str, mention.place[:2]))} "
                )
                yield Flaw(
                    mention.place,
                    f"{field}reads {mention.reference.text!r}, but {unreadable}",
                )
        first = {data_type: n for n, data_type in reversed([*enumerate(phase.writes)])}
        for n, data_type in enumerate(phase.writes):
            if first[data_type] != n:
                yield Flaw(("writes", n), f"writes {data_type!r} twice; leave one out")
        if phase.has_parts:
            yield from self.parts(phase)
        yield from self.sources(phase)
        yield from self.times(phase)

    def times(self, phase: Phase) -> Iterator[Flaw]:
        if phase.longest is not None and phase.longest > LONGEST_TIMEOUT:
            field = "timeout" if phase.longest == phase.timeout else "cancel_after"
            most = f"more than {LONGEST_TIMEOUT.days} days, after which a task is forgotten"
            yield Flaw(
                (field,),
                f"{field} is {phase.longest.days} days, {most}; split the phase",
            )
        if phase.cancel_after is not None and phase.late_after is None:
            why = "counts from when the phase is late; give it a `late_after`, too"
            yield Flaw(("cancel_after",), f"cancel_after {why}")
        if phase.cancel_after is not None and phase.has_parts:
            why = "only a phase of one task can be cancelled by it; use `timeout`"
            yield Flaw(("cancel_after",), f"cancel_after: {why}")
        if phase.late_after is not None and phase.corrects is not None:
            why = f"what waits for the correction of {phase.corrects!r} would mix both; leave it out"
            yield Flaw(("late_after",), f"late_after: {why}")

    def sources(self, phase: Phase) -> Iterator[Flaw]:
        if phase.reads_files and self._pipeline.root is None:
            why = "needs a `root`, below which the files are looked for where the supervisor runs"
            yield Flaw(
                ("reads_files",),
                f'reads_files {why}; write root = "${{input.folder}}" or a whole path',
            )
        for n, glob in enumerate(phase.reads_files):
            if reason := reason_against(glob):
                # Short enough that the cure behind it is seen.
                yield Flaw(("reads_files", n), f"reads_files {glob[:100]!r} {reason}")
        for kind, tags in (("standards", phase.standards), ("design", phase.design)):
            if not all(tag.strip() for tag in tags):
                yield Flaw((kind,), f"{kind} has an empty tag; leave it out")

    def order(self, phase: Phase) -> Iterator[Flaw]:
        named: list[tuple[Place, str, str]] = [
            (("after", n), "runs after", name) for n, name in enumerate(phase.after)
        ]
        if phase.corrects is not None:
            named.append((("corrects",), "corrects", phase.corrects))
        for place, verb, name in named:
            if name == phase.name:
                yield Flaw(place, f"{verb} itself; name another phase")
            elif name not in self._phases:
                yield Flaw(place, f"{verb} {name!r}, but {self.no_phase(name)}")

    def parts(self, phase: Phase) -> Iterator[Flaw]:
        """Yield the problems of a phase that is items, rounds or a pipeline."""
        field = (
            "for_each"
            if phase.for_each is not None
            else "repeat_until"
            if phase.repeat_until
            else "pipeline"
        )
        if phase.for_each is not None and not self.is_one_reference(phase.for_each):
            why = "write one reference to a list, such as ${plan:results.papers}"
            yield Flaw(("for_each",), f"for_each is {phase.for_each!r}; {why}")
        if phase.for_each is not None and phase.repeat_until is not None:
            why = "a phase with `for_each` has no rounds; let a phase after it repeat"
            yield Flaw(("repeat_until",), f"repeat_until: {why}")
        if phase.writes != ("results",):
            yield Flaw(
                ("writes",),
                f"writes: a phase with `{field}` writes `results` alone; leave it out",
            )
        if phase.corrects is not None:
            why = f"a phase with `{field}` corrects none; let a phase after it do that"
            yield Flaw(("corrects",), f"corrects: {why}")
        if (other := items_phase(phase.name)) in self._phases:
            yield Flaw(
                ("name",),
                f"name: the items of {phase.name!r} are kept as {other!r}; rename that phase",
            )
        if phase.pipeline is None:
            return
        if _levels(phase.pipeline) >= MOST_LEVELS:
            why = f"there are more than {MOST_LEVELS} pipelines inside each other; make it flatter"
            yield Flaw(("pipeline",), f"pipeline: {why}")
            return
        for problem in problems_of(phase.pipeline):
            where = place_in_words(problem.place, {"phases": phase.pipeline.phases})
            yield Flaw(
                ("pipeline",),
                f"pipeline {phase.pipeline.name!r}: {where}{problem.text}",
            )

    def absences(self, graph: Graph) -> Iterator[Flaw]:
        """Yield entries that a phase needs and does not find when their phase is left out, or corrected by less."""
        for n, phase in enumerate(self._pipeline.phases):
            for mention in self._mentions[n]:
                reference = mention.reference
                if (
                    reference.phase not in self._phases
                    or reference.phase == phase.name
                    or reference.optional
                ):
                    continue
                key = read_key(reference.name)
                row = [
                    self._phases[name]
                    for name in graph.replacements(key.phase, phase.name)
                ]
                why = (
                    ""
                    if row and not why_absent(row[0])
                    else why_absent(self._phases[key.phase])
                )
                if why:
                    text = reference.text
                    optional = (
                        f"{text[:-1]}?}}" if text.startswith("${") else f"{text}?"
                    )
                    why = f"{key.phase!r} {why}; write {optional!r}, which is null then"
                    field = (
                        ""
                        if mention.place[0] == "reads"
                        else f"{'.'.join(map(str, mention.place))} "
                    )
                    yield Flaw(
                        ("phases", n, *mention.place),
                        f"{field}reads {text!r}, but {why}",
                    )
                if (
                    key.identifier is not None
                    or key.data_type not in self._phases[key.phase].writes
                ):
                    continue
                for correction in row:
                    if key.data_type not in correction.writes:
                        why = f"does not write {key.data_type!r}, which {phase.name!r} reads"
                        cure = "add it to `writes`, or read it with '?'"
                        place: Place = (
                            "phases",
                            self._index[correction.name],
                            "writes",
                        )
                        yield Flaw(
                            place, f"corrects {correction.corrects!r} but {why}; {cure}"
                        )

    def why_unreadable(self, reference: Reference, phase: Phase) -> str | None:
        """Return why *phase* can never find *reference*, None when it may."""
        if reference.kind == "input":
            return self.why_missing(reference)
        if reference.kind == "item" or (
            reference.kind == "index" and phase.repeat_until is None
        ):
            return (
                None
                if phase.for_each
                else "the phase has no `for_each`; give it a list, or leave this out"
            )
        if reference.kind in ("last", "index"):
            return (
                None
                if phase.repeat_until
                else "the phase has no `repeat_until`; give it one, or leave this out"
            )
        if reference.kind == "standards":
            cure = 'name those it asks for, such as standards = ["docs"]'
            return (
                None
                if phase.standards
                else f"the phase has no tags of standards; {cure}"
            )
        if reference.phase == phase.name:
            return "that is what it writes itself; read what an earlier phase writes"
        return self.why_unwritten(read_key(reference.name))

    def why_unwritten(self, key: EntryKey) -> str | None:
        """Return why there is never an entry *key*; entries with an identifier are the task's own, and not foreseen."""
        phase = self._phases.get(key.phase)
        if phase is None:
            return self.no_phase(key.phase)
        if key.identifier is not None or key.data_type in phase.writes:
            return None
        cure = (
            nearest(key.data_type, phase.writes)
            or f"; add {key.data_type!r} to its writes"
        )
        return f"{key.phase!r} writes {quote_names(phase.writes)}{cure}"

    def why_missing(self, reference: Reference) -> str | None:
        if reference.name in self._pipeline.inputs:
            return None
        return f"there is no input {reference.name!r}{suggest(reference.name, self._pipeline.inputs, 'declared are')}"

    def no_phase(self, name: str) -> str:
        return f"there is no phase {name!r}{suggest(name, self._phases, 'there are')}"

    def is_one_reference(self, text: str) -> bool:
        try:
            pieces = read_text(text)
        except InvalidInput:
            # Reported with the other references that cannot be read.
            return True
        (piece, *others) = pieces or ("",)
        return (
            isinstance(piece, Reference)
            and not others
            and piece.kind not in ("item", "last", "index")
        )


def why_absent(phase: Phase) -> str:
    """Return why the entries of *phase* may be missing when the phases after it begin, "" when they may not."""
    if phase.when is not None:
        return "may be left out by its `when`"
    if phase.optional:
        return "may fail, being `optional`"
    return "may be late, by its `late_after`" if phase.late_after is not None else ""


def _levels(pipeline: Pipeline) -> int:
    return 1 + max(
        (_levels(one.pipeline) for one in pipeline.phases if one.pipeline is not None),
        default=0,
    )
