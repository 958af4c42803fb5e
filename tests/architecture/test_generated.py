"""Each file that is made from code is as the code makes it."""

import difflib
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.generated import FILES

#: Lines of a difference that are shown.
_SHOWN = 60


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_a_generated_file_is_as_the_code_makes_it(path: Path) -> None:
    """Where a door shows something else than it did, a row of docs/reference/changes-0.3.md explains it."""
    held = path.read_text("utf-8") if path.is_file() else ""
    made = FILES[path]()
    difference = difflib.unified_diff(
        held.splitlines(), made.splitlines(), "file", "made", lineterm=""
    )
    shown = "\n".join(list(difference)[:_SHOWN])
    assert held == made, f"{_name(path)} is stale: run `make generated`\n{shown}"
