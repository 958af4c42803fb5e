"""What "remove all egg preferences" and "delete all my preferences" reach, and what they leave alone."""

from dataclasses import dataclass
from functools import cache

from contracts.messages import Fact
from workers.agents.memory_worker.cues import cue_words
from workers.agents.memory_worker.wording import content_of, is_same, words_of
from workers.statements.datafiles import read_tables, strings_at
from workers.statements.statement import Statement
from workers.statements.taxonomy import Taxonomy

#: What people call their preferences: no name, no routine and nothing about health is one.
PREFERENCES = frozenset(("like", "dislike", "diet", "avoid", "style", "interest"))
#: Relations whose items are things that belong under a name; the others are kept as sentences.
_OF_THINGS = frozenset(("like", "dislike", "avoid", "interest"))


@dataclass(frozen=True, slots=True)
class Reach:
    """What a statement that clears may delete: items of *relations*, None for any; guarded ones if it names them."""

    relations: frozenset[str] | None
    guarded: bool

    def covers(self, relation: str | None, *, is_guarded: bool) -> bool:
        """Tell whether it reaches an item of *relation*, None where no kind says what it is."""
        return (self.guarded or not is_guarded) and (self.relations is None or relation in self.relations)


def reach_of(told: Statement, fact: Fact) -> Reach:
    """Return what *told*, of *fact*, reaches; who says it of no document means no health unless it is "everything".

    What was said counts, and not how it was put down: "my preferences" is less than "everything".
    """
    if told.relation is not None:
        return Reach(frozenset((told.relation,)), guarded=True)
    if told.tags:
        return Reach(None, guarded=True)
    said = words_of(fact.evidence or fact.text)
    if said & cue_words("preference"):
        return Reach(PREFERENCES, guarded=False)
    return Reach(None, guarded=not told.object and bool(said & cue_words("whole")))


def is_cleared(text: str, relation: str | None, about: str, taxonomy: Taxonomy) -> bool | None:
    """Say whether the item *text*, of *relation*, goes with all that is about *about*; None when it cannot be told.

    What merely has something of it in it stays, and so does what is known and could have no more of it than that.
    """
    if not about or is_same(text, about) or taxonomy.is_about(text, about):
        return True
    if taxonomy.is_a(text, about) is not None:
        return False
    if relation not in _OF_THINGS:
        return None if content_of(about) and content_of(about) <= content_of(text) else False
    return False if taxonomy.is_known(text) and _is_mere_ingredient(about, taxonomy) else None


def _is_mere_ingredient(about: str, taxonomy: Taxonomy) -> bool:
    """Tell whether things that have *about* in them are usually called after something else."""
    return any(taxonomy.is_a(about, base) for base in _incidental())


@cache
def _incidental() -> tuple[str, ...]:
    return tuple(base for table in read_tables().values() for base in strings_at(table, "mains", "incidental"))
