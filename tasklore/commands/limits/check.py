"""The limits of a file, checked without a server."""

from pathlib import Path

from tasklore.commands.render.screen import printable
from tasklore.commands.render.words import count_of
from tasklore.memory.budgets.store import read_limits_file


def print_check(path: Path) -> None:
    """Print how many limits are in the file at *path*.

    Raises:
        InvalidInput: it cannot be read, or a field does not fit; names the file, the limit and the field.
    """
    count = count_of(len(read_limits_file(path).limits), "limit")
    print(f"{printable(path.name)}: {count}, nothing is wrong.")
