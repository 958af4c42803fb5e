"""`tasklore stories example`: copy the story that comes with Tasklore."""

import shutil
from pathlib import Path

from tasklore.commands.render.screen import printable, say
from tasklore.commands.render.words import count_of
from tasklore.contracts.errors import InvalidInput

_INSTALLED = Path(__file__).with_name("lighthouse")
#: The folder of the story: in a wheel beside this module, in a checkout among the examples.
FOLDER = (
    _INSTALLED
    if _INSTALLED.is_dir()
    else Path(__file__).parents[3] / "examples" / "lighthouse"
)


def copy_into(folder: Path) -> None:
    """Copy the example story into *folder*, which is made when it does not exist, and print the next commands.

    Raises:
        InvalidInput: *folder* is not empty, or it cannot be written to.
    """
    folder = folder.expanduser()
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidInput(
                f"DIR {str(folder)!r} is not empty; name a folder that is new or empty"
            )
        shutil.copytree(
            FOLDER, folder, copy_function=shutil.copyfile, dirs_exist_ok=True
        )
    except (OSError, shutil.Error) as error:
        msg = (
            f"DIR {str(folder)!r} cannot be written to "
            f"({getattr(error, 'strerror', None) or error}); name another one"
        )
        raise InvalidInput(msg) from error
    shown = printable(str(folder))
    print(
        f"{count_of(sum(one.is_file() for one in FOLDER.rglob('*')), 'file')} in {shown}"
    )
    say(
        f"look it over with `tasklore stories check {shown}`, then `tasklore analyses run {shown} --all`"
    )
