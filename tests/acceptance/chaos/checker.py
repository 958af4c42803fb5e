"""The checker: proves the promises from the history alone, or names the tasks that broke them.

It knows nothing of the system. What it counts as explained, it explains by something that was done to the process that
ran the task, or to a server, while that run was under way: from its start until the next run of the task began or the
task's report was stored. Where a task may run without the ledger, one that begins while the ledger is away is explained
by that, and so is a report that differs and says that nothing fenced it.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.acceptance.chaos.findings import Findings
from tests.acceptance.chaos.history import Event
from tests.acceptance.chaos.troubles import (
    BEGINNING_S,
    LEDGER_AWAY,
    NO_SERVER,
    RECOVERY_S,
    Troubles,
)


@dataclass(slots=True)
class Run:
    """One run of a task; `end` is infinite when nobody saw it end, `raised` the class of what it ended with."""

    task: str
    pid: int
    start: float
    end: float = math.inf
    raised: str = ""


def check(events: Sequence[Event]) -> Findings:
    """Return what *events*, the whole history by time, show."""
    findings = Findings()
    troubles = Troubles(events)
    runs = _runs(events)
    findings.runs = sum(map(len, runs.values()))
    _check_reports(events, findings)
    _check_bodies(events, troubles, findings)
    _check_stores(events, findings)
    _check_effects(events, runs, troubles, findings)
    _check_runs(events, runs, troubles, findings)
    _check_workers(events, runs, troubles, findings)
    return findings


def _runs(events: Iterable[Event]) -> dict[str, list[Run]]:
    """Return the runs of every task, in the order in which they began."""
    runs: dict[str, list[Run]] = defaultdict(list)
    by_name: dict[str, Run] = {}
    for event in events:
        if event.kind == "run-start":
            run = by_name[event.run] = Run(event.task, event.pid, event.at)
            runs[event.task].append(run)
        elif event.kind in ("run-end", "run-raised") and event.run in by_name:
            by_name[event.run].end = event.at
            by_name[event.run].raised = event.about
    return runs


def _owing(events: Iterable[Event], what: str) -> set[str]:
    """Return the tasks that were submitted owing *what*."""
    return {
        event.task
        for event in events
        if event.kind == "submit" and what in event.about.split()
    }


def _check_reports(events: Iterable[Event], findings: Findings) -> None:
    """Check that every accepted task has one stored report, which says that it completed."""
    submitted = set()
    accepted = set()
    told = set()
    stored: dict[tuple[str, int], set[int]] = defaultdict(set)
    bad = set()
    for event in events:
        name = event.task, event.generation
        if event.kind == "submit":
            submitted.add(name)
        elif event.kind == "accepted":
            accepted.add(name)
        elif event.kind in ("report", "heard"):
            told.add(name)
            if event.about != "completed":
                bad.add(f"{event.task} {event.about}")
            if event.kind == "report":
                stored[name].add(event.sequence)
    findings.accepted = len(accepted)
    findings.lost = sorted(task for task, _ in accepted - set(stored))
    findings.stored_twice = sorted(
        task for (task, _), sequences in stored.items() if len(sequences) > 1
    )
    findings.not_completed = sorted(bad)
    findings.unasked = sorted(task for task, _ in told - submitted)


def _check_bodies(
    events: Iterable[Event], troubles: Troubles, findings: Findings
) -> None:
    """Check that nobody was told two different things about one generation of a task, as long as it was fenced."""
    bodies: dict[tuple[str, int], dict[str, Event]] = defaultdict(dict)
    for event in events:
        if event.kind in ("report", "heard"):
            bodies[event.task, event.generation].setdefault(event.digest, event)
    for (task, _), told in bodies.items():
        if len(told) < 2:
            continue
        fenced = [event for event in told.values() if event.fence == "ledger"]
        causes = [
            # It was concluded a moment before it was heard of.
            troubles.during(event.at - RECOVERY_S, event.at, None, LEDGER_AWAY)
            for event in told.values()
            if event not in fenced
        ]
        if len(fenced) > 1 or not all(causes):
            findings.told_apart_unexplained.append(task)
        else:
            findings.told_apart.update(filter(None, causes))


def _check_stores(events: Iterable[Event], findings: Findings) -> None:
    """Check that the ledger, where it was read at all, holds every stored report, byte for byte, and no other."""
    held: dict[tuple[str, int], Event] = {}
    stored: dict[tuple[str, int], Event] = {}
    for event in events:
        if event.kind in ("ledger", "report"):
            (held if event.kind == "ledger" else stored)[
                event.task, event.generation
            ] = event
    if not held:
        return
    findings.not_in_ledger = sorted(task for task, _ in stored.keys() - held.keys())
    findings.contradicted = sorted(
        f"{event.task} {event.about}/{stored[name].about if name in stored else 'none'}"
        for name, event in held.items()
        if name not in stored or stored[name].digest != event.digest
    )


def _check_effects(
    events: Sequence[Event],
    runs: dict[str, list[Run]],
    troubles: Troubles,
    findings: Findings,
) -> None:
    """Check that whatever completed made its effect once; a run that was cut short may have left it out."""
    effects = Counter(event.task for event in events if event.kind == "effect")
    findings.effects_twice = sorted(
        task for task, count in effects.items() if count > 1
    )
    owing = _owing(events, "effect")
    completed = {
        event.task
        for event in events
        if event.kind == "report" and event.about == "completed"
    }
    for task in sorted(completed & owing - set(effects)):
        cut_short = [run for run in runs[task] if math.isinf(run.end) or run.raised]
        causes = [troubles.during(run.start, run.end, run.pid) for run in cut_short]
        cause = next(filter(None, causes), None)
        if cause is None:
            findings.effects_missing_unexplained.append(task)
        else:
            findings.effects_missing[cause] += 1


def _check_runs(
    events: Sequence[Event],
    runs: dict[str, list[Run]],
    troubles: Troubles,
    findings: Findings,
) -> None:
    """Check that something cut short the run before every further one."""
    stored_at: dict[str, float] = {}
    fenced = _owing(events, "fence")
    for event in events:
        if event.kind == "report":
            stored_at.setdefault(event.task, event.at)
    for of_task in runs.values():
        for earlier, later in itertools.pairwise(of_task):
            until = min(later.start, stored_at.get(earlier.task, math.inf))
            cause = troubles.during(earlier.start, until, earlier.pid)
            # One was allowed to run, frozen before its first line, and woke up in the belief that it still may.
            for frozen in (earlier, later):
                cause = cause or troubles.during(
                    frozen.start - BEGINNING_S, frozen.start, frozen.pid, ("stop",)
                )
            if cause is None and later.task not in fenced:
                cause = troubles.during(
                    later.start, later.start, later.pid, LEDGER_AWAY
                )
            if cause is None:
                findings.recomputed_unexplained.append(later.task)
            else:
                findings.recomputed[cause] += 1


def _check_workers(
    events: Sequence[Event],
    runs: dict[str, list[Run]],
    troubles: Troubles,
    findings: Findings,
) -> None:
    """Check that no worker ended by itself, and count what was done."""
    wished = {event.pid for event in events if event.kind in ("kill", "dismiss")}
    forked_at = {event.pid: event.at for event in events if event.kind == "forked"}
    ready = {event.pid for event in events if event.kind == "ready"}
    for event in events:
        if event.kind != "died" or event.pid in wished:
            continue
        # One that finds no server when it starts says so and ends, to be started again.
        if (
            event.pid in ready
            or troubles.during(forked_at[event.pid], event.at, None, NO_SERVER) is None
        ):
            findings.fallen.append(event.pid)
    findings.left = [event.about for event in events if event.kind == "left"]
    findings.miscounted = [
        event.about for event in events if event.kind == "miscounted"
    ]
    findings.mislisted = [
        f"{event.task} {event.about}" for event in events if event.kind == "mislisted"
    ]
    findings.moved = sum(int(event.about) for event in events if event.kind == "moved")
    findings.troubles = Counter(trouble.cause for trouble in troubles.all)
    open_runs: dict[int, list[Run]] = defaultdict(list)
    for run in (
        run for of_task in runs.values() for run in of_task if math.isinf(run.end)
    ):
        open_runs[run.pid].append(run)
    findings.hits = sum(
        any(run.start < event.at for run in open_runs[event.pid])
        for event in events
        if event.kind == "kill"
    )
