"""Kill under pipelines: `python -m tests.acceptance.pipeline_storm [--runs 100] [--seed N] [--sabotage DEED]`.

Prints a table with the promise; the exit status is 1 when it was broken. With `--sabotage` every supervisor breaks the
rules on purpose, and the status is 1 unless that was found out.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop

from tests.acceptance.chaos.table import finish
from tests.acceptance.pipeline_storm import storm


def read_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what was asked for: `runs`, `seed` and `sabotage`, "" for none."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.acceptance.pipeline_storm", description=__doc__
    )
    parser.add_argument(
        "--runs", type=int, default=100, help="how many runs, each with one blow"
    )
    parser.add_argument("--seed", type=int, default=1, help="the seed of the moments")
    parser.add_argument(
        "--sabotage",
        choices=storm.DEEDS,
        default="",
        help="what supervisors do wrong",
    )
    return parser.parse_args(arguments)


def main() -> None:
    """Run, print, and say by the exit status whether the promise was kept."""
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="pipeline-storm-") as folder:
        rows = uvloop.run(
            storm.run(
                options.runs,
                options.seed,
                Path(folder),
                deed=options.sabotage,
                tells=True,
            )
        )
    caption = f"seed {options.seed}" + (
        f", sabotage {options.sabotage}" if options.sabotage else ""
    )
    finish(rows, caption, is_sabotaged=bool(options.sabotage))


if __name__ == "__main__":
    main()
