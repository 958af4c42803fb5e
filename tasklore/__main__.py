"""The `tasklore` command: parse, run, and end with the right code; `python -m tasklore` is the same."""

import contextlib
import os
import sys

from typer import Abort, TyperException

from contracts.errors import TaskloreError
from runtime.origin import demand_own_packages
from tasklore.app import app
from tasklore.exits import OK, SIGNALLED, USAGE, Interrupted, code_of, expected_in
from tasklore.screen import complain


def main() -> None:
    """Run the command line and exit; expected errors are one line on stderr, never a traceback."""
    code = _run()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.exit(code)
    # Whoever read our output has heard enough; the interpreter must not complain while it closes stdout.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(SIGNALLED + 13)


def _run() -> int:
    try:
        demand_own_packages()
        return app(prog_name="tasklore", standalone_mode=False) or OK
    except TyperException as error:
        context = getattr(error, "ctx", None)
        where = f"; see `{context.command_path} --help`" if context is not None else ""
        complain(f"{error.format_message().rstrip('.')}{where}")
        return USAGE
    except Interrupted as wish:
        return SIGNALLED + wish.signal_number
    except (KeyboardInterrupt, Abort):
        return SIGNALLED + 2
    except (TaskloreError, BaseExceptionGroup) as error:
        expected = expected_in(error)
        if expected is None:
            raise
        complain(str(expected))
        return code_of(expected)


if __name__ == "__main__":
    main()
