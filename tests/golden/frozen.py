"""Golden files: what each door showed when it was last looked at, and how a difference from that is told.

`make generated` writes them anew. Each difference that git then shows is explained in
docs/reference/changes-0.3.md, in the same commit.
"""

import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
#: The HTTP status of a fault of ours.
_FAULT = 500
_CURE = (
    "run `make generated`, look at what git shows, and explain each "
    "difference in docs/reference/changes-0.3.md"
)


def as_text(value: Any) -> str:
    """Return *value* as a golden file holds it: JSON with sorted keys, a value a line."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read(name: str) -> Any:
    """Return what the golden file *name* holds."""
    return json.loads((FOLDER / name).read_text("utf-8"))


def write(name: str, value: Any) -> None:
    """Put *value* into the golden file *name*.

    Raises:
        ValueError: a door answered with a fault of ours, which nobody promises.
    """
    if faults := [*_find_faults(value, name)]:
        raise ValueError(f"nothing is written: status 500 at {'; '.join(faults)}")
    path = FOLDER / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(as_text(value), "utf-8")


def _find_faults(value: Any, place: str) -> Iterator[str]:
    """Yield the place of each answer in *value* that says that something is wrong with us."""
    if isinstance(value, dict):
        if value.get("status") == _FAULT:
            yield place
        for key, inner in value.items():
            yield from _find_faults(inner, f"{place} {key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _find_faults(inner, f"{place} {number}")


def demand_frozen(shown: Any, frozen: Any) -> None:
    """Return when *shown* is what is *frozen*; else say how it differs, and what to do."""
    difference = difflib.unified_diff(
        as_text(frozen).splitlines(),
        as_text(shown).splitlines(),
        fromfile="was",
        tofile="is",
        lineterm="",
    )
    told = "\n".join(difference)
    assert not told, f"{_CURE}\n{told}"
