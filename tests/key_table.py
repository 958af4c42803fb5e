"""The table of keys in the docstring of `tasklore.memory.keys`, row by row."""

import re
from dataclasses import dataclass

from tasklore.memory import keys


@dataclass(frozen=True, kw_only=True)
class KeyRow:
    """A row: the *keys* as they are spelled there, and the stores that forget what a user left in them.

    *type* is that of the first key, and those of others where they differ.
    """

    keys: tuple[str, ...]
    type: str
    time_to_live: str
    stores: tuple[str, ...]

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of its keys: the word behind `tl:`."""
        return frozenset(
            key.split(":")[1] for key in self.keys if key.startswith("tl:")
        )


#: What a row says where no store forgets: nothing of a user is there, or it ends by itself within days.
NOTHING, ITS_END = "-", "its end"


def read_rows() -> tuple[KeyRow, ...]:
    """Return every row."""
    rows = []
    for line in (keys.__doc__ or "").splitlines():
        if not line.startswith("| `tl:"):
            continue
        spelled, kind, time_to_live, forgotten, _ = (
            cell.strip() for cell in line.strip("|").split(" | ", 4)
        )
        rows.append(
            KeyRow(
                keys=tuple(re.findall(r"`([^`]+)`", spelled)),
                type=kind,
                time_to_live=time_to_live,
                stores=tuple(forgotten.split(", ")),
            )
        )
    return tuple(rows)
