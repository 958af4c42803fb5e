"""All that each phase of a pipeline refers to, and the graph of the phases that it therefore waits for, and why."""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from types import MappingProxyType
from typing import Self

from tasklore.contracts.errors import InvalidInput, InvalidPipeline
from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.contracts.session_keys import read_key
from tasklore.supervisor.pipelines.declaration.conditions import Condition
from tasklore.supervisor.pipelines.declaration.problems import Flaw, Place
from tasklore.supervisor.pipelines.declaration.references import (
    Reference,
    read_entry,
    references_in,
    texts_in,
)

#: References of one phase.
MOST_MENTIONS = 1_000
#: What a phase directly depends on, and the reason in words: "reads 'analysis:results'".
Edges = dict[str, dict[str, str]]


@dataclass(frozen=True)
class Graph:
    """The phases of a pipeline, and for each the phases that it waits for: those it reads, runs after or corrects.

    A phase that depends on a corrected one also depends on the
    correction, so that it never reads what is about to be replaced; unless the correction itself rests on that phase.
    `order` is topological, and as declared where that leaves a choice; everything else here keeps this order.
    """

    dependencies: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]
    corrections: Mapping[str, str]
    _reasons: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, pipeline: Pipeline) -> Self:
        """Return the graph of *pipeline*; phases that it names and does not have are left out.

        Raises:
            InvalidPipeline: phases wait for each other; the message names all of them in a row.
            InvalidInput: a reference cannot be read.
        """
        return cls.of_phases(
            pipeline.phases, {phase.name: keys_read(phase) for phase in pipeline.phases}
        )

    @classmethod
    def of_phases(
        cls, phases: Sequence[Phase], keys: Mapping[str, Iterable[str]]
    ) -> Self:
        """Return the graph of *phases*, each of which reads the entries with its *keys*.

        Raises:
            InvalidPipeline: as `of` does.
        """
        edges = edges_of(phases, keys)
        if cycle := find_cycle(edges):
            raise InvalidPipeline([describe_cycle(cycle, edges)])
        corrections = {
            phase.corrects: phase.name
            for phase in phases
            if phase.corrects in edges and phase.corrects != phase.name
        }
        # Whatever depends on a phase also depends on its correction, but for what that one rests on.
        for corrected in _sort(edges):
            if (correction := corrections.get(corrected)) is None:
                continue
            above = {correction, *_ancestors(edges, correction)}
            for name, reasons in edges.items():
                if corrected in reasons and name not in above:
                    reasons.setdefault(
                        correction,
                        f"{reasons[corrected]}, which {correction!r} corrects",
                    )
        order = _sort(edges)
        place = {name: n for n, name in enumerate(order)}
        dependencies = {
            name: tuple(sorted(edges[name], key=place.__getitem__)) for name in order
        }
        return cls(
            MappingProxyType(dependencies), order, MappingProxyType(corrections), edges
        )

    @property
    def sinks(self) -> tuple[str, ...]:
        """The phases that nothing depends on."""
        needed = {name for upstream in self.dependencies.values() for name in upstream}
        return tuple(name for name in self.order if name not in needed)

    def dependents(self, phases: Collection[str]) -> tuple[str, ...]:
        """Return everything that directly or indirectly depends on one of *phases*, without these."""
        reached = set(phases)
        for name in self.order:
            if not reached.isdisjoint(self.dependencies[name]):
                reached.add(name)
        return tuple(
            name for name in self.order if name in reached and name not in phases
        )

    def ancestors(self, phase: str) -> frozenset[str]:
        """Return everything that *phase* directly or indirectly depends on."""
        return frozenset(_ancestors(self.dependencies, phase))

    def replacements(self, phase: str, reader: str | None) -> tuple[str, ...]:
        """Return the phases that may have replaced what *phase* wrote once *reader* reads it, each correcting the last.

        Without a reader it is the end of the run. The first that is left out by its `when` ends the row.
        """
        row: list[str] = []
        correction = self.corrections.get(phase)
        while correction is not None and correction != reader:
            if reader is not None and self._bits[1].get(correction, 0) & self._bits[
                0
            ].get(reader, 0):
                break
            row.append(correction)
            correction = self.corrections.get(correction)
        return tuple(row)

    @cached_property
    def _bits(self) -> tuple[dict[str, int], dict[str, int]]:
        """A bit for each phase, and those of all that each directly or indirectly depends on."""
        own = {name: 1 << n for n, name in enumerate(self.order)}
        above: dict[str, int] = {}
        for name in self.order:
            above[name] = 0
            for upstream in self.dependencies[name]:
                above[name] |= own[upstream] | above[upstream]
        return own, above

    def reason(self, phase: str, upstream: str) -> str:
        """Return why *phase* directly depends on *upstream*, such as "reads 'analysis:results'"."""
        return self._reasons[phase][upstream]


def result_keys(pipeline: Pipeline, graph: Graph) -> tuple[str, ...]:
    """Return the keys of the entries that are the result of a run: the declared one, or all that the last phases write.

    A corrected phase is named as itself; the session serves what replaced it.
    """
    if pipeline.result is not None:
        return (pipeline.result,)
    writes = {phase.name: phase.writes for phase in pipeline.phases}
    return tuple(
        f"{name}:{data_type}" for name in graph.sinks for data_type in writes[name]
    )


def edges_of(phases: Sequence[Phase], keys: Mapping[str, Iterable[str]]) -> Edges:
    """Return the dependencies that *phases* declare, given the *keys* that each reads; unknown phases are left out."""
    names = {phase.name for phase in phases}
    edges: Edges = {name: {} for name in names}
    for phase in phases:
        reasons = edges[phase.name]
        for key in keys[phase.name]:
            reasons.setdefault(read_key(key).phase, f"reads {key!r}")
        for earlier in phase.after:
            reasons.setdefault(earlier, f"runs after {earlier!r}")
        if phase.corrects is not None:
            reasons.setdefault(phase.corrects, f"corrects {phase.corrects!r}")
        for name in [
            name for name in reasons if name not in names or name == phase.name
        ]:
            del reasons[name]
    # As declared, for an order that a reader expects.
    return {phase.name: edges[phase.name] for phase in phases}


def describe_cycle(cycle: tuple[str, ...], edges: Edges) -> str:
    """Return the sentence about *cycle*: why each of its phases waits for the next, and the cure."""
    steps = ", ".join(
        f"{name!r} {edges[name][following]}" for name, following in pairwise(cycle)
    )
    return f"phases wait for each other: {' -> '.join(cycle)} ({steps}); remove one of these steps"


def find_cycle(edges: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return phases that wait for each other, each for the next, the first again at the end; empty when none do."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        # The library has each waited for by the next. The phase that is declared first begins.
        cycle: list[str] = error.args[1][:0:-1]
        place = {name: n for n, name in enumerate(edges)}
        first = cycle.index(min(cycle, key=place.__getitem__))
        return (*cycle[first:], *cycle[: first + 1])
    return ()


def _ancestors(edges: Mapping[str, Iterable[str]], phase: str) -> set[str]:
    above: set[str] = set()
    pending = list(edges[phase])
    while pending:
        name = pending.pop()
        if name not in above:
            above.add(name)
            pending.extend(edges[name])
    return above


def _sort(edges: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the names with every one behind those it depends on, and as given where that leaves a choice."""
    place = {name: n for n, name in enumerate(edges)}
    names = tuple(edges)
    sorter = TopologicalSorter(edges)
    sorter.prepare()
    free: list[int] = []
    order: list[str] = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(free, place[name])
        order.append(names[heapq.heappop(free)])
        sorter.done(order[-1])
    return tuple(order)


@dataclass(frozen=True, slots=True)
class Mention:
    """A reference and the place in its phase where it stands, such as `("parameters", "files")` or `("reads", 0)`."""

    place: Place
    reference: Reference


def keys_read(phase: Phase) -> dict[str, bool]:
    """Return the keys of the entries that *phase* reads anywhere; True for one that may be missing.

    Raises:
        InvalidInput: a reference, a key or the condition cannot be read.
    """
    mentions, problems = mentions_of(phase)
    if problems:
        raise InvalidInput(f"phase {phase.name}: {problems[0].text}")
    keys: dict[str, bool] = {}
    for reference in (mention.reference for mention in mentions):
        if reference.kind == "entry":
            # One place that needs it outweighs all that could do without.
            keys[reference.name] = keys.get(reference.name, True) and reference.optional
    return keys


def mentions_of(phase: Phase) -> tuple[list[Mention], list[Flaw]]:
    """Return everything that *phase* refers to, and the references that cannot be read; places are inside the phase."""
    mentions: list[Mention] = []
    problems: list[Flaw] = []
    for place, text in _texts_of(phase):
        field = ".".join(map(str, place)) if place[0] == "parameters" else place[0]
        try:
            if field in ("when", "repeat_until"):
                found = Condition.parse(text).references
            else:
                found = (read_entry(text),) if field == "reads" else references_in(text)
        except InvalidInput as error:
            problems.append(Flaw(place, f"{field}: {error}"))
        else:
            mentions.extend(
                Mention(place, reference) for reference in dict.fromkeys(found)
            )
        if len(mentions) > MOST_MENTIONS:
            problems.append(
                Flaw(place, f"{field}: it refers to more than {MOST_MENTIONS:,} things")
            )
            return mentions[:MOST_MENTIONS], problems
    return mentions, problems


def _texts_of(phase: Phase) -> Iterator[tuple[Place, str]]:
    for name, value in phase.parameters.items():
        for text in texts_in(value):
            yield ("parameters", name), text
    if phase.for_each is not None:
        yield ("for_each",), phase.for_each
    for n, text in enumerate(phase.reads):
        yield ("reads", n), text
    if phase.when is not None:
        yield ("when",), phase.when
    if phase.repeat_until is not None:
        yield ("repeat_until",), phase.repeat_until
