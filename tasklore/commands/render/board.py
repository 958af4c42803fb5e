"""Steps of a run or an analysis while it goes: a list that a terminal keeps up to date, or a line for each change."""

import contextlib
import dataclasses
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasklore.commands.render.screen import styled
from tasklore.commands.render.words import count_of, duration

if TYPE_CHECKING:
    from rich.console import Group

#: The word and the style of each status.
STATUSES = {
    "pending": ("waiting", "dim"),
    "waiting": ("waiting", "dim"),
    "running": ("running", "cyan"),
    "away": ("waiting", "yellow"),
    "done": ("done", "green"),
    "ok": ("ok", "green"),
    "reused": ("reused", "cyan"),
    "failed": ("failed", "red"),
    "late": ("late", "yellow"),
    "skipped": ("left out", "dim"),
    "completed": ("completed", "green"),
    "cancelled": ("cancelled", "yellow"),
    "open": ("open", "dim"),
}
_WIDEST = max(len(word) for word, _ in STATUSES.values())
#: Redraws a second: elapsed times count tenths.
_REDRAWS = 8
#: Lines of a terminal that are left to what stood there before.
_LEFT_FREE = 4
_UNDER_WAY = ("pending", "waiting", "running", "away")


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A phase of a run or a section of an analysis.

    `took_ms` is None while nothing began, `note` a reason or a progress, and `run` counts how often it was begun.
    """

    name: str
    status: str
    took_ms: int | None = None
    note: str = ""
    run: int = 0

    def line(self, width: int, *, has_colour: bool = False) -> str:
        """Return the step as a line, the name padded to *width*."""
        word, style = STATUSES.get(self.status, (self.status, "dim"))
        word = word.ljust(_WIDEST)
        took = "" if self.took_ms is None else duration(self.took_ms)
        status = styled(word, style) if has_colour else word
        return f"  {self.name.ljust(width)}  {status}  {took:>10}  {self.note}".rstrip()


Show = Callable[[Sequence[BoardRow]], None]


@contextlib.contextmanager
def board(
    *, is_silent: bool, title: str = "", has_lines: bool = True
) -> Iterator[Show]:
    """Yield a function that shows steps on stderr; stdout is for the result. *is_silent* shows nothing.

    On a terminal they are a list below *title*; a list with a title is gone in the end. Elsewhere each change is a line
    when it *has_lines*.
    """
    if is_silent or not (sys.stderr.isatty() or has_lines):
        yield lambda _steps: None
        return
    if not sys.stderr.isatty():
        yield LineBoard().show
        return
    from rich.console import Console
    from rich.live import Live

    shown = LiveBoard(title)
    console = Console(stderr=True)
    with Live(
        get_renderable=shown.draw,
        console=console,
        refresh_per_second=_REDRAWS,
        redirect_stdout=False,
        transient=bool(title),
    ):
        yield shown.show


class LineBoard:
    """A line on stderr whenever a step begins, makes progress, or ends."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int, str]] = {}

    def show(self, steps: Sequence[BoardRow]) -> None:
        """Write the changes since the last call."""
        for step in steps:
            # A step that ends between two calls is written once, as its end.
            now = (step.status, step.run, step.note)
            if step.status in ("pending", "reused") or self._seen.get(step.name) == now:
                continue
            self._seen[step.name] = now
            line = (
                dataclasses.replace(step, took_ms=None)
                if step.status in _UNDER_WAY
                else step
            )
            print(line.line(widest(steps)), file=sys.stderr, flush=True)


class LiveBoard:
    """A list on the terminal that draws itself anew."""

    def __init__(self, title: str = "") -> None:
        self._title = title
        self._steps: Sequence[BoardRow] = ()
        self._began = time.monotonic()

    def show(self, steps: Sequence[BoardRow]) -> None:
        """Draw *steps* from now on."""
        self._steps = steps

    def draw(self) -> "Group":
        """Return the list as it is now; one line a step, cut where the terminal ends."""
        from rich.console import Group
        from rich.text import Text

        steps, left_out = fit(
            self._steps, shutil.get_terminal_size().lines - _LEFT_FREE
        )
        width = widest(steps)
        lines = []
        if self._title:
            ended = sum(step.status not in _UNDER_WAY for step in self._steps)
            elapsed = duration(int((time.monotonic() - self._began) * 1000))
            lines.append(
                Text(f"{self._title}: {ended} of {len(self._steps)} agents, {elapsed}")
            )
        if left_out:
            lines.append(Text(f"  {left_out}", style="dim"))
        for step in steps:
            word, style = STATUSES.get(step.status, (step.status, "dim"))
            # Plain text: a note of an agent may hold what would be markup.
            line = Text(no_wrap=True, overflow="ellipsis")
            line.append(f"  {step.name.ljust(width)}  ", "bold").append(
                f"{word.ljust(_WIDEST)}  ", style
            )
            line.append(
                f"{'' if step.took_ms is None else duration(step.took_ms):>10}  ", "dim"
            ).append(step.note)
            lines.append(line)
        return Group(*lines)


def widest(steps: Sequence[BoardRow]) -> int:
    """Return the width of the column of names."""
    return max((len(step.name) for step in steps), default=0)


def fit(steps: Sequence[BoardRow], room: int) -> tuple[Sequence[BoardRow], str]:
    """Return the steps that fit into *room* lines, failed and running ones first, and a count of the others."""
    if len(steps) <= room:
        return steps, ""
    ranks = {"failed": 0, "running": 1, "away": 1, "pending": 2}
    kept = {
        id(step)
        for step in sorted(steps, key=lambda one: ranks.get(one.status, 3))[
            : max(1, room - 1)
        ]
    }
    others = [step for step in steps if id(step) not in kept]
    counts = Counter(STATUSES.get(one.status, (one.status, ""))[0] for one in others)
    words = dict.fromkeys(word for word, _ in STATUSES.values())
    listed = ", ".join(f"{counts[word]} {word}" for word in words if counts[word])
    return [
        step for step in steps if id(step) in kept
    ], f"{count_of(len(others), 'more phase')}: {listed}"
