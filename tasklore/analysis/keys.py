"""The keys of the analysis document as tables: `python -m tasklore.analysis.keys docs/reference/analysis.md`."""

import inspect
import sys
from pathlib import Path

from contracts.analysis.document import AnalysisDocument
from tasklore.analysis.shapes import describe, models_of

#: The marks before and after the tables on the page.
BEGIN, END = "<!-- keys: made from the models -->\n", "<!-- end of keys -->"


def tables() -> str:
    """Return a table for each part of the document, behind the docstring of its model."""
    lines = []
    for model in models_of(AnalysisDocument):
        lines += [f"### {model.__name__}\n", f"{inspect.getdoc(model)}\n"]
        rows = [
            f"| `{model.key_of(name)}` | `{name}` | {describe(field.annotation)} |"
            for name, field in model.model_fields.items()
        ]
        lines += ["| key | name in Python | what |", "|---|---|---|", *rows, ""] if rows else []
    return "\n".join(lines)


def with_tables(page: str) -> str:
    """Return *page* with the tables as they are now."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(with_tables(file.read_text("utf-8")), "utf-8")
