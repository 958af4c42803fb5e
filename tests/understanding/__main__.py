"""The figures of the corpora: `python -m tests.understanding [FILE] [--all]`, with what was not right below."""

import argparse
import asyncio
import sys
from pathlib import Path

from tasklore.supervisor.understanding.rules import RuleInterpreter
from tests.understanding.scoring import conversations, judge_corpus, summary_of

parser = argparse.ArgumentParser(
    prog="python -m tests.understanding", description=__doc__
)
parser.add_argument(
    "file", type=Path, nargs="?", default=Path(__file__).parent / "development.json"
)
parser.add_argument("--quiet", action="store_true", help="the figures alone")
options = parser.parse_args()
judged = asyncio.run(judge_corpus(conversations(options.file), RuleInterpreter()))
if not options.quiet:
    for one in judged:
        if one.verdict != "right":
            sys.stdout.write(f"{one}\n")
sys.stdout.write(f"{summary_of(judged)}\n")
