"""Problems of a declaration: one sentence for a person, and the place in the declaration that it is about."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tasklore.contracts.faults import nearest

#: A path into a declaration, such as `("phases", 2, "reads", 0)`, `("inputs", "folder")` or `("result",)`.
Place = tuple[str | int, ...]

#: Problems of one declaration that are looked for: each name that is not known is compared with all that are.
MOST_PROBLEMS = 200


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing to mend: *text* says how, without the place; *place* () is the pipeline as a whole."""

    place: Place
    text: str


def place_in_words(place: Place, declaration: Mapping[str, Any]) -> str:
    """Return "phase analysis: " for a place in a phase, by its name in *declaration* or else its number, or ""."""
    if len(place) < 2 or place[0] != "phases" or not isinstance(place[1], int):
        return ""
    phases = declaration.get("phases")
    phase = (
        phases[place[1]]
        if isinstance(phases, list | tuple) and place[1] < len(phases)
        else None
    )
    name = (
        phase.get("name")
        if isinstance(phase, Mapping)
        else getattr(phase, "name", None)
    )
    return f"phase {name}: " if isinstance(name, str) else f"phase {place[1] + 1}: "


def suggest(name: str, known: Iterable[str], there: str) -> str:
    """Return the nearest of *known* to *name* as a question, else all of them after *there* ("it has")."""
    names = list(known)
    return nearest(name, names) or f"; {there} {quote_names(names)}"


def quote_names(names: Iterable[str], most: int = 12) -> str:
    """Return *names* as a person reads them, quoted, the first *most* of them; "nothing" for none."""
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return f"{', '.join(quoted[:most])}{more}" if quoted else "nothing"
