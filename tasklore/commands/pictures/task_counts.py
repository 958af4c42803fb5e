"""How tasks stand, in sentences: those that are open, what they wait for, and those that failed in the last hour."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.pictures import tasks
from tasklore.commands.render.screen import printable
from tasklore.commands.render.words import age, count_of, one_line
from tasklore.contracts.admission.wait_words import spell_wait

#: Characters of what tasks wait for; `--json` has all.
_WIDTH = 160


def draw(view: Mapping[str, Any]) -> str:
    """Return the sentences, and the table of the last that failed."""
    return "\n".join(_lines(view))


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    yield _spell_open(view)
    for one in view["waits"]:
        sentence = spell_wait(one["kind"], one["text"], one["said"], None)
        if one["tasks"] != 1:
            sentence = sentence.replace("waits", "wait", 1)
        yield "  " + one_line(f"{one['tasks']:,} {sentence}", _WIDTH)
    failed = f"{view['failed']:,} or more" if view["is_cut"] else f"{view['failed']:,}"
    yield f"{failed if view['failed'] else 'None'} failed in the last hour."
    if view["failures"]:
        yield ""
        yield tasks.draw({"tasks": view["failures"]})


def _spell_open(view: Mapping[str, Any]) -> str:
    """Return how many are open, since when, and their states."""
    if not view["open"]:
        return "No task is open."
    oldest = view["oldest_ms"]
    since = "" if oldest is None else f", the oldest for {age(oldest)}"
    verb = "is" if view["open"] == 1 else "are"
    told = f"{count_of(view['open'], 'task')} {verb} open{since}"
    states = ", ".join(
        f"{number:,} {printable(state)}" for state, number in view["states"].items()
    )
    if not states:
        return f"{told}."
    seen = view["looked_at"]
    of = f". Of the newest {seen:,}" if seen < view["open"] else ""
    return f"{told}{of}: {states}."
