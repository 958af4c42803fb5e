"""The `tasklore` command; `python -m tasklore` is the same."""

import sys
from collections.abc import Callable

from tasklore.runtime import departure


def main(command: Callable[[], int | None] | None = None) -> None:
    """Run *command*, or the one that `sys.argv` names, and exit; from the first line on a signal ends it."""
    departure.prepare(sys.argv[1:])
    from tasklore.commands.command_line import finish, run_command_line

    finish(command or run_command_line)


if __name__ == "__main__":
    main()
