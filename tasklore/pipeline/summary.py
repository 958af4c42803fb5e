"""The end of a run for people and for programs: its result, what was saved, and what to type next."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from tasklore.exits import FAILED, OK
from tasklore.pipeline.lines import PhaseLine, counted, one_line, took_text
from tasklore.pipeline.stores import Look
from tasklore.render.screen import complain, print_json, printable, say


def tell_end(look: Look, *, as_json: bool) -> int:
    """Print what came of a run that is over, and return the exit code.

    The result goes to stdout, everything around it to stderr; *as_json* prints the whole outcome instead.
    """
    outcome = look.outcome or {"session_id": look.session_id, "state": look.state, "result": None, "phases": []}
    code = OK if look.state == "completed" else FAILED
    if as_json:
        print_json(outcome)
        return code
    if look.state == "completed":
        print(result_text(outcome.get("result")), flush=True)
        for key in outcome.get("missing") or ():
            complain(f"{printable(key)} is missing in it: its time to live was over before the run was")
    say(summary(look, outcome))
    if look.state != "completed":
        _tell_failure(look, outcome)
    elif look.record is not None:
        say(f"the session is kept: `tasklore session show {look.session_id}`")
    return code


def _tell_failure(look: Look, outcome: Mapping[str, Any]) -> None:
    failed = [one for one in outcome["phases"] if one["status"] == "failed"]
    for one in failed:
        complain(f"{one['phase']}: {error_of(one)}")
    if not failed and outcome.get("error"):
        complain(printable(str(outcome["error"])))
    if outcome.get("evidence"):
        say(f"evidence is in {printable(str(outcome['evidence']))}, where the supervisor runs")
    if look.record is not None:
        say(f"go on with: tasklore pipeline resume {look.session_id}")
        say(f"correct the file? `tasklore pipeline resume {look.session_id} --file FILE`")
    elif outcome.get("evidence"):
        say(f"its session is gone; go on with: tasklore pipeline resume --evidence {shlex.quote(outcome['evidence'])}")


def summary(look: Look, outcome: Mapping[str, Any]) -> str:
    """Return in a sentence how the run ended and what it did not have to compute."""
    phases = outcome["phases"]
    done = sum(one["status"] == "done" for one in phases)
    words = f"{look.session_id} {look.state}"
    if "took_ms" in outcome:
        words += f" in {took_text(int(outcome['took_ms']))}"
    # One that was set aside does not tell of its phases.
    words += f", {done} of {counted(len(phases), 'phase')} done" if phases else ""
    if skipped := sum(one["status"] == "skipped" for one in phases):
        words += f", {skipped} left out"
    stats = outcome.get("stats") or {}
    if stats.get("total_saved_time_ms"):
        words += f"; {took_text(int(stats['total_saved_time_ms']))} saved by what earlier runs had computed"
    return words


def error_of(phase: Mapping[str, Any]) -> str:
    """Return why a phase failed, in one line."""
    words = phase.get("error") or "it did not say why"
    return one_line(f"{phase['error_type']}: {words}" if phase.get("error_type") else str(words), 400)


def outcome_lines(look: Look) -> list[PhaseLine]:
    """Return a line for each phase of a run whose session is gone."""
    if look.outcome is None:
        return []
    return [
        PhaseLine(
            str(one["phase"]),
            str(one["status"]),
            int(one["took_ms"]) if one["status"] in ("done", "failed") else None,
            one_line(error_of(one)) if one["status"] == "failed" else one_line(_said(one)),
            int(one["run"]),
        )
        for one in look.outcome["phases"]
    ]


def _said(phase: Mapping[str, Any]) -> str:
    parts = [str(phase["why"])] if phase.get("why") else []
    if phase["status"] == "done" and phase.get("memory") in ("hit", "joined", "near"):
        parts.append("remembered")
    if int(phase.get("attempts") or 0) > 1:
        parts.append(f"{phase['attempts']} runs")
    return ", ".join(parts)


def result_text(result: Any) -> str:
    """Return a result for people: a text as it is, anything else as indented JSON."""
    return printable(result if isinstance(result, str) else json.dumps(result, indent=2, ensure_ascii=False))
