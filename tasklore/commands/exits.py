"""How a command ends: exit codes, and one line on stderr that names the cure."""

from collections.abc import Mapping
from typing import Any

from tasklore.contracts.errors import (
    ConfigurationError,
    InvalidInput,
    TaskloreError,
    Unreachable,
)

#: It worked.
OK = 0
#: The task failed, or was not finished within `--wait`.
FAILED = 1
#: The command line, a file or a setting is unusable.
USAGE = 2
#: A server does not answer.
UNREACHABLE = 3
#: Nothing was done yet: the answer is a question back.
QUESTION = 4
#: Nothing was done: no agent does what was asked for.
UNABLE = 5
#: What a shell expects of a process that ended by a signal: this plus the signal's number.
SIGNALLED = 128


class Interrupted(Exception):  # a request, no error
    """This process was asked to end by the signal *signal_number*."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(f"ended by signal {signal_number}")
        self.signal_number = signal_number


class Aborted(TaskloreError):  # as the errors of contracts are named
    """A command refuses its work; *code* is the exit code, *body* the same for programs, where there is one."""

    def __init__(
        self, message: str, code: int = USAGE, body: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.refusal = body


def code_of(error: TaskloreError) -> int:
    """Return the exit code that *error* means."""
    if isinstance(error, Aborted):
        return error.code
    if isinstance(error, Unreachable):
        return UNREACHABLE
    return USAGE if isinstance(error, ConfigurationError | InvalidInput) else FAILED


def find_expected(error: BaseException) -> TaskloreError | None:
    """Return *error*, or the first of ours in a group of nothing but ours; None when something unforeseen is in it."""
    if isinstance(error, TaskloreError):
        return error
    if not isinstance(error, BaseExceptionGroup):
        return None
    found = [find_expected(one) for one in error.exceptions]
    return found[0] if all(found) else None
