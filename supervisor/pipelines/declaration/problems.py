"""What is wrong with a pipeline: one sentence for a person, and the place in the declaration that it is about."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

#: A path into a declaration, such as `("phases", 2, "reads", 0)`, `("inputs", "folder")` or `("result",)`.
Place = tuple[str | int, ...]


#: Problems of one declaration that are looked for: each name that is not known is compared with all that are.
MOST_PROBLEMS = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend: *text* says what and how, without saying where; *place* () is the pipeline as a whole."""

    place: Place
    text: str


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the known name that is most alike, "" when none is."""
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def known_ones(name: str, known: Iterable[str], there: str) -> str:
    """Return what could have been meant by *name*: the nearest of *known*, else all after *there* ("it has")."""
    names = list(known)
    return nearest(name, names) or f"; {there} {listed(names)}"


def listed(names: Iterable[str], most: int = 12) -> str:
    """Return *names* as a person reads them, quoted, the first *most* of them; "nothing" for none."""
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return f"{', '.join(quoted[:most])}{more}" if quoted else "nothing"
