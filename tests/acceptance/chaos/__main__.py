"""Break everything on purpose: `python -m tests.acceptance.chaos [--only storm,healing] [--tasks N] [--ledger 2]`.

Prints a table with a row for every promise; the exit status is 1 when one of them was broken.
"""

import argparse
import importlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import get_args

import uvloop

from tests.acceptance.chaos.table import Row, finish, names_out_of
from tests.acceptance.chaos.weather import LedgerUnderStorm

Profile = Callable[[argparse.Namespace], Awaitable[list[Row]]]


def _profile(module: str) -> Profile:
    """Return the `run` of a module beside this one, imported when it is called: profiles need different things."""

    async def run(options: argparse.Namespace) -> list[Row]:
        rows: list[Row] = await importlib.import_module(f"{__package__}.{module}").run(
            options
        )
        return rows

    return run


#: What can be run, in the order of the table; each is `async def run(options) -> list[Row]` in a module of its name.
PROFILES: dict[str, Profile] = {
    name: _profile(name)
    for name in ("storm", "healing", "poison", "held", "rolling", "cluster")
}


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what was asked for: `only` (names of profiles), `seeds`, `tasks`, `first_seed` and `ledger`.

    `seeds` and `tasks` are None when not given: each profile has numbers of its own.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.acceptance.chaos", description="Break everything."
    )
    parser.add_argument(
        "--only",
        type=names_out_of(tuple(PROFILES)),
        default=tuple(PROFILES),
        help=f"profiles out of {', '.join(PROFILES)}",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        default=None,
        help="how many storms, each with another seed",
    )
    parser.add_argument("--tasks", type=int, default=None, help="tasks in each storm")
    parser.add_argument(
        "--first-seed", type=int, default=1, help="the seed of the first storm"
    )
    parser.add_argument(
        "--ledger",
        choices=get_args(LedgerUnderStorm),
        default="1",
        help="layout of the ledger in a storm, or that it moves to layout 2 in it",
    )
    return parser.parse_args(arguments)


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
    finish(rows, f"{len(rows)} promises, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
