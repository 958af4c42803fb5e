"""The keys of the analysis document as tables; `python -m tasklore.analysis.keys docs/analysis.md` puts them there."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from contracts.analysis.document import AnalysisDocument
from contracts.analysis.pieces import Piece
from tasklore.analysis.shapes import keys_of, models_of

#: What stands before and after the tables on the page.
BEGIN, END = "<!-- keys: made from the models -->\n", "<!-- end of keys -->"


def tables() -> str:
    """Return a table for each part of the document, behind what its model says of it."""
    return "\n".join(line for model in models_of(AnalysisDocument) for line in _table(model))


def with_tables(page: str) -> str:
    """Return *page* with the tables as they are now."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


def _table(model: type[Piece]) -> Iterator[str]:
    yield f"### {model.__name__}\n"
    yield f"{inspect.getdoc(model)}\n"
    if keys_of(model):
        yield "| key | name in Python | what |"
        yield "|---|---|---|"
        for key in keys_of(model):
            yield f"| `{key.short}` | `{key.long}` | {key.shape.shown} |"
        yield ""


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(with_tables(file.read_text("utf-8")), "utf-8")
