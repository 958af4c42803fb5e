"""A run while it goes: on a terminal a table that keeps itself up to date, elsewhere a line for each change."""

import contextlib
import dataclasses
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from tasklore.pipeline.lines import WORDS, PhaseLine, counted, phase_lines, took_text, widest
from tasklore.pipeline.stores import Look
from tasklore.pipeline.summary import outcome_lines

if TYPE_CHECKING:
    from rich.console import Group

#: Redraws a second: elapsed times count tenths.
_REDRAWS = 8
#: Lines of a terminal that are left to what stood there before.
_LEFT_FREE = 4

#: What is not computed again: milliseconds by the name of a phase and the number of its run.
Reused = Mapping[tuple[str, int], int]


class Board(Protocol):
    """Shows each look at a run."""

    def show(self, look: Look, told: Mapping[str, str]) -> None:
        """Show *look*; *told* is what running phases said of their progress."""


@contextlib.contextmanager
def board(*, is_silent: bool, reused: Reused | None = None) -> Iterator[Board]:
    """Open what shows a run on stderr; stdout is for its result. *is_silent* shows nothing.

    *reused* are phases that are not run again, by name and the number of their run, with the milliseconds that saves.
    """
    if is_silent:
        yield _Silence()
    elif sys.stderr.isatty():
        with _LiveBoard(reused or {}).drawn() as live:
            yield live
    else:
        yield PlainBoard(reused or {})


class _Silence:
    """For programs."""

    def show(self, look: Look, told: Mapping[str, str]) -> None:
        """Do nothing."""


class PlainBoard:
    """A line on stderr whenever a phase begins, tells of itself, or ends."""

    def __init__(self, reused: Reused) -> None:
        self._reused = reused
        self._seen: dict[str, tuple[str, int, str]] = {}

    def show(self, look: Look, told: Mapping[str, str]) -> None:
        """Write what changed since the last look."""
        lines = lines_of(look, told, self._reused)
        width = widest(lines)
        for line in lines:
            # What ends within one look is told once, as its end.
            now = (line.status, line.run, line.said)
            if line.status in ("pending", "reused") or self._seen.get(line.name) == now:
                continue
            self._seen[line.name] = now
            print(_without_elapsed(line).plain(width), file=sys.stderr, flush=True)


def _without_elapsed(line: PhaseLine) -> PhaseLine:
    return dataclasses.replace(line, took_ms=None) if line.status in ("running", "away") else line


class _LiveBoard:
    """A table on the terminal that draws itself anew."""

    def __init__(self, reused: Reused) -> None:
        self._reused = reused
        self._look: Look | None = None
        self._told: Mapping[str, str] = {}

    def show(self, look: Look, told: Mapping[str, str]) -> None:
        """Draw *look* from now on."""
        self._look, self._told = look, dict(told)

    @contextlib.contextmanager
    def drawn(self) -> "Iterator[_LiveBoard]":
        """Draw while the block lasts; what was drawn last stays."""
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True)
        with Live(get_renderable=self._drawing, console=console, refresh_per_second=_REDRAWS, redirect_stdout=False):
            yield self

    def _drawing(self) -> "Group":
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        if self._look is None:
            return Group()
        lines = lines_of(self._look, self._told, self._reused)
        shown, left_out = visible(lines, shutil.get_terminal_size().lines - _LEFT_FREE)
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for style, justify in (("bold", "left"), (None, "left"), ("dim", "right"), (None, "left")):
            is_name = style == "bold"
            # A name that is folded cannot be copied; it has at most 64 letters.
            table.add_column(style=style, justify=justify, overflow="fold", no_wrap=is_name)  # type: ignore[arg-type] # a Literal
        for line in shown:
            word, style = WORDS.get(line.status, (line.status, "dim"))
            took = "" if line.took_ms is None else took_text(line.took_ms)
            # Plain text: what an agent says may hold what would be markup.
            table.add_row(Text(f"  {line.name}"), Text(word, style=style), Text(took), Text(line.said))
        return Group(*([Text(f"  {left_out}", style="dim")] if left_out else []), table)


def lines_of(look: Look, told: Mapping[str, str], reused: Reused | None = None) -> list[PhaseLine]:
    """Return a line for each phase, from the session or, once that is gone, from what the run left."""
    lines = phase_lines(look.record, told) if look.record is not None else outcome_lines(look)
    if look.record is not None and look.away:
        agents = {phase.name: phase.agent for phase in look.record.pipeline.phases if phase.agent in look.away}
        lines = [_as_away(line, agents) for line in lines]
    if look.is_over:
        # A run that is cancelled leaves its phases as they were.
        under_way = ("running", "away")
        lines = [dataclasses.replace(one, status="cancelled") if one.status in under_way else one for one in lines]
    return [_as_reused(line, reused or {}) for line in lines]


def _as_away(line: PhaseLine, agents: Mapping[str, str]) -> PhaseLine:
    """Return *line*, or one that tells that no worker is there when one of *agents*, by phase, is away."""
    if line.status != "running" or line.name not in agents:
        return line
    said = f"waits for a worker of {agents[line.name]}"
    return dataclasses.replace(line, status="away", said=said)


def _as_reused(line: PhaseLine, reused: Reused) -> PhaseLine:
    """Return *line*, or one that tells what is saved, when the phase is not run again; it may be, after all."""
    saved_ms = reused.get((line.name, line.run))
    if line.status != "done" or saved_ms is None:
        return line
    return dataclasses.replace(line, status="reused", took_ms=None, said=f"{took_text(saved_ms)} saved")


def visible(lines: list[PhaseLine], room: int) -> tuple[list[PhaseLine], str]:
    """Return the lines that fit into *room*, those that something happens in first, and what to say of the others."""
    if len(lines) <= room:
        return lines, ""
    ranks = {"failed": 0, "running": 1, "away": 1, "pending": 2}
    kept = {id(line) for line in sorted(lines, key=lambda one: ranks.get(one.status, 3))[: max(1, room - 1)]}
    left_out = [line for line in lines if id(line) not in kept]
    counts = Counter(WORDS.get(one.status, (one.status, ""))[0] for one in left_out)
    words = dict.fromkeys(word for word, _ in WORDS.values())
    told = ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
    return [line for line in lines if id(line) in kept], f"{counted(len(left_out), 'more phase')}: {told}"
