"""The `tasklore` command: parse, run, and end with the right code; `python -m tasklore` is the same."""

import errno
import os
import sys
from pathlib import Path

from typer import Abort, TyperException

from contracts.errors import TaskloreError
from runtime.origin import demand_own_packages
from tasklore.app import app
from tasklore.exits import OK, SIGNALLED, USAGE, Interrupted, code_of, expected_in
from tasklore.render.screen import complain, print_json

#: Groups of commands whose refusals are JSON, too, for who asked for it.
_TOLD_AS_JSON = frozenset({"analysis", "pipeline", "project", "session", "story"})
#: The answer was there, but not to be written: as when a task failed.
UNWRITABLE = 1


def main() -> None:
    """Run the command line and exit; expected errors are one line on stderr, never a traceback."""
    if sys.stdout is None:
        # Started with a closed output: what would be printed goes nowhere, the exit code still tells.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - it stays open to the end
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has heard enough.
        code = _silence_output(SIGNALLED + 13)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
            raise
        complain(f"the output cannot be written: {error.strerror}")
        code = _silence_output(UNWRITABLE)
    sys.exit(code)


def _silence_output(code: int) -> int:
    """Let nothing more be written to stdout, so that the interpreter does not complain while it closes it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _run() -> int:
    try:
        demand_own_packages()
        return app(prog_name="tasklore", standalone_mode=False) or OK
    except TyperException as error:
        context = getattr(error, "ctx", None)
        where = f"; see `{context.command_path} --help`" if context is not None else ""
        _tell(f"{error.format_message().rstrip('.')}{where}")
        return USAGE
    except Interrupted as wish:
        return SIGNALLED + wish.signal_number
    except (KeyboardInterrupt, Abort):
        return SIGNALLED + 2
    except (TaskloreError, BaseExceptionGroup) as error:
        expected = expected_in(error)
        if expected is None:
            raise
        _tell(str(expected))
        return code_of(expected)


def _tell(problem: str) -> None:
    """Write *problem* to stderr, and to stdout as well where a program asked for JSON."""
    if sys.argv[1:2] and sys.argv[1] in _TOLD_AS_JSON and "--json" in sys.argv:
        print_json({"problems": [problem]})
    complain(problem)


if __name__ == "__main__":
    main()
