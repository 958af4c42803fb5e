"""Let memory workers be stormed: `python -m tests.acceptance.memory_storm [--only deaths] [--short] [--sabotage DEED]`.

Prints a table with a row for every promise; the exit status is 1 when one of them was broken. With `--sabotage` every
worker breaks the rules on purpose, and the status is 1 unless that was found out.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop

from tests.acceptance.chaos.table import Row, finish, names_out_of
from tests.acceptance.memory_storm import deaths, replays, writers
from tests.acceptance.memory_storm.stage import stage

STORMS = ("writers", "deaths", "replays")
#: What workers may do wrong, see `sabotage`: the verdict has to find it.
DEEDS = ("careless",)


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what was asked for: `only` (names of storms), `short`, `sabotage`, and `seed`, that of the kills."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.acceptance.memory_storm", description=__doc__
    )
    parser.add_argument(
        "--only",
        type=names_out_of(STORMS),
        default=STORMS,
        help=f"storms out of {', '.join(STORMS)}",
    )
    parser.add_argument("--short", action="store_true", help="as short as in the tests")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the kills")
    parser.add_argument(
        "--sabotage", choices=DEEDS, default="", help="what workers do wrong"
    )
    return parser.parse_args(arguments)


async def run_storms(options: argparse.Namespace, folder: Path) -> list[Row]:
    """Run what was asked for, one after another, with data below *folder*, and return all rows."""
    rows: list[Row] = []
    for name in options.only:
        async with stage(folder / name, options.sabotage) as on:
            if name == "writers":
                rows += await writers.run(
                    on, writers.SHORT if options.short else writers.LONG
                )
            elif name == "deaths":
                rows += await deaths.run(
                    on, deaths.SHORT if options.short else deaths.LONG, options.seed
                )
            else:
                rows += await replays.run(
                    on, replays.SHORT if options.short else replays.LONG
                )
    return rows


def main() -> None:
    """Run, print, and say by the exit status whether every promise was kept."""
    options = read_options()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="memory-storm-") as folder:
        rows = uvloop.run(run_storms(options, Path(folder)))
    finish(
        rows,
        f"{len(rows)} promises, {time.monotonic() - started:.0f} s",
        is_sabotaged=bool(options.sabotage),
    )


if __name__ == "__main__":
    main()
