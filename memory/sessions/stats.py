"""What a session has saved, and what would have been worth keeping in it; pure functions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tasklore.contracts.pipelines import items_phase
from tasklore.memory.sessions.entries import EntryInfo
from tasklore.memory.sessions.pipeline_records import PhaseState, phase_in

#: Milliseconds of computing below which keeping a result is not worth the round trips.
WORTH_MS = 1_000
#: Milliseconds of computing above which a phase should have kept its result.
EXPENSIVE_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStats:
    """Every number is 0 for a session without entries.

    `total_saved_time_ms` is computing time saved: in a session of a pipeline, that of results which its latest run
    found of earlier runs, also by phase in `sum_saved`, and of entries that one task computed for all, times their uses
    by the others; elsewhere computation time times hits. `not_worth_caching`
    are keys whose computation took under a second, `uncached_phases` phases that took over ten seconds and kept
    nothing.
    """

    total_entries: int = 0
    total_hits: int = 0
    total_saved_time_ms: int = 0
    avg_entry_age_ms: int = 0
    not_worth_caching: tuple[str, ...] = ()
    uncached_phases: tuple[str, ...] = ()
    saved_by_phase: Mapping[str, int] = field(default_factory=dict)


def summarise(
    entries: Sequence[EntryInfo],
    phases: Mapping[str, PhaseState],
    now_ms: int,
    *,
    began_ms: int | None = None,
) -> SessionStats:
    """Return the statistics of *entries*.

    Args:
        entries: Those that live.
        phases: How far each phase of the pipeline is.
        now_ms: The time, in ms since 1970 as all others.
        began_ms: When the latest run of the pipeline began, 0 for its first one; None where no pipeline runs.
    """
    kept = {entry.phase for entry in entries}
    ages = [max(0, now_ms - entry.created_ms) for entry in entries]
    saved = sum_saved(entries, phases, began_ms or 0)
    by_hits = sum(entry.computation_ms * entry.hits for entry in entries)
    by_sharing = sum(
        entry.computation_ms * entry.hits for entry in entries if entry.is_shared
    )
    slow = (
        name
        for name, state in phases.items()
        if state.computing_ms > EXPENSIVE_MS and name not in kept
    )
    return SessionStats(
        total_entries=len(entries),
        total_hits=sum(entry.hits for entry in entries),
        total_saved_time_ms=by_hits
        if began_ms is None
        else sum(saved.values()) + by_sharing,
        avg_entry_age_ms=sum(ages) // len(ages) if ages else 0,
        not_worth_caching=tuple(
            sorted(
                entry.key
                for entry in entries
                if entry.is_timed and entry.computation_ms < WORTH_MS
            )
        ),
        uncached_phases=tuple(sorted(slow)),
        saved_by_phase=saved,
    )


def sum_saved(
    entries: Sequence[EntryInfo], phases: Mapping[str, PhaseState], began_ms: int
) -> dict[str, int]:
    """Return the milliseconds of computing that a run which began at *began_ms* did not do again, by phase.

    A phase that was done by then counts with all that its tasks computed; one that runs again for its list, with the
    items that were there.
    """
    saved: Counter[str] = Counter()
    for name, state in phases.items():
        if (
            state.status == "done"
            and state.ended_ms is not None
            and state.ended_ms <= began_ms
        ):
            saved[name] = state.computing_ms
    again = {items_phase(name): name for name in phases if name not in saved}
    for entry in entries:
        if entry.phase in again and entry.created_ms <= began_ms:
            saved[again[entry.phase]] += entry.computation_ms
    return {name: ms for name, ms in saved.items() if ms}


def read_states(phases: Sequence[bytes]) -> dict[str, PhaseState]:
    """Return the state of each of *phases*, names and JSON in turns; unreadable ones are left out."""
    states: dict[str, PhaseState] = {}
    for name, state in zip(phases[::2], phases[1::2], strict=True):
        with suppress(ValueError, TypeError, AttributeError):
            told = phase_in(state)
            computed_ms = None if told.computed_ms is None else int(told.computed_ms)
            states[name.decode()] = replace(
                told, took_ms=int(told.took_ms), computed_ms=computed_ms
            )
    return states
