"""Names as a story's files declare them, and where a text mentions them.

A first or last name stands for its owner as long as no other entity shares it. Form alone: pronouns and presence are
left to a model.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

from tasklore.contracts.analysis.stories import Entity, EntityKind
from tasklore.workers.agents.story.prose import words

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
        **dict.fromkeys(
            '\u2018\u2019\u201a\u201b\u2032\u02bc`\u00b4"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb',
            "'",
        ),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015", "-"),
    }
)


@dataclass(frozen=True)
class _Index:
    """The owner of each folded name, and the pattern that finds those names in a text; None without any."""

    owners: Mapping[str, str]
    pattern: re.Pattern[str] | None


class Handles:
    """The names by which a text may call the entities of a story."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        self._index = _index(
            tuple((one.name, one.kind, one.aliases) for one in entities)
        )

    def find(self, text: str) -> list[str]:
        """Return the full name of each mention in *text*, in order, the longest name where several begin."""
        owners = self._index.owners
        pattern = self._index.pattern
        found = (
            (owners.get(fold(one[0])) for one in pattern.finditer(text))
            if pattern
            else ()
        )
        # A letter may be found as another one's and yet be none of a name: the dotless i.
        return [name for name in found if name is not None]

    def count(self, text: str) -> Counter[str]:
        """Return how often *text* names each entity, in the order of first appearance."""
        return Counter(self.find(text))

    def owner(self, name: str) -> str | None:
        """Return the full name of the entity called *name*; None for no entity, or for several."""
        return self._index.owners.get(fold(name).strip(" '.,"))


def fold(text: str) -> str:
    """Return *text* as names are compared: small letters, single blanks, and one kind of quotes and dashes."""
    return " ".join(text.translate(_FOLDED).casefold().split())


@lru_cache(_KEPT)
def _index(entities: tuple[tuple[str, EntityKind, tuple[str, ...]], ...]) -> _Index:
    """Index full names before aliases, and those before parts of names, which must be unique."""
    owners: dict[str, str] = {}
    levels = (
        [(name, _bare_name(name)) for name, _, _ in entities],
        [aliases for _, _, aliases in entities],
        [_parts(name) if kind == "character" else () for name, kind, _ in entities],
    )
    for level in levels:
        claims: dict[str, set[str]] = {}
        for (name, _, _), handles in zip(entities, level, strict=True):
            for handle in filter(None, handles):
                claims.setdefault(fold(handle), set()).add(name)
        owners |= {
            key: next(iter(names))
            for key, names in claims.items()
            if len(names) == 1 and key not in owners
        }
    return _Index(
        owners,
        _pattern(
            owners, frozenset(name for name, kind, _ in entities if kind != "character")
        ),
    )


def _bare_name(name: str) -> str:
    return re.sub(r"^the\s+", "", name, flags=re.IGNORECASE)


def _parts(name: str) -> list[str]:
    """Return first and last word of *name*, where they are names and no title."""
    parts = words(name)
    ends = (parts[0], parts[-1]) if len(parts) > 1 else ()
    return [
        part
        for part in ends
        if part[0].isupper() and len(part) > 1 and part.casefold() not in _TITLES
    ]


def _pattern(
    owners: Mapping[str, str], loose: AbstractSet[str]
) -> re.Pattern[str] | None:
    """Return a pattern that finds the handles of *owners*, None without any.

    Those of *loose* names are found in any letters. A character's must begin with a capital, unless it is a phrase:
    "will" is not Will.
    """
    spelled: dict[str, list[str]] = {}
    for handle in sorted(owners, key=len, reverse=True):
        is_free = owners[handle] in loose or " " in handle or not handle[0].isalpha()
        shape = f"(?i:{_shape(handle)})"
        spelled.setdefault(handle[:1], []).append(
            shape if is_free else f"(?=[^\\Wa-z_]){shape}"
        )
    # By their first sign: a large story has a thousand names, and few of them begin like a word.
    groups = (
        f"(?i:(?={_shape(first)}))(?:{'|'.join(shapes)})"
        for first, shapes in spelled.items()
    )
    return re.compile(rf"(?<!\w)(?:{'|'.join(groups)})(?!\w)") if spelled else None


def _shape(name: str) -> str:
    return (
        re.escape(name)
        .replace(r"\ ", r"\s+")
        .replace("'", "['\u2019]")
        .replace(r"\-", "[-\u2010-\u2015]")
    )
