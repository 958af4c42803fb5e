"""A run as lines of text: how far each phase is, how long it took, and why it is so."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.sessions.pipeline_records import PhaseState, RunRecord
from tasklore.render.screen import printable, styled

#: How a status is called for people, and in which colour.
WORDS = {
    "pending": ("waiting", "dim"),
    "running": ("running", "cyan"),
    "away": ("waiting", "yellow"),
    "done": ("done", "green"),
    "reused": ("reused", "cyan"),
    "failed": ("failed", "red"),
    "skipped": ("left out", "dim"),
    "completed": ("completed", "green"),
    "cancelled": ("cancelled", "yellow"),
    "open": ("open", "dim"),
}
#: Characters of the longest of those words.
_WIDEST = max(len(word) for word, _ in WORDS.values())
#: Characters of what is said of a phase in a line; an error is told whole at the end.
_SAID = 120


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """One phase for people.

    `took_ms` is None while nothing began. `said` is why it is as it is, or how far it says it is. `run` counts how
    often it was begun.
    """

    name: str
    status: str
    took_ms: int | None = None
    said: str = ""
    run: int = 0

    def plain(self, width: int) -> str:
        """Return the line, the name padded to *width*."""
        return self._joined(width, WORDS.get(self.status, (self.status, ""))[0].ljust(_WIDEST))

    def painted(self, width: int) -> str:
        """Return the line with its status in colour, where stdout shows colours."""
        word, style = WORDS.get(self.status, (self.status, "dim"))
        return self._joined(width, styled(word.ljust(_WIDEST), style))

    def _joined(self, width: int, status: str) -> str:
        took = "" if self.took_ms is None else took_text(self.took_ms)
        return f"  {self.name.ljust(width)}  {status}  {took:>10}  {self.said}".rstrip()


def phase_lines(record: RunRecord, told: Mapping[str, str] | None = None, now_ms: int | None = None) -> list[PhaseLine]:
    """Return a line for each phase; *told* is what running ones said of their progress, by phase."""
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    return [_line(name, state, (told or {}).get(name, ""), now_ms) for name, state in record.phases.items()]


def _line(name: str, state: PhaseState, told: str, now_ms: int) -> PhaseLine:
    took_ms: int | None = None
    if state.status == "running" and state.since_ms is not None:
        took_ms = max(0, now_ms - state.since_ms)
    elif state.status in ("done", "failed"):
        took_ms = state.took_ms
    said = told if state.status == "running" else said_of(state)
    return PhaseLine(name, state.status, took_ms, one_line(said), state.run)


def said_of(state: PhaseState) -> str:
    """Return why a phase is as it is, "" when there is nothing to say."""
    if state.status == "failed":
        return f"{state.error_type}: {state.error}" if state.error_type else state.error or ""
    parts = [state.why] if state.why and state.status != "running" else []
    if state.status == "done" and state.memory in ("hit", "joined", "near"):
        parts.append("remembered")
    if state.attempts > 1:
        parts.append(f"{state.attempts} runs")
    return ", ".join(parts)


def one_line(text: str, width: int = _SAID) -> str:
    """Return *text* in one line of at most *width* characters, without what would steer a terminal."""
    line = " ".join(printable(text).split())
    return line if len(line) <= width else f"{line[: width - 3]}..."


def took_text(milliseconds: int) -> str:
    """Return a time for people, precise enough to compare phases: "412 ms", "5.2 s", "2 min 05 s", "3 h 04 min"."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        # Rounded down: 59.99 s must not read as 60.0.
        return f"{milliseconds // 100 / 10:.1f} s"
    seconds = milliseconds // 1000
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def widest(lines: Sequence[PhaseLine]) -> int:
    """Return how wide the column of names has to be."""
    return max((len(line.name) for line in lines), default=0)


def counted(count: int, what: str) -> str:
    """Return *count* with *what* it counts: "1 phase", "2 phases", "2 entries"."""
    if count != 1:
        what = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count:,} {what}"
