"""Running a module that another author wrote, and saying which of their lines raised."""

import inspect
import linecache
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tasklore.contracts.errors import ConfigurationError

_WORKERS = Path(__file__).resolve().parent
_VALUES = _WORKERS.parent / "contracts"
_STORES = (_WORKERS.parent / "memory", _WORKERS.parent / "runtime")
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_INSTALLED = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib")})
#: Folders in which every library lies, so that being beside it says nothing.
_SHARED = frozenset(Path(folder).resolve() for folder in _INSTALLED)

#: Frames that are named of one error: the last ones.
_MOST_FRAMES = 4
#: Characters that are named of one line: generated code may have any number.
_LINE_WIDTH = 200


@contextmanager
def running_user_code(what: str, module_path: str = "") -> Iterator[None]:
    """Turn whatever importing *what* raises into an error that shows the line of the user's own that raised it.

    Raises:
        ModuleNotFoundError: as it is, when *module_path* or a package on the way to it is not there.
        ConfigurationError: everything else.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        if absent and f"{module_path}.".startswith(f"{absent}."):
            raise
        raise ConfigurationError(f"{what} cannot be loaded: {_told(error)}") from error


def origin_of(module: ModuleType) -> str:
    """Return where *module* comes from: its file, else its name."""
    return getattr(module, "__file__", None) or module.__name__


def is_raised_by(error: BaseException, function: Callable[..., Any]) -> bool:
    """Return whether *error* comes from the code of the task *function*, not from a library or a store below it.

    What the standard library, `contracts` or `workers` raise is the doing of whoever called them.
    """
    file = Path(function.__code__.co_filename).resolve()
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        name = frame.f_code.co_filename
        path = Path(name).resolve()
        if any(map(path.is_relative_to, _STORES)):
            return False
        if any(map(path.is_relative_to, _INSTALLED)) and not _is_machinery(path):
            # An agent that was itself installed as a library has its code there.
            is_package = (
                any(map(file.is_relative_to, _INSTALLED)) and file.parent not in _SHARED
            )
            return path == file or (is_package and path.is_relative_to(file.parent))
        is_called = _is_machinery(path)
        if not (
            is_called
            or name.startswith("<frozen")
            or any(map(path.is_relative_to, _STANDARD))
        ):
            return True
    return False


def _is_machinery(path: Path) -> bool:
    """Return whether *path* is of the machinery of an agent; agents in `workers/agents` are users like others."""
    ours = any(map(path.is_relative_to, (_VALUES, _WORKERS, _STORES[1])))
    return ours and not path.is_relative_to(_WORKERS / "agents")


def _told(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f'{error.filename}, line {error.lineno}: "{(error.text or "").strip()}" - SyntaxError: {error.msg}'
    said = f"{type(error).__name__}: {error}"
    own = _own_frames(error)
    return (
        f'{own[-1].filename}, line {own[-1].lineno}: "{own[-1].line}" - {said}'
        if own
        else said
    )


def describe_place(error: BaseException, function: Callable[..., Any]) -> str:
    """Return the author's own lines that *error* passed, outermost first; where none, that of the task *function*.

    One stands as 'trip.py, line 14, in share_trip: "return 1 / 0"', with the whole path. An error that stands for
    another one, such as for an exit, passed the lines of that one.
    """
    lines = [
        f'{one.filename}, line {one.lineno}, in {one.name}: "{(one.line or "")[:_LINE_WIDTH]}"'
        for one in _own_frames(error)[-_MOST_FRAMES:] or [_definition_of(function)]
    ]
    return " > ".join(lines).encode(errors="replace").decode()


def _definition_of(function: Callable[..., Any]) -> traceback.FrameSummary:
    """Return the line on which *function* is defined, below its decorators."""
    code = inspect.unwrap(function).__code__
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    below = (
        number
        for number, line in enumerate(lines)
        if line.lstrip().startswith(("def ", "async def "))
    )
    return traceback.FrameSummary(
        code.co_filename, code.co_firstlineno + next(below, 0), code.co_name
    )


def _own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Return the frames of *error*, or of the first one of a group, that are the author's own; else of its cause."""
    inner: BaseException = error
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    found = _own_frames_of(inner)
    if found or inner.__cause__ is None:
        return found
    # The cause of an error of ours may as well lie in a library that we use.
    return [
        frame
        for frame in _own_frames(inner.__cause__)
        if not any(map(Path(frame.filename).is_relative_to, _INSTALLED))
    ]


def _own_frames_of(inner: BaseException) -> list[traceback.FrameSummary]:
    foreign = [
        frame
        for frame in traceback.extract_tb(inner.__traceback__)
        if _is_foreign(frame.filename)
    ]
    # An agent that was installed as a library has no lines elsewhere.
    return [
        frame
        for frame in foreign
        if not Path(frame.filename).is_relative_to(_INSTALLED[0])
    ] or foreign


def _is_foreign(filename: str) -> bool:
    """Return whether a frame is neither of the standard library nor of the machinery here."""
    if filename.startswith("<"):
        return False
    path = Path(filename).resolve()
    if any(path.is_relative_to(folder) for folder in _INSTALLED):
        return not _is_machinery(path)
    return not _is_machinery(path) and not any(
        path.is_relative_to(folder) for folder in _STANDARD
    )
