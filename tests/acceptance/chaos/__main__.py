"""Break everything on purpose: `python -m tests.acceptance.chaos [--only storm,healing] [--seeds N] [--tasks N]`.

Prints a table with a row for every promise; the exit status is 1 when one of them was broken.
"""

import argparse
import importlib
import sys
import time
from collections.abc import Awaitable, Callable, Sequence

import uvloop
from rich.console import Console

from tests.acceptance.chaos.table import Row, show

Profile = Callable[[argparse.Namespace], Awaitable[list[Row]]]


def _profile(module: str) -> Profile:
    """Return the `run` of a module beside this one, imported when it is called: profiles need different things."""

    async def run(options: argparse.Namespace) -> list[Row]:
        rows: list[Row] = await importlib.import_module(f"{__package__}.{module}").run(options)
        return rows

    return run


#: What can be run, in the order of the table; each is `async def run(options) -> list[Row]` in a module of its name.
PROFILES: dict[str, Profile] = {
    name: _profile(name) for name in ("storm", "healing", "poison", "held", "rolling", "redrive", "lasting", "cluster")
}


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what was asked for: `only` (names of profiles), `seeds`, `tasks` and `first_seed`.

    `seeds` and `tasks` are None when not given: each profile has numbers of its own.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.chaos", description="Break everything.")
    parser.add_argument("--only", type=_names, default=tuple(PROFILES), help=f"profiles out of {', '.join(PROFILES)}")
    parser.add_argument("--seeds", type=int, default=None, help="how many storms, each with another seed")
    parser.add_argument("--tasks", type=int, default=None, help="tasks in each storm")
    parser.add_argument("--first-seed", type=int, default=1, help="the seed of the first storm")
    return parser.parse_args(arguments)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in PROFILES]
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown) or text!r} is no profile; take {', '.join(PROFILES)}")
    return names


async def run_profiles(options: argparse.Namespace) -> list[Row]:
    """Run what was asked for, one after another, and return all rows."""
    rows: list[Row] = []
    for name in options.only:
        rows += await PROFILES[name](options)
    return rows


def main() -> None:
    """Run, print, and say by the exit status whether every promise was kept."""
    options = read_options()
    started = time.monotonic()
    rows = uvloop.run(run_profiles(options))
    # A log has no width of its own.
    console = Console() if sys.stdout.isatty() else Console(width=120)
    show(rows, f"{len(rows)} promises, {time.monotonic() - started:.0f} s", console)
    sys.exit(0 if rows and all(row.passed for row in rows) else 1)


if __name__ == "__main__":
    main()
