"""Whether an old fact still stands: it waited for a model, and what was said after it is done already.

The newest statement wins also when it left nothing in the documents that could tell: "not vegan any more" does not
come before a "vegan" that waited.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.messages import Fact
from workers.agents.memory_worker.case import Case
from workers.agents.memory_worker.clearing import reach_of
from workers.agents.memory_worker.grounds import grounds_of
from workers.agents.memory_worker.singles import replaces
from workers.agents.memory_worker.wording import is_same, topics_of
from workers.statements.reading import read_statements
from workers.statements.statement import Statement
from workers.statements.taxonomy import Taxonomy

_LIKED = frozenset(("like", "interest"))
_UNWANTED = frozenset(("dislike", "avoid"))


def superseding(case: Case, told: Sequence[Statement], taxonomy: Taxonomy) -> Fact | None:
    """Return the fact that was said after that of *case* and leaves nothing of it, None when it stands.

    *told* is what patterns read in the fact of *case*, which may be nothing.
    """
    fact = case.pending.fact
    for later in case.pending.later:
        if later.fact.inferred and not fact.inferred:
            continue
        newer = read_statements(later.fact.text, today=case.today)
        standing = _Standing(case, taxonomy, later.fact)
        if not told or not newer:
            is_over = standing.is_over_unread(newer, told)
        else:
            is_over = any(standing.is_over(one, other) for one in newer for other in told)
        if is_over:
            return later.fact
    return None


@dataclass(frozen=True, slots=True)
class _Standing:
    """An old fact, that of *case*, before a *later* one."""

    case: Case
    taxonomy: Taxonomy
    later: Fact

    def is_over(self, newer: Statement, older: Statement) -> bool:
        """Tell whether *newer* ends what *older* says."""
        if older.kind == "clears":
            # It is about what there was then, and leaves what was said since.
            return False
        if newer.kind == "clears":
            return older.kind == "tells" and self._is_cleared(newer, older)
        is_same_relation = newer.relation in (None, older.relation)
        if newer.kind == "retracts":
            is_for_any = is_same_relation or {newer.relation, older.relation} <= _LIKED
            return older.kind == "tells" and is_for_any and self._is_of(older.object, newer.object)
        if older.kind != "tells":
            return older.relation in (None, newer.relation) and self._is_of(newer.object, older.object)
        if newer.relation == "diet" and older.relation in _LIKED:
            return self.taxonomy.excludes(newer.object, older.object) is True
        if _is_contrary(newer.relation, older.relation):
            return is_same(newer.object, older.object)
        return is_same_relation and replaces(newer.object, older.object)

    def is_over_unread(self, newer: Sequence[Statement], told: Sequence[Statement]) -> bool:
        """Tell so where patterns read one of the two not at all: by what it takes back, and of what."""
        mine = self.case.pending.fact
        if any(one.kind == "clears" and not one.object for one in newer):
            return any(not one.tags or bool(set(one.tags) & set(mine.tags)) for one in newer)
        new, old = grounds_of(self.later, newer, self.taxonomy), grounds_of(mine, told, self.taxonomy)
        is_against = new.takes_back or (new.dislikes and old.likes) or (new.likes and old.dislikes)
        return is_against and bool(topics_of(self.later.text) & topics_of(mine.text))

    def _is_cleared(self, newer: Statement, older: Statement) -> bool:
        place = self.case.kinds.place_for(older.relation) if older.relation is not None else None
        is_guarded = place is not None and self.case.is_guarded(place.resource_id)
        tags = set(older.tags or self.case.pending.fact.tags)
        is_there = not newer.tags or bool(set(newer.tags) & tags)
        is_reached = reach_of(newer, self.later).covers(older.relation, is_guarded=is_guarded)
        return is_there and is_reached and (not newer.object or self._is_of(older.object, newer.object))

    def _is_of(self, thing: str, about: str) -> bool:
        return is_same(thing, about) or self.taxonomy.is_a(thing, about) is True


def _is_contrary(one: str | None, other: str | None) -> bool:
    return (one in _LIKED and other in _UNWANTED) or (one in _UNWANTED and other in _LIKED)
