"""Words of 0.2 that are called otherwise now: the old one names the new one, and does nothing."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tasklore.contracts.errors import InvalidInput

#: The first words of commands that there were, and what is typed now.
RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "analysis": "analyses",
        "dlq": "dead-letters",
        "ltm": "results",
        "pipeline": "pipelines",
        "project": "projects",
        "schedule": "schedules",
        "session": "sessions",
        "story": "stories",
    }
)


def demand_present(arguments: Sequence[str]) -> None:
    """Return when *arguments* call no command that has another name now.

    Raises:
        InvalidInput: they do; the message names the new words.
    """
    words = [one for one in arguments if not one.startswith("-")]
    for count in (2, 1):
        old = " ".join(words[:count])
        if len(words) >= count and old in RENAMED:
            raise InvalidInput(
                f"`tasklore {old}` is called `tasklore {RENAMED[old]}` now"
            )
