"""The words for states of tasks, and for the memory's part in them: the same in a list, in a trace, and over HTTP."""

from tasklore.commands.render.screen import printable

_STYLES = {
    "accepted": "dim",
    "running": "cyan",
    **dict.fromkeys(("waiting", "cancelling", "expired", "cancelled"), "yellow"),
    "completed": "green",
    "failed": "red",
    "rejected": "red",
}
#: The states of a task without a report.
OPEN_STATES = ("accepted", "running", "waiting", "cancelling")
#: The memory's part in a result.
RECALLED = {
    "hit": "cache hit",
    "near": "cache hit of a similar question",
    "joined": "shared another run",
    "miss": "cache miss",
    "refreshed": "cache refreshed",
    "bypassed": "cache bypassed",
    "unavailable": "cache unavailable",
}


def style_of(state: str) -> tuple[str, str]:
    """Return the word for *state*, and its style on a terminal."""
    return printable(state), _STYLES.get(state, "dim")
