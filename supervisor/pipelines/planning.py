"""What a run does next, what a resumed run does again, and what no longer holds: decisions only, nothing is done here.

A phase is `pending`, `running`, `done`, `failed` or `skipped` (left out by its `when`); one that is not named is
pending. A phase that runs may be `late`, and an optional one that failed is `excused`: the phases after it go on
without it. Done, skipped, late and excused phases are *through*.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.contracts.session_keys import read_key
from tasklore.supervisor.pipelines.declaration.globs import matches
from tasklore.supervisor.pipelines.declaration.graph import (
    Graph,
    keys_read,
    result_keys,
)
from tasklore.supervisor.pipelines.declaration.problems import suggest

__all__ = [
    "Changes",
    "NextSteps",
    "ResumePlan",
    "Statuses",
    "matches",
    "next_steps",
    "resume_plan",
    "stale_phases",
]  # fmt: skip

#: The status of each phase by its name.
Statuses = Mapping[str, str]

_THROUGH = frozenset({"done", "skipped", "late", "excused"})
#: What has begun rests on what it has read, and on what was there to be read.
_BEGUN = frozenset({"done", "running", "failed"})
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NextSteps:
    """What a run may do now: *ready* phases may begin, *running* ones are waited for, *blocked* ones never begin.

    A phase is blocked when something it depends on, directly or not, has failed. *outcome* is None while there is
    something to do or to wait for.
    """

    ready: tuple[str, ...]
    running: tuple[str, ...]
    blocked: tuple[str, ...]
    outcome: Literal["completed", "failed"] | None

    @property
    def is_over(self) -> bool:
        """True when nothing runs and nothing may begin."""
        return self.outcome is not None


@dataclass(frozen=True, slots=True)
class ResumePlan:
    """What a resumed run does: *again* has every phase that will run with the reason, also those that never began.

    *reused* are phases that are done and stay; *missing* the keys of entries that are gone though something needs them.
    """

    again: Mapping[str, str]
    reused: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes of *files* relative to the root with `/`, tags of *standards* and *design*, *phases*, *keys*.

    *fits* says whether a glob fits a file: who was told of many files has asked a child process.
    """

    files: tuple[str, ...] = ()
    standards: tuple[str, ...] = ()
    design: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    fits: Callable[[str, str], bool] = matches


def next_steps(graph: Graph, statuses: Statuses) -> NextSteps:
    """Return what a run with phases in *statuses* may do now."""
    ready: list[str] = []
    running: list[str] = []
    stopped: dict[str, None] = {}
    blocked: list[str] = []
    for name in graph.order:
        status = statuses.get(name, "pending")
        if status in ("running", "late"):
            running.append(name)
        elif status == "failed":
            stopped[name] = None
        elif status == "pending" and any(
            upstream in stopped for upstream in graph.dependencies[name]
        ):
            stopped[name] = None
            blocked.append(name)
        elif status == "pending" and _THROUGH.issuperset(
            statuses.get(one) for one in graph.dependencies[name]
        ):
            ready.append(name)
    outcome: Literal["completed", "failed"] | None = None
    if not ready and not running:
        outcome = "failed" if stopped else "completed"
    return NextSteps(tuple(ready), tuple(running), tuple(blocked), outcome)


def resume_plan(
    pipeline: Pipeline,
    graph: Graph,
    statuses: Statuses,
    live_keys: Collection[str],
    restart: Mapping[str, str] = _NOTHING,
) -> ResumePlan:
    """Return what runs again: phases not through, those that depend on them, and writers of entries that are gone.

    Args:
        pipeline: The one to run.
        graph: Its graph.
        statuses: Where its phases are.
        live_keys: The keys of all entries that are still there, those of corrected phases too.
        restart: Phases that run again in any case, and why.
    """
    _demand_phases(graph, tuple(restart))
    again: dict[str, str] = dict(restart)
    for name in graph.order:
        status = statuses.get(name, "pending")
        if name not in again and status not in _THROUGH:
            again[name] = {"failed": "it failed", "running": "it had not ended"}.get(
                status, "it had not begun"
            )
    outlook = _Outlook.of(pipeline, graph, statuses, live_keys)
    missing: dict[str, None] = {}
    while True:
        for name in graph.dependents(again):
            upstream = next(one for one in graph.dependencies[name] if one in again)
            again[name] = (
                f"it {graph.reason(name, upstream)}, and {upstream!r} runs again"
            )
        gone = list(outlook.gone(again))
        if not gone:
            break
        for key, owner, needed_by in gone:
            missing[key] = None
            again.setdefault(
                owner, f"its entry {key!r} is gone, and {needed_by} needs it"
            )
    reused = tuple(
        name
        for name in graph.order
        if name not in again and statuses.get(name) == "done"
    )
    return ResumePlan(
        {name: again[name] for name in graph.order if name in again},
        reused,
        tuple(missing),
    )


def stale_phases(
    pipeline: Pipeline, graph: Graph, changes: Changes, statuses: Statuses | None = None
) -> dict[str, str]:
    """Return the phases whose results no longer hold after *changes*, with the reason, and those that depend on them.

    With *statuses*, only phases that have begun are named, and phases that were left out because of stale ones; one
    that never began has nothing to lose.

    Raises:
        InvalidInput: *changes* names a phase that is not there; the message names the nearest.
    """
    _demand_phases(
        graph, [*changes.phases, *(read_key(key).phase for key in changes.keys)]
    )
    stale: dict[str, str] = {}
    keys = {read_key(key).phase: key for key in reversed(changes.keys)}
    tags = frozenset(changes.standards), frozenset(changes.design)
    for phase in pipeline.phases:
        why = next(_reasons(phase, changes, keys, *tags), None)
        if why is not None and (statuses is None or statuses.get(phase.name) in _BEGUN):
            stale[phase.name] = why
    dependents = graph.dependents(stale)
    reached = {*stale, *dependents}
    for name in dependents:
        if statuses is None or statuses.get(name) in _BEGUN | {"skipped"}:
            upstream = next(one for one in graph.dependencies[name] if one in reached)
            stale[name] = f"{graph.reason(name, upstream)}, which is stale"
    return {name: stale[name] for name in graph.order if name in stale}


def _reasons(
    phase: Phase,
    changes: Changes,
    keys: Mapping[str, str],
    standards: frozenset[str],
    design: frozenset[str],
) -> Iterator[str]:
    """Yield why *phase* itself no longer holds; *keys* names an entry by its phase."""
    if phase.name in changes.phases:
        yield "was named"
    if phase.name in keys:
        yield f"its entry {keys[phase.name]!r} was named"
    for path in changes.files:
        for glob in phase.reads_files:
            if changes.fits(glob, path):
                yield f"reads the file {path!r}, which changed" + (
                    f" ({glob})" if glob != path else ""
                )
    for kind, tags, changed in (
        ("standards", phase.standards, standards),
        ("decisions on design", phase.design, design),
    ):
        for tag in tags:
            if tag in changed:
                yield f"reads the {kind} tagged {tag!r}, which changed"


def _demand_phases(graph: Graph, names: Collection[str]) -> None:
    for name in names:
        if name not in graph.dependencies:
            raise InvalidInput(
                f"there is no phase {name!r}{suggest(name, graph.order, 'there are')}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outlook:
    """The entries that a resumed run will look for in its session, and those that are there."""

    phases: Mapping[str, Phase]
    reads: Mapping[str | None, Mapping[str, bool]]
    graph: Graph
    statuses: Statuses
    live_keys: Collection[str]

    @classmethod
    def of(
        cls,
        pipeline: Pipeline,
        graph: Graph,
        statuses: Statuses,
        live_keys: Collection[str],
    ) -> "_Outlook":
        reads: dict[str | None, Mapping[str, bool]] = {
            phase.name: keys_read(phase) for phase in pipeline.phases
        }
        # The end of the run reads as well; what is not there because its phase was left out is no loss.
        reads[None] = dict.fromkeys(result_keys(pipeline, graph), True)
        return cls(
            phases={phase.name: phase for phase in pipeline.phases},
            reads=reads,
            graph=graph,
            statuses=statuses,
            live_keys=live_keys,
        )

    def gone(self, again: Collection[str]) -> Iterator[tuple[str, str, str]]:
        """Yield keys that *again* or the result need and that are not there, whose they are, and who needs them."""
        for reader in (*again, None):
            for text, optional in self.reads[reader].items():
                key = read_key(text)
                owner = self._owner(key.phase, again, reader)
                if (
                    owner is None
                    or owner in again
                    or self.statuses.get(owner) != "done"
                ):
                    continue
                needed = str(key._replace(phase=owner))
                # Without `?` it has to be there; with it, it was there if the phase writes it by its declaration.
                was_there = (
                    key.data_type in self.phases[owner].writes
                    and key.identifier is None
                )
                if needed not in self.live_keys and (was_there or not optional):
                    yield (
                        needed,
                        owner,
                        repr(reader) if reader is not None else "the result",
                    )

    def _owner(
        self, phase: str, again: Collection[str], reader: str | None
    ) -> str | None:
        """Return the phase whose entry *reader* finds where *phase* wrote one; None when it will be written anew."""
        owner = phase
        for correction in self.graph.replacements(phase, reader):
            if correction in again:
                # One that may be left out may leave what it would have replaced to the reader.
                return (
                    owner
                    if self.phases[correction].when is not None
                    or self.phases[correction].optional
                    else None
                )
            if self.statuses.get(correction) != "done":
                break
            owner = correction
        return owner
