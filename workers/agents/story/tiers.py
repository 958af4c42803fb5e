"""Who matters for the next response, and how much of them: whole files, condensed ones, or names alone.

Tiers are relevance. How long a file is only decides between two that matter equally: the shorter one comes first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from contracts.stories import Entity
from memory.rendering.tokens import counter
from workers.agents.story.names import Names, counts_of

#: Names of each tier: files that are given whole, condensed ones, and names of those whom the first know.
MOST_WHOLE, MOST_CONDENSED, MOST_NAMED = 3, 6, 3


@dataclass(frozen=True, slots=True)
class Tiers:
    """Entities by tier, the most relevant first; `others` counts those in none."""

    whole: tuple[Entity, ...] = ()
    condensed: tuple[Entity, ...] = ()
    named: tuple[Entity, ...] = ()
    others: int = 0

    @property
    def last_names(self) -> tuple[str, ...]:
        """The third tier as the document has it: names, and how many others there are."""
        rest = (f"[{self.others} other{'s' if self.others > 1 else ''}]",) if self.others else ()
        return (*(one.name for one in self.named), *rest)


def tiers_of(
    text: str, entities: Sequence[Entity], focus: Iterable[Entity] = (), relevant: Iterable[Entity] = ()
) -> Tiers:
    """Return the tiers of the response *text*.

    Without *focus*, the characters whom the text names most often are in it. *relevant* come before the others that
    are named; nobody who is named is left out for them.
    """
    mentioned = [one for one in _ordered(entities, counts_of(text, entities)) if _has_file(one)]
    characters = [one for one in mentioned if one.kind == "character"]
    whole = _once(focus)[:MOST_WHOLE] or tuple(characters[:MOST_WHOLE])
    condensed = _once((*relevant, *mentioned), whole)[:MOST_CONDENSED]
    near = Counter(naming.name for one in whole for naming in Names(entities).find(one.text))
    named = _once(_ordered(entities, near), (*whole, *condensed))[:MOST_NAMED]
    return Tiers(whole, condensed, named, len(entities) - len(whole) - len(condensed) - len(named))


def file_tokens(entity: Entity) -> int:
    """Return how many tokens its file would take in a prompt."""
    return entity.tokens or counter()(entity.text)


def _ordered(entities: Sequence[Entity], counts: Mapping[str, int]) -> list[Entity]:
    """Return those that are named at all: characters first, then whoever is named most often."""

    def rank(one: Entity) -> tuple[bool, int, int, str]:
        return one.kind != "character", -counts[one.name], file_tokens(one), one.name

    return sorted((one for one in entities if counts.get(one.name)), key=rank)


def _once(entities: Iterable[Entity], without: Iterable[Entity] = ()) -> tuple[Entity, ...]:
    """Return each of *entities* once, by name, and none of *without*."""
    names = {one.name for one in without}
    return tuple({one.name: one for one in entities if one.name not in names}.values())


def _has_file(entity: Entity) -> bool:
    return bool(entity.file or entity.text)
