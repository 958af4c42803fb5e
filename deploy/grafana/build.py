"""`python -m deploy.grafana.build [--check]`: write the dashboards as Grafana reads them, every query parsed first.

Runs where `requirements/monitoring.txt` is installed, and needs nothing else. With `--check` nothing is written: it
ends with 1 and names the file when one differs from what would be.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import promql_parser
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana.boards import BOARDS
from deploy.grafana.panels import Board

FOLDER = Path(__file__).with_name("dashboards")
#: What Grafana puts in the place of its variables, as far as a parser needs it.
_STANDING_FOR = {"$__rate_interval": "5m", "$agent": "BudgetTrackerAgent"}


def text_of(board: Board) -> str:
    """Return *board* as a file.

    Raises:
        ValueError: a query is none.
    """
    for expr in _queries(board):
        try:
            promql_parser.parse(_filled(expr))
        except ValueError as error:
            msg = f"{board.title}: {expr!r} is no query: {error}"
            raise ValueError(msg) from error
    return json.dumps(board.build().build(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write, or check, every dashboard."""
    parser = argparse.ArgumentParser(prog="python -m deploy.grafana.build", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and end with 1 when something differs")
    is_check = parser.parse_args(arguments).check
    texts = {FOLDER / f"{board.uid}.json": text_of(board) for board in BOARDS}
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    strangers = sorted(set(FOLDER.glob("*.json")) - set(texts))
    for path in stale if not is_check else ():
        path.write_text(texts[path], encoding="utf-8")
    for path in [*stale, *strangers] if is_check else strangers:
        sys.stdout.write(f"{path.name} is not what the code builds; run python -m deploy.grafana.build\n")
    return 1 if strangers or (is_check and stale) else 0


def _queries(board: Board) -> Iterator[str]:
    for _, panels in board.rows:
        for panel in panels:
            yield from (query.expr for query in panel.queries)


def _filled(expr: str) -> str:
    for variable, value in _STANDING_FOR.items():
        expr = expr.replace(variable, value)
    return expr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
