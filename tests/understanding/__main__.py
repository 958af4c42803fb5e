"""The figures of the corpora: `python -m tests.understanding [FILE] [--all]`, with what was not right below."""

import argparse
import asyncio
import sys
from pathlib import Path

from tasklore.supervisor.understanding.rules import RuleInterpreter
from tests.understanding.agents import EVERYDAY
from tests.understanding.scoring import conversations, judge_corpus, summary_of
from tests.understanding.strangers import STRANGERS

parser = argparse.ArgumentParser(
    prog="python -m tests.understanding", description=__doc__
)
parser.add_argument(
    "file", type=Path, nargs="?", default=Path(__file__).parent / "development.json"
)
parser.add_argument("--quiet", action="store_true", help="the figures alone")
options = parser.parse_args()
cast = STRANGERS if options.file.name.startswith("strangers") else EVERYDAY
judged = asyncio.run(judge_corpus(conversations(options.file), RuleInterpreter(), cast))
if not options.quiet:
    for one in judged:
        if one.verdict != "right":
            sys.stdout.write(f"{one}\n")
sys.stdout.write(f"{summary_of(judged)}\n")
