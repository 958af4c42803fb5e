"""What a run that was struck may look like: what ran again, what came of it, and what it is said to have saved."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tasklore.memory.sessions.pipeline_records import RunRecord
from tasklore.memory.sessions.session import EntryInfo, SessionStats
from tests.acceptance.pipeline_storm import work
from tests.acceptance.pipeline_storm.nine_phases import CORRECTION, PHASES, PIPELINE
from tests.acceptance.pipeline_storm.oracle import hits_of
from tests.acceptance.pipeline_storm.stage import Execution, Stage
from tests.acceptance.pipeline_storm.strikes import Struck


@dataclass(frozen=True, slots=True)
class Found:
    """What is left of a run: its record, its entries, and what stands beside them."""

    record: RunRecord
    entries: list[EntryInfo]
    stats: SessionStats
    reported_at: Mapping[str, float | None]
    waiting_tasks: int
    drives_nothing: bool


@dataclass(frozen=True, slots=True)
class Verdict:
    """`problems` has one sentence for each promise that was broken; `again` names the phases that ran twice."""

    problems: tuple[str, ...]
    again: tuple[str, ...]
    saved_ms: int


async def look(on: Stage, struck: Struck) -> Found:
    """Return what is left of a run that has ended."""
    session_id = struck.session_id

    async def is_at_rest() -> bool:
        return await on.drives_nothing() and not await on.waiting_tasks()

    # Whoever ended the run still has to take it off the list; a delivery is acknowledged after its report.
    await on.until(is_at_rest)
    return Found(
        await on.record(session_id),
        await on.cache.entries(session_id),
        await on.cache.stats(session_id),
        {one.task_id: await on.reported_at(one.task_id) for one in struck.executions},
        await on.waiting_tasks(),
        await on.drives_nothing(),
    )


def judge(struck: Struck, found: Found, undisturbed: Any) -> Verdict:
    """Return what is wrong with a run; *undisturbed* is the result of one for the same input that nobody struck."""
    problems = [
        *_result(struck, found, undisturbed),
        *_executions(struck, found),
        *_savings(struck, found),
        *_rest(found),
    ]
    runs = Counter(one.phase for one in struck.executions)
    again = tuple(phase for phase in PHASES if runs[phase] > 1)
    return Verdict(tuple(problems), again, found.stats.total_saved_time_ms)


def _result(struck: Struck, found: Found, undisturbed: Any) -> Iterable[str]:
    told = struck.outcome.get("state"), found.record.state
    if told != ("completed", "completed"):
        yield f"it ended as {told}: {found.record.error}"
    result = struck.outcome.get("result")
    if result != undisturbed:
        yield f"its result is {result}, undisturbed it was {undisturbed}"
    if result != work.expected(struck.number):
        yield f"its result is {result}, right were {work.expected(struck.number)}"


def _skipped(struck: Struck) -> frozenset[str]:
    return (
        frozenset()
        if work.expected(struck.number)["corrected"]
        else frozenset({CORRECTION})
    )


def _executions(struck: Struck, found: Found) -> Iterable[str]:
    """Yield what ran too often, or not to its end: only what was in flight on the victim may run again, once."""
    for phase in PHASES:
        mine = [one for one in struck.executions if one.phase == phase]
        state = found.record.phases[phase]
        if phase in _skipped(struck):
            if mine or state.status != "skipped":
                yield f"{phase} is {state.status} and ran {len(mine)} times, though its condition does not hold"
            continue
        if state.status != "done" or state.run != 1:
            yield f"{phase} is {state.status} in run {state.run}, not done in the first"
        if len({one.task_id for one in mine}) != 1:
            yield f"{phase} ran as {len({one.task_id for one in mine})} tasks"
        hit = [one for one in mine if _was_hit(one, struck, found)]
        cut = sum(one.ended_at is None for one in hit)
        # Of what was killed after its end nobody can tell here whether its report was known already.
        most = 1 + len(hit)
        if not 1 + cut <= len(mine) <= most:
            yield f"{phase} started {len(mine)} times, right are {1 + cut} to {most}"
        if (ends := sum(one.ended_at is not None for one in mine)) != len(mine) - cut:
            yield f"{phase} started {len(mine)} times and ran to its end {ends} times, {cut} were cut short"


def _was_hit(one: Execution, struck: Struck, found: Found) -> bool:
    """Return whether the victim was at it when it was killed: its report came later, from somebody else."""
    reported_at = found.reported_at[one.task_id]
    return one.pid == struck.blow.pid and (
        reported_at is None or reported_at > struck.blow.at
    )


def _savings(struck: Struck, found: Found) -> Iterable[str]:
    skipped = _skipped(struck)
    corrected = {} if skipped else {"implementation_pass_1": CORRECTION}
    if found.record.corrected != corrected:
        yield f"corrected are {found.record.corrected}, not {corrected}"
    owed = {
        f"{phase.name}:{name}"
        for phase in PIPELINE.phases
        if phase.name not in skipped
        for name in phase.writes
    }
    if {entry.key for entry in found.entries} != owed:
        yield f"its entries are {sorted(entry.key for entry in found.entries)}, not {sorted(owed)}"
    hits = hits_of(PIPELINE, skipped, corrected)
    for entry in found.entries:
        if entry.hits != hits[entry.key]:
            yield f"{entry.key} has {entry.hits} hits, not {hits[entry.key]}"
    for phase in PHASES:
        took_ms = found.record.phases[phase].took_ms
        for computing_ms in {
            one.computation_ms for one in found.entries if one.phase == phase
        } - {took_ms}:
            yield f"an entry of {phase} took {computing_ms} ms, its run {took_ms} ms"
    told = struck.outcome.get("stats", {})
    for name, owed_number in (("total_hits", hits.total()), ("total_saved_time_ms", 0)):
        if not getattr(found.stats, name) == told.get(name) == owed_number:
            yield f"{name} is {getattr(found.stats, name)}, told as {told.get(name)}; right is {owed_number}"


def _rest(found: Found) -> Iterable[str]:
    if (
        found.waiting_tasks
        or not found.drives_nothing
        or found.record.holder is not None
    ):
        yield f"{found.waiting_tasks} tasks are left, and {found.record.holder} drives it"
