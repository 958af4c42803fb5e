"""The page of keys of an analysis: `python -m tasklore.commands.analyses.keys > docs/reference/analysis-keys.md`."""

import inspect

from tasklore.contracts.analysis.document import AnalysisDocument
from tasklore.supervisor.pipelines.analysis.shapes import describe, models_of

_HEAD = """# Keys of the analysis document

Every object of the document that an [analysis](analysis.md) leaves, with its short keys and their names in Python. Made
from the models by `make generated`.

"""


def page() -> str:
    """Return the page: a table for each part of the document, behind the docstring of its model."""
    lines = []
    for model in models_of(AnalysisDocument):
        lines += [f"## {model.__name__}\n", f"{inspect.getdoc(model)}\n"]
        rows = [
            f"| `{model.key_of(name)}` | `{name}` | {describe(field.annotation)} |"
            for name, field in model.model_fields.items()
        ]
        lines += (
            ["| key | name in Python | type |", "|---|---|---|", *rows, ""]
            if rows
            else []
        )
    return _HEAD + "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
