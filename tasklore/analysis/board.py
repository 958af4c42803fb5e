"""An analysis while it goes, for whoever looks on at a terminal; elsewhere the table at the end tells all of it."""

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from contracts.analysis.document import AnalysisDocument
from contracts.analysis.roster import Seat
from tasklore.analysis.findings import DONE, FAILED, LATE, WAITING, findings
from tasklore.render.words import duration

if TYPE_CHECKING:
    from rich.console import Group

#: Redraws a second: the time that has passed counts tenths.
_REDRAWS = 8
_STYLES = {WAITING: "dim", DONE: "green", FAILED: "red", LATE: "yellow"}
#: Characters of the longest of those words, and of most times.
_WIDEST, _TOOK = max(map(len, _STYLES)), 6


class Board(Protocol):
    """Shows each look at an analysis."""

    def show(self, document: AnalysisDocument | None) -> None:
        """Show *document* as far as it is; None is nothing yet."""


@contextlib.contextmanager
def board(title: str, seats: Sequence[Seat], *, is_silent: bool) -> Iterator[Board]:
    """Open what shows the sections of *seats* on stderr as they come; stdout is for what comes of it all.

    Nothing is shown when that is no terminal, or *is_silent*.
    """
    sections = [seat.section for seat in seats if seat.enabled]
    if is_silent or not sys.stderr.isatty():
        yield _Silence()
        return
    with _LiveBoard(title, sections).drawn() as live:
        yield live


class _Silence:
    """For whoever does not look on."""

    def show(self, document: AnalysisDocument | None) -> None:
        """Do nothing."""


class _LiveBoard:
    """A list on the terminal that draws itself anew, and is gone in the end: a table follows it."""

    def __init__(self, title: str, sections: Sequence[str]) -> None:
        self._title = title
        self._sections = sections
        self._found = findings(None, sections)
        self._began = time.monotonic()

    def show(self, document: AnalysisDocument | None) -> None:
        """Draw *document* from now on."""
        self._found = [one for one in findings(document, self._sections) if one.section in self._sections]

    @contextlib.contextmanager
    def drawn(self) -> "Iterator[_LiveBoard]":
        """Draw while the block lasts."""
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True)
        with Live(
            get_renderable=self._drawing,
            console=console,
            refresh_per_second=_REDRAWS,
            redirect_stdout=False,
            transient=True,
        ):
            yield self

    def _drawing(self) -> "Group":
        from rich.console import Group
        from rich.text import Text

        width = max((len(one.section) for one in self._found), default=0)
        came = sum(one.is_there for one in self._found)
        elapsed = duration(int((time.monotonic() - self._began) * 1000))
        lines = [Text(f"{self._title}: {came} of {len(self._found)} agents, {elapsed}")]
        for one in self._found:
            took = "" if one.took_ms is None else duration(one.took_ms)
            # Plain text: what an agent says may hold what would be markup. One line a section: nothing jumps.
            line = Text(no_wrap=True, overflow="ellipsis")
            line.append(f"  {one.section.ljust(width)}  ", "bold")
            line.append(f"{one.status.ljust(_WIDEST)}  ", _STYLES.get(one.status, "dim"))
            line.append(f"{took:>{_TOOK}}  ", "dim")
            lines.append(line.append(one.said))
        return Group(*lines)
