"""Numbers and texts as people read them: counts, durations, sizes, one line of a longer text."""

import time
from collections.abc import Sequence

from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.screen import printable


def count_of(count: int, noun: str, many: str | None = None) -> str:
    """Return *count* with its *noun*: "1 phase", "2 phases", "2 entries"; *many* for other words than nouns."""
    if count != 1:
        noun = many or (f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s")
    return f"{count:,} {noun}"


def join_names(names: Sequence[str], at_most: int = 5) -> str:
    """Return *names* joined by commas, those past *at_most* only counted."""
    rest = len(names) - at_most
    return ", ".join(names[:at_most]) + (f" and {rest} more" if rest > 0 else "")


def duration(milliseconds: int) -> str:
    """Return a duration that is precise enough to compare phases: "412 ms", "5.2 s", "2 min 05 s", "3 h 04 min"."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        # Rounded down: 59.99 s must not read as 60.0.
        return f"{milliseconds // 100 / 10:.1f} s"
    seconds = milliseconds // 1000
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def money(usd: float) -> str:
    """Return US dollars: "$20.00"; a small amount keeps two digits: "$0.50", "$0.0042", "$0.0000051"."""
    places = 2 if usd >= 1 or round(usd, 2) == usd else 4 if usd >= 0.001 else 7
    return f"${usd:,.{places}f}"


def age(since_ms: float) -> str:
    """Return how long ago *since_ms*, ms since 1970, is, in the largest unit that fits."""
    return read_aloud(max(0, time.time() * 1000 - since_ms))


def size(count: int) -> str:
    """Return a number of bytes: "812 B", "3.4 KiB", "1.2 MiB"."""
    if count < 1024:
        return f"{count} B"
    return (
        f"{count / 1024:.1f} KiB" if count < 1024**2 else f"{count / 1024**2:.1f} MiB"
    )


def one_line(text: str, width: int = 120) -> str:
    """Return *text* in one line of at most *width* characters, without what would steer a terminal."""
    line = " ".join(printable(text).split())
    return line if len(line) <= width else f"{line[: width - 3]}..."
