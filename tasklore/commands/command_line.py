"""One command from its arguments to its exit code: parse, run, and say in one line what went wrong."""

import errno
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tasklore.commands.exits import (
    OK,
    SIGNALLED,
    USAGE,
    Aborted,
    Interrupted,
    code_of,
    find_expected,
)
from tasklore.commands.extras import advice_for
from tasklore.commands.render.screen import print_error, print_json
from tasklore.contracts.errors import TaskloreError
from tasklore.runtime import departure

#: Groups of commands that print a refusal of their own as JSON too when `--json` is given.
_JSON_REFUSALS = frozenset({"analyses", "pipelines"})
#: The result is complete, but stdout does not take it: as when a task failed.
UNWRITABLE = 1


def run_command_line() -> int | None:
    """Parse `sys.argv` and run the command; return its exit code, None for 0."""
    from typer import Abort, TyperException

    from tasklore.commands.app import make_root
    from tasklore.commands.renamed import demand_present

    demand_present(sys.argv[1:])
    try:
        code: int | None = make_root()(prog_name="tasklore", standalone_mode=False)
    except TyperException as error:
        context = getattr(error, "ctx", None)
        where = f"; see `{context.command_path} --help`" if context is not None else ""
        _refuse(f"{error.format_message().rstrip('.')}{where}")
        return USAGE
    except Abort:
        raise KeyboardInterrupt from None
    return code


def finish(command: Callable[[], int | None]) -> None:
    """Run *command* and exit; an expected error is one line on stderr, never a traceback."""
    if sys.stdout is None:
        # Started with a closed output: what would be printed is dropped, the exit code remains.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - it stays open to the end
    try:
        code = _run(command)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _silence_output(SIGNALLED + 13)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
            raise
        print_error(f"the output cannot be written: {error.strerror}")
        code = _silence_output(UNWRITABLE)
    sys.exit(code)


def _silence_output(code: int) -> int:
    """Point stdout at nothing, so that the interpreter does not complain while it closes it; return *code*."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _run(command: Callable[[], int | None]) -> int:
    try:
        return command() or OK
    except Interrupted as end:
        return departure.status_of(end.signal_number, sys.argv[1:])
    except KeyboardInterrupt:
        return SIGNALLED + 2
    except (TaskloreError, ModuleNotFoundError, BaseExceptionGroup) as error:
        advice = advice_for(error)
        if advice is not None:
            _refuse(advice)
            return USAGE
        expected = find_expected(error)
        if expected is None:
            raise
        _refuse(
            str(expected), expected.refusal if isinstance(expected, Aborted) else None
        )
        return code_of(expected)


def _refuse(problem: str, body: Mapping[str, Any] | None = None) -> None:
    """Write *problem* to stderr, and where a program asked for JSON to stdout as well: *body*, as the API refused."""
    if "--json" in sys.argv:
        if body is not None:
            print_json(body)
        elif sys.argv[1] in _JSON_REFUSALS:
            print_json({"problems": [problem]})
    print_error(problem)
