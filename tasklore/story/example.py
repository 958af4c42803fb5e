"""`tasklore story example`: the story that comes with Tasklore, as a folder of one's own."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from contracts.errors import InvalidInput
from tasklore.pipeline.lines import counted
from tasklore.render.screen import printable, say


def copy_into(folder: Path) -> None:
    """Write the example story into *folder*, which is made when it is not there, and say what to do with it.

    Raises:
        InvalidInput: something is in *folder* already, or it cannot be written to.
    """
    folder = folder.expanduser()
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidInput(f"DIR {str(folder)!r} is not empty; name a folder that is new or empty")
        count = _copy(files("tasklore") / "example_story", folder)
    except OSError as error:
        msg = f"DIR {str(folder)!r} cannot be written to ({error.strerror or error}); name another one"
        raise InvalidInput(msg) from error
    shown = printable(str(folder))
    print(f"{counted(count, 'file')} in {shown}")
    say(f"look it over with `tasklore story check {shown}`, then `tasklore analysis run {shown} --all`")


def _copy(source: Traversable, target: Path) -> int:
    """Copy the folder *source* to *target*, and return how many files that were; files of Python are no part of it."""
    target.mkdir(parents=True, exist_ok=True)
    count = 0
    for one in sorted(source.iterdir(), key=lambda one: one.name):
        if one.is_dir():
            count += _copy(one, target / one.name) if not one.name.startswith(("_", ".")) else 0
        elif not one.name.endswith((".py", ".pyc")):
            (target / one.name).write_bytes(one.read_bytes())
            count += 1
    return count
