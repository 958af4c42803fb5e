"""Names as a story's files declare them: who is called what, and where a text names whom.

A first or last name stands for its owner as long as no other entity shares it. Form alone: what a pronoun means, and
who is present, only a model can tell.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache

from contracts.analysis.stories import Entity, EntityKind
from workers.agents.story.prose import words

#: Casts whose names are kept: those of the stories at hand, and parts of them; a task asks for the same some ten times.
_KEPT = 64
#: First or last words of names that are no names themselves.
_TITLES = frozenset(
    """mr mrs ms miss dr doctor sir lady lord captain old young little big the aunt uncle father mother sister brother
    grandma grandpa professor king queen prince princess saint sergeant officer inspector jr sr von van de la el
    """.split()  # noqa: SIM905 - a list of one word a line says no more
)
_FOLDED = str.maketrans(
    {
        **dict.fromkeys('\u2018\u2019\u201a\u201b\u2032\u02bc`\u00b4"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb', "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015", "-"),
    }
)


@dataclass(frozen=True)
class _Called:
    """Who is called what, by folded name, and what finds those names in a text."""

    owners: Mapping[str, str]
    loose: frozenset[str]

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        return _pattern(self.owners, self.loose)


class Handles:
    """The names by which a text may call the entities of a story."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        self._called = _called(tuple((one.name, one.kind, one.aliases) for one in entities))

    def find(self, text: str) -> list[str]:
        """Return the full name of each naming in *text*, in order, the longest name where several begin."""
        owners, pattern = self._called.owners, self._called.pattern
        found = (owners.get(fold(one[0])) for one in pattern.finditer(text)) if pattern else ()
        # A letter may be found as another one's and yet be none of a name: the dotless i.
        return [name for name in found if name is not None]

    def count(self, text: str) -> Counter[str]:
        """Return how often *text* names each entity, in the order of first appearance."""
        return Counter(self.find(text))

    def owner(self, said: str) -> str | None:
        """Return the full name of whoever is called *said* and nothing else; None for nobody, or for several."""
        return self._called.owners.get(fold(said).strip(" '.,"))


def fold(text: str) -> str:
    """Return *text* as names are compared: small letters, single blanks, and one kind of quotes and dashes."""
    return " ".join(text.translate(_FOLDED).casefold().split())


@lru_cache(_KEPT)
def _called(entities: tuple[tuple[str, EntityKind, tuple[str, ...]], ...]) -> _Called:
    known = [Entity(name=name, kind=kind, aliases=aliases) for name, kind, aliases in entities]
    return _Called(_owners(known), frozenset(one.name for one in known if one.kind != "character"))


def _owners(entities: Sequence[Entity]) -> dict[str, str]:
    """Return who is called what; full names before aliases, and those before parts of names, which must be unique."""
    owners: dict[str, str] = {}
    for handles in (_full_names, _aliases, _parts):
        claims: dict[str, set[str]] = {}
        for entity in entities:
            for handle in handles(entity):
                claims.setdefault(fold(handle), set()).add(entity.name)
        owners |= {key: next(iter(names)) for key, names in claims.items() if len(names) == 1 and key not in owners}
    return owners


def _full_names(entity: Entity) -> Iterator[str]:
    yield entity.name
    bare = re.sub(r"^the\s+", "", entity.name, flags=re.IGNORECASE)
    if bare:
        yield bare


def _aliases(entity: Entity) -> Iterator[str]:
    yield from entity.aliases


def _parts(entity: Entity) -> Iterator[str]:
    """Yield first and last name of a character, where they are names and no title."""
    parts = words(entity.name)
    if entity.kind == "character" and len(parts) > 1:
        for part in (parts[0], parts[-1]):
            if part[0].isupper() and len(part) > 1 and part.casefold() not in _TITLES:
                yield part


def _pattern(owners: Mapping[str, str], loose: AbstractSet[str]) -> re.Pattern[str] | None:
    """Return what finds the handles of *owners*.

    Those of *loose* names are found in any letters. A character's must begin with a capital, unless it is a phrase:
    "will" is not Will.
    """
    spelled: dict[str, list[str]] = {}
    for handle in sorted(owners, key=len, reverse=True):
        is_free = owners[handle] in loose or " " in handle or not handle[0].isalpha()
        shape = f"(?i:{_shape(handle)})"
        spelled.setdefault(handle[:1], []).append(shape if is_free else f"(?=[^\\Wa-z_]){shape}")
    # By their first sign: a large story has a thousand names, and few of them begin like a word.
    groups = (f"(?i:(?={_shape(first)}))(?:{'|'.join(shapes)})" for first, shapes in spelled.items())
    return re.compile(rf"(?<!\w)(?:{'|'.join(groups)})(?!\w)") if spelled else None


def _shape(said: str) -> str:
    return re.escape(said).replace(r"\ ", r"\s+").replace("'", "['\u2019]").replace(r"\-", "[-\u2010-\u2015]")
