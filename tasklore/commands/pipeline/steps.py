"""Phases of a run as steps of a board, and the summary of a run."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tasklore.commands.pipeline.stores import Look
from tasklore.commands.render.board import BoardRow
from tasklore.commands.render.words import count_of, duration, one_line
from tasklore.memory.sessions.pipeline_records import PhaseState

#: Characters of an error that is printed whole.
LONGEST_ERROR = 400
_FROM_MEMORY = ("hit", "joined", "near")

#: The milliseconds that reuse saves, by the name of a phase and the number of its run.
Reused = Mapping[tuple[str, int], int]


def steps_of(
    look: Look, progress: Mapping[str, str] | None = None, reused: Reused | None = None
) -> Sequence[BoardRow]:
    """Return a step for each phase, from the session or, once that is gone, from the outcome."""
    phases = phases_of(look)
    if (record := look.record) is not None:
        agents = {
            phase.name: phase.agent
            for phase in record.pipeline.phases
            if phase.agent in look.away
        }
        late = {name: record.lateness(name) for name in phases}
    else:
        agents = {}
        late = {
            str(phase["phase"]): str(phase.get("late", ""))
            for phase in (look.outcome or {}).get("phases", ())
        }
    steps = [
        _step(
            name,
            state=state,
            look=look,
            absent=agents.get(name),
            progress=progress or {},
            reused=reused or {},
        )
        for name, state in phases.items()
    ]
    return [
        dataclasses.replace(
            one, note=", ".join(filter(None, (one.note, one_line(late[one.name]))))
        )
        for one in steps
    ]


def phases_of(look: Look) -> Mapping[str, PhaseState]:
    """Return the phases of a run by name."""
    if look.record is not None:
        return look.record.phases
    fields = {field.name for field in dataclasses.fields(PhaseState)}
    return {
        str(phase["phase"]): PhaseState(
            **{name: value for name, value in phase.items() if name in fields}
        )
        for phase in (look.outcome or {}).get("phases", ())
    }


def _step(
    name: str,
    state: PhaseState,
    look: Look,
    absent: str | None,
    progress: Mapping[str, str],
    reused: Reused,
) -> BoardRow:
    status: str = state.status
    took_ms = None
    note = reason_of(state)
    if state.status == "running":
        note = progress.get(name, "")
        if state.since_ms is not None:
            took_ms = max(0, time.time_ns() // 1_000_000 - state.since_ms)
        if look.is_over:
            # A run that is cancelled leaves its phases as they were.
            status = "cancelled"
        elif absent is not None:
            status = "away"
            note = f"waits for a worker of {absent}"
    elif state.status in ("done", "failed"):
        took_ms = state.took_ms
    saved_ms = reused.get((name, state.run))
    if state.status == "done" and saved_ms is not None:
        status = "reused"
        took_ms = None
        note = f"{duration(saved_ms)} saved"
    return BoardRow(
        name, status=status, took_ms=took_ms, note=one_line(note), run=state.run
    )


def reason_of(state: PhaseState) -> str:
    """Return the error of a failed phase, or why it was skipped, is stale or was quick; "" without a reason."""
    if state.status == "failed":
        return error_of(state)
    parts = [state.why] if state.why and state.status != "running" else []
    if state.status == "done" and state.memory in _FROM_MEMORY:
        parts.append("remembered")
    if state.attempts > 1:
        parts.append(f"{state.attempts} runs")
    return ", ".join(parts)


def error_of(state: PhaseState) -> str:
    """Return the error of a failed phase."""
    error = state.error or "it did not say why"
    return f"{state.error_type}: {error}" if state.error_type else error


def summary_of(look: Look, outcome: Mapping[str, Any]) -> str:
    """Return in a sentence how the run ended and the time that it saved."""
    phases = outcome["phases"]
    words = f"{look.session_id} {look.state}"
    if "took_ms" in outcome:
        words += f" in {duration(int(outcome['took_ms']))}"
    if phases:
        # A run that was set aside lists no phases.
        words += f", {sum(one['status'] == 'done' for one in phases)} of {count_of(len(phases), 'phase')} done"
    if skipped := sum(one["status"] == "skipped" for one in phases):
        words += f", {skipped} left out"
    if saved_ms := (outcome.get("stats") or {}).get("total_saved_time_ms"):
        words += f"; {duration(int(saved_ms))} saved by what earlier runs had computed"
    return words
