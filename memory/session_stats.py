"""What a session has saved, and what would have been worth keeping in it; pure functions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.session_entries import EntryInfo

#: Milliseconds of computing below which keeping a result is not worth the round trips.
WORTH_MS = 1_000
#: Milliseconds of computing above which a phase should have kept its result.
EXPENSIVE_MS = 10_000


@dataclass(frozen=True, slots=True)
class SessionStats:
    """Every number is 0 for a session without entries.

    `total_saved_time_ms` is the sum of computation time times hits. `not_worth_caching` are keys whose computation took
    under a second, `uncached_phases` phases that took over ten seconds and kept nothing.
    """

    total_entries: int = 0
    total_hits: int = 0
    total_saved_time_ms: int = 0
    avg_entry_age_ms: int = 0
    not_worth_caching: tuple[str, ...] = ()
    uncached_phases: tuple[str, ...] = ()


def summarise(entries: Sequence[EntryInfo], took: Mapping[str, int], now_ms: int) -> SessionStats:
    """Return the statistics of *entries*; *took* tells how long each phase of the pipeline took."""
    kept = {entry.phase for entry in entries}
    ages = [max(0, now_ms - entry.created_ms) for entry in entries]
    return SessionStats(
        total_entries=len(entries),
        total_hits=sum(entry.hits for entry in entries),
        total_saved_time_ms=sum(entry.computation_ms * entry.hits for entry in entries),
        avg_entry_age_ms=sum(ages) // len(ages) if ages else 0,
        not_worth_caching=tuple(
            sorted(entry.key for entry in entries if entry.is_timed and entry.computation_ms < WORTH_MS)
        ),
        uncached_phases=tuple(sorted(phase for phase, ms in took.items() if ms > EXPENSIVE_MS and phase not in kept)),
    )


def took_ms(phases: Sequence[bytes]) -> dict[str, int]:
    """Return how long each phase took, of *phases*: name and JSON of its state, in turns."""
    took: dict[str, int] = {}
    for name, state in zip(phases[::2], phases[1::2], strict=True):
        try:
            took[name.decode()] = int(json.loads(state).get("took_ms", 0))
        except (ValueError, TypeError, AttributeError):
            continue
    return took
