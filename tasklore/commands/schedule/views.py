"""`tasklore schedule list|show`: schedules as tables and as JSON."""

import json
from datetime import UTC, datetime
from typing import Any

from tasklore.commands.render.columns import Column, print_facts, print_records
from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.screen import patience, print_json, printable
from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.zones import zone_of
from tasklore.memory.schedules.store import KeptSchedule
from tasklore.supervisor.schedules.ticks import next_five

_COLUMNS = (
    Column[KeptSchedule]("ID", lambda one: one.schedule.id, whole=True),
    Column[KeptSchedule]("RUNS", lambda one: printable(one.schedule.target)),
    Column[KeptSchedule]("WHEN", lambda one: spell_timing(one.schedule.timing)),
    Column[KeptSchedule]("NEXT", lambda one: _spell_next(one)),
    Column[KeptSchedule](
        "USER", lambda one: printable(one.schedule.user_id or ""), optional=True
    ),
    Column[KeptSchedule](
        "PROBLEM", lambda one: printable(one.state.problem), optional=True
    ),
)


async def print_schedules(user: str | None, limit: int, *, as_json: bool) -> None:
    """Print a line for each schedule.

    Raises:
        Unreachable: a server does not answer.
    """
    from tasklore.commands.schedule.edits import open_schedules

    async with open_schedules() as (book, _), patience("reading schedules"):
        found = await book.store.list(user, limit=limit)
    if as_json:
        print_json([document_of(one) for one in found])
    elif found:
        print_records(_COLUMNS, found)
    else:
        print("There are no schedules; `tasklore schedule add` makes one.")


async def print_schedule(schedule_id: str, *, as_json: bool) -> None:
    """Print a schedule with its next five times.

    Raises:
        InvalidInput: there is none.
        Unreachable: a server does not answer.
    """
    from tasklore.commands.schedule.edits import open_schedules, unknown

    async with open_schedules() as (book, _):
        kept = (await book.store.read(schedule_id))[0]
    if kept is None:
        raise unknown(schedule_id)
    if as_json:
        print_json(document_of(kept))
        return
    schedule, state = kept
    print_facts(
        {
            "id": schedule.id,
            "runs": schedule.target,
            "with": json.dumps(schedule.parameters, ensure_ascii=False)
            if schedule.parameters
            else None,
            "when": spell_timing(schedule.timing),
            "missed ticks": f"{schedule.timing.missed}; {state.missed} were not made up for",
            "user": schedule.user_id,
            "state": "paused" if schedule.paused else None,
            "declared": "in the code of its agent" if schedule.declared else None,
            "last": spell_local(state.last, schedule.timing)
            if state.last is not None
            else None,
            "last task": state.task_id,
            "problem": state.problem,
            "changed": f"by {schedule.changed_by}, {spell_local(schedule.changed_at, schedule.timing)}",
        }
    )
    for one in _next_of(kept):
        print(f"  next {spell_local(one, schedule.timing)}")


def spell_timing(timing: Timing) -> str:
    """Return when a schedule runs, in words."""
    if timing.every_s is not None:
        return f"every {read_aloud(timing.every_s * 1000)}"
    return f"{timing.cron} ({timing.time_zone})" if timing.cron is not None else "once"


def spell_local(moment: datetime, timing: Timing) -> str:
    """Return *moment* by the clocks of *timing*."""
    return moment.astimezone(zone_of(timing.time_zone)).strftime(
        "%a %Y-%m-%d %H:%M:%S %z"
    )


def document_of(kept: KeptSchedule) -> dict[str, Any]:
    """Return a schedule for programs."""
    state = kept.state._asdict() | {"next": [one.isoformat() for one in _next_of(kept)]}
    return kept.schedule.model_dump(mode="json") | {"state": state}


def _next_of(kept: KeptSchedule) -> list[datetime]:
    schedule = kept.schedule
    now = datetime.now(UTC)
    return [] if schedule.paused else next_five(schedule.timing, now, schedule.anchor)


def _spell_next(kept: KeptSchedule) -> str:
    if kept.schedule.paused:
        return "paused"
    return next(
        (spell_local(one, kept.schedule.timing) for one in _next_of(kept)), "never"
    )
