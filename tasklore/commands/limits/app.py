"""The command on limits that is local: a file of them is checked."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Typer

from tasklore.commands.options import SETTLED, Command, example

app = Typer(epilog=example("tasklore limits check limits.toml"), **SETTLED)


@app.callback()
def front() -> None:
    """Stand beside the operations of the noun, whose sentence is in `tasklore.commands.app`."""


@app.command(cls=Command, epilog=example("tasklore limits check limits.toml"))
def check(
    file: Annotated[Path, Argument(metavar="FILE", help="Limits in TOML.")],
) -> None:
    """Check a file of limits, without a server; ends with 2 if a field is wrong."""
    from tasklore.commands.limits.check import print_check

    print_check(file)
