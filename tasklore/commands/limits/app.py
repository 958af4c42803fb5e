"""The command on limits that is local: a file of them is checked."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Typer

from tasklore.commands.options import SETTLED, Command, example, show_help_alone

app = Typer(epilog=example("tasklore limits check limits.toml"), **SETTLED)


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """See and change limits on models and on runs; every change holds within a second, and nothing is started again."""
    show_help_alone(context)


@app.command(cls=Command, epilog=example("tasklore limits check limits.toml"))
def check(
    file: Annotated[Path, Argument(metavar="FILE", help="Limits in TOML.")],
) -> None:
    """Check a file of limits, without a server; ends with 2 when a field is wrong."""
    from tasklore.commands.limits.check import print_check

    print_check(file)
