"""The options of the program: read, and refused in one line when they make no sense."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from examples.coin_world.telling import plain
from examples.coin_world.world import LARGEST, MOST_AGENTS, Plan, names
from tasklore.contracts.errors import InvalidInput

_ABOUT = """A flat world with coins in it, and agents that walk, collect, and tell one another what they see.

It is shown on a page of this machine, and goes on until Ctrl-C. The system that `tasklore up` or the environment names
is asked for decisions; when there is none, one is started, and ends with the world."""

_EXAMPLES = """examples:
  python -m examples.coin_world                                      watch six agents
  python -m examples.coin_world --no-page --record run.jsonl         run to the end, and keep it
  python -m examples.coin_world --replay run.jsonl                   watch that again; nobody is asked"""

#: What a world begins with unless told otherwise; a replay has its own.
_BEGINS = {"agents": 6, "coins": 40, "size": 20, "seed": 7}


@dataclass(frozen=True, slots=True)
class Options:
    """What is to be run, and how it is shown; `plan` is unused when there is something to replay."""

    plan: Plan
    steps: int
    port: int
    record: Path | None
    replay: Path | None
    has_page: bool
    #: Address of the HTTP API that is asked; None asks over NATS.
    api: str | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say in one line what cannot be read, and end."""
        self.refuse(f"{message}; see `{self.prog} --help`")

    def refuse(self, message: str) -> NoReturn:
        """Say in one line what cannot be, and end."""
        self.exit(2, f"coin world: {plain(message)}\n")


def read_options(words: list[str] | None = None) -> Options:
    """Return the options in *words*, None is the command line; wrong ones end the program with code 2."""
    parser = _parser()
    told = parser.parse_args(words)
    if told.steps < 0:
        parser.refuse(f"--steps is {told.steps}; it is 0 or more")
    if not 0 <= told.port <= 65_535:
        parser.refuse(f"--port is {told.port}; it goes from 0 to 65535")
    if told.replay is not None:
        for name in (*_BEGINS, "record", "api"):
            if getattr(told, name) is not None:
                parser.refuse(
                    f"--{name} does not go with --replay, which shows a run as it was; leave one out"
                )
    if told.api is not None and not told.api.startswith(("http://", "https://")):
        parser.refuse(f"--api is {told.api}; it begins with http:// or https://")
    begins = {
        name: usual if getattr(told, name) is None else getattr(told, name)
        for name, usual in _BEGINS.items()
    }
    if not 1 <= begins["agents"] <= MOST_AGENTS:
        parser.refuse(
            f"--agents is {begins['agents']}; it goes from 1 to {MOST_AGENTS}"
        )
    try:
        plan = Plan(
            begins["seed"], names(begins["agents"]), begins["size"], begins["coins"]
        )
    except InvalidInput as error:
        parser.refuse(f"--{error}")
    return Options(
        plan,
        told.steps,
        told.port,
        told.record,
        told.replay,
        not told.no_page,
        told.api,
    )


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m examples.coin_world",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [options]",
        allow_abbrev=False,
    )
    begins = parser.add_argument_group("how it begins")
    begins.add_argument(
        "--agents",
        type=int,
        metavar="N",
        help=f"1 to {MOST_AGENTS} of them [default: 6]",
    )
    begins.add_argument(
        "--coins", type=int, metavar="N", help="coins that lie about [default: 40]"
    )
    begins.add_argument(
        "--size",
        type=int,
        metavar="N",
        help=f"edge of the world, 1 to {LARGEST} [default: 20]",
    )
    begins.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="the same seed, the same world [default: 7]",
    )
    goes = parser.add_argument_group("how it goes")
    goes.add_argument(
        "--steps",
        type=int,
        default=0,
        metavar="N",
        help="0: until all coins are gone [default: 0]",
    )
    goes.add_argument(
        "--port",
        type=int,
        default=0,
        metavar="N",
        help="port of the page; 0: any [default: 0]",
    )
    goes.add_argument(
        "--no-page",
        action="store_true",
        help="print what happens, and end with the world",
    )
    goes.add_argument(
        "--api",
        metavar="URL",
        help="ask a supervisor over HTTP; its key in COIN_WORLD_API_KEY",
    )
    kept = parser.add_argument_group("the same again")
    kept.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="keep the run; replaces an older recording",
    )
    kept.add_argument(
        "--replay",
        type=Path,
        metavar="FILE",
        help="show what was kept; nobody is asked",
    )
    return parser
