"""The names of entities of a story, as people write them."""

import re
from collections import defaultdict
from collections.abc import Iterable

from tasklore.contracts.analysis.stories import Entity
from tasklore.contracts.faults import nearest

_ARTICLE = re.compile(r"^the\s+", re.IGNORECASE)


class Names:
    """The names of *entities*; capitals and runs of blanks do not count.

    A whole name comes before another one, and both before the first or last name of a character that is unique.
    """

    def __init__(self, entities: Iterable[Entity]) -> None:
        known = list(entities)
        self._owners: dict[str, str] = {}
        spelled: dict[str, str] = {}
        levels = (
            [(one.name, _ARTICLE.sub("", one.name)) for one in known],
            [one.aliases for one in known],
            [(parts[0], parts[-1]) if one.kind == "character" and len(parts := one.name.split()) > 1 else ()
             for one in known],
        )  # fmt: skip
        for level in levels:
            claims: dict[str, set[str]] = defaultdict(set)
            for entity, handles in zip(known, level, strict=True):
                for handle in handles:
                    claims[fold(handle)].add(entity.name)
                    spelled.setdefault(fold(handle), handle)
            unique = {
                handle: names.pop()
                for handle, names in claims.items()
                if len(names) == 1
            }
            self._owners = unique | self._owners
        self._spelled = [spelled[handle] for handle in self._owners]

    def whole(self, name: str) -> str | None:
        """Return the whole name of the entity called *name*, None for no entity or for several."""
        return self._owners.get(fold(name))

    def nearest(self, name: str) -> str:
        """Return "; did you mean 'x'?" for the name that is most alike, "" when none is."""
        return nearest(name, self._spelled)


def fold(name: str) -> str:
    """Return *name* so that two spellings of it are one."""
    return " ".join(name.split()).casefold()
