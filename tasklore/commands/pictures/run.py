"""A run of a pipeline as people see it: its inputs, a line for each phase, and its end."""

import dataclasses
import json
import shutil
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.render.board import STATUSES, BoardRow, widest
from tasklore.commands.render.screen import folded, printable, styled
from tasklore.commands.render.words import count_of, duration, one_line

#: Characters of an error that is printed whole, and of one input.
LONGEST_ERROR = 400
_LONGEST_INPUT = 100
_FROM_MEMORY = ("hit", "joined", "near")
_BAD = ("failed", "cancelled")

#: The view of a run, or of one phase.
Json = Mapping[str, Any]
#: The milliseconds that reuse saves, by the name of a phase and the number of its run.
Reused = Mapping[tuple[str, int], int]


def draw(view: Json) -> str:
    """Return the run *view* as text."""
    return "\n".join(_lines_of(view))


def code_of(view: Json) -> int:
    """Return the exit code of a look at the run *view*."""
    return FAILED if view["state"] in _BAD else OK


def rows_of(
    view: Json,
    progress: Mapping[str, str] | None = None,
    reused: Reused | None = None,
) -> list[BoardRow]:
    """Return a row for each phase, from the session or, once that is gone, from the outcome."""
    return [
        _row(
            phase,
            is_over=view["state"] != "running",
            absent=view.get("without_worker") or (),
            progress=progress or {},
            reused=reused or {},
        )
        for phase in phases_of(view)
    ]


def phases_of(view: Json) -> Sequence[Json]:
    """Return the phases of a run, each as one object."""
    found: Sequence[Json] = (
        view.get("phases") or (view.get("outcome") or {}).get("phases") or ()
    )
    return found


def reason_of(phase: Json) -> str:
    """Return the error of a failed phase, or why it was skipped, is stale or was quick; "" without a reason."""
    if phase["status"] == "failed":
        return error_of(phase)
    why = phase.get("why")
    parts = [str(why)] if why and phase["status"] != "running" else []
    if phase["status"] == "done" and phase.get("memory") in _FROM_MEMORY:
        parts.append("remembered")
    if (attempts := int(phase.get("attempts") or 0)) > 1:
        parts.append(f"{attempts} runs")
    return ", ".join(parts)


def error_of(phase: Json) -> str:
    """Return the error of a failed phase."""
    error = phase.get("error") or "it did not say why"
    kind = phase.get("error_type")
    return f"{kind}: {error}" if kind else str(error)


def stale_phases(view: Json) -> list[str]:
    """Return the phases that were marked as stale and did not begin anew yet."""
    return [
        str(one["phase"])
        for one in view.get("phases") or ()
        if one["status"] == "pending" and one.get("why")
    ]


def summarise(view: Json) -> str:
    """Return in a sentence how the run ended and the time that it saved."""
    outcome = view.get("outcome") or {}
    phases = outcome.get("phases") or ()
    words = f"{view['session_id']} {view['state']}"
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


def hints_of(view: Json) -> Iterator[str]:
    """Yield what a run that is not over waits for, or how to resume one that is."""
    state = view["state"]
    stale = len(stale_phases(view))
    reason = view.get("cancel_reason")
    if state == "running" and reason is not None:
        yield "cancellation requested" + (f": {one_line(reason)}" if reason else "")
    elif state == "running" and view.get("held"):
        yield one_line(view["held"])
    elif state == "running" and not view.get("is_driven"):
        yield "no supervisor is running this pipeline; it resumes when one starts"
    if state == "running":
        yield from name_absent(view.get("without_worker") or ())
    elif stale:
        again = "run it again" if stale == 1 else "run them again"
        yield f"{count_of(stale, 'phase')} stale; {again} with: tasklore pipelines resume {view['session_id']}"
    elif state in _BAD and view.get("phases"):
        yield f"resume with: tasklore pipelines resume {view['session_id']}"


def name_absent(agents: Sequence[str]) -> Iterator[str]:
    """Yield a line about *agents* without a live worker, none when there are none."""
    if agents:
        whose = "its" if len(agents) == 1 else "their"
        cure = f"{whose} phases wait until one is started with `tasklore worker`"
        yield f"no worker of {', '.join(agents)} is alive; {cure}"


def describe_notes(notes: Sequence[Json]) -> list[str]:
    """Return a line for each phase: its reason, and the time that reuse saves."""
    width = max((len(note["phase"]) for note in notes), default=0)
    lines = []
    for note in notes:
        saved = f"  ({duration(note['saved_ms'])})" if note["saved_ms"] else ""
        line = f"  {note['phase'].ljust(width)}  {one_line(note['why'])}{saved}"
        lines.append(line.rstrip())
    return lines


def _lines_of(view: Json) -> Iterator[str]:
    if view.get("pipeline"):
        word, style = STATUSES.get(view["state"], (view["state"], "dim"))
        again = f", run {view['run']}" if (view.get("run") or 1) > 1 else ""
        yield (
            f"{styled(printable(view['pipeline']), 'bold')}  {styled(word, style)}{again}  {view['session_id']}"
        )
        for name, value in (view.get("inputs") or {}).items():
            text = (
                value
                if isinstance(value, str)
                else json.dumps(value, ensure_ascii=False)
            )
            yield f"  {styled(f'{name} =', 'dim')} {one_line(text, _LONGEST_INPUT)}"
    rows = rows_of(view)
    width = widest(rows)
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for row in rows:
        is_short = len(row.line(width)) <= room
        shown = row if is_short else dataclasses.replace(row, note="")
        yield shown.line(width, has_colour=True)
        if not is_short:
            yield folded(row.note, room, "      ")
    if (outcome := view.get("outcome")) is not None:
        yield folded(summarise(view), room)
        for name in ("error", "evidence"):
            if outcome.get(name):
                yield f"{styled(f'{name}:', 'dim')} {one_line(str(outcome[name]), LONGEST_ERROR)}"


def _row(
    phase: Json,
    *,
    is_over: bool,
    absent: Collection[str],
    progress: Mapping[str, str],
    reused: Reused,
) -> BoardRow:
    name = str(phase["phase"])
    status = str(phase["status"])
    run = int(phase.get("run") or 0)
    took_ms = None
    note = reason_of(phase)
    if status == "running":
        note = progress.get(name, "")
        took_ms = _elapsed(phase.get("began_at"))
        away = [one for one in phase.get("agents") or () if one in absent]
        if is_over:
            # A run that is cancelled leaves its phases as they were.
            status = "cancelled"
        elif away:
            status = "away"
            note = f"waits for a worker of {', '.join(away)}"
    elif status in ("done", "failed"):
        took_ms = int(phase.get("took_ms") or 0)
    saved_ms = reused.get((name, run))
    if status == "done" and saved_ms is not None:
        status = "reused"
        took_ms = None
        note = f"{duration(saved_ms)} saved"
    late = one_line(str(phase.get("late") or ""))
    return BoardRow(
        name,
        status=status,
        took_ms=took_ms,
        note=", ".join(filter(None, (one_line(note), late))),
        run=run,
    )


def _elapsed(began_at: str | None) -> int | None:
    """Return the milliseconds since *began_at*; None while it is not known."""
    if began_at is None:
        return None
    since = datetime.fromisoformat(began_at).timestamp()
    return max(0, int((time.time() - since) * 1000))
