"""How storing a draft can end."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Committed:
    """All is stored: `revisions` of the documents written, by resource id, and the ids of the plans.

    `known` are plans that were stored before, under the same ids: an answer was lost, and nothing was written again.
    """

    revisions: Mapping[str, int]
    plans: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stale:
    """Nothing is stored, since the draft rests on outdated documents: make a new one and decide again.

    `moved` are documents that another writer changed meanwhile. `lease` is True when the claim is another's by now:
    the rows are theirs. `known` are plans of the draft that are applied already, to be left out (`Draft(known=...)`).
    """

    moved: tuple[str, ...] = ()
    lease: bool = False
    known: tuple[str, ...] = ()
