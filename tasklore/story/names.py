"""Who is meant by a name in a story's files: the entity called so, or also so, or alone with that part of a name."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from contracts.analysis.stories import Entity
from supervisor.pipelines.declaration.problems import nearest
from tasklore.story.entities import EntityFile
from tasklore.story.problems import Findings

_ARTICLE = re.compile(r"^the\s+", re.IGNORECASE)


class Names:
    """The names of *entities*; capitals and runs of blanks do not count.

    A whole name comes before another one, and both before the first or last name of a character that nobody shares.
    """

    def __init__(self, entities: Iterable[Entity]) -> None:
        known = list(entities)
        self._owners: dict[str, str] = {}
        spelled: dict[str, str] = {}
        for handles in (_whole_names, _other_names, _parts):
            claims: dict[str, set[str]] = defaultdict(set)
            for entity in known:
                for handle in handles(entity):
                    claims[folded(handle)].add(entity.name)
                    spelled.setdefault(folded(handle), handle)
            alone = {handle: names.pop() for handle, names in claims.items() if len(names) == 1}
            self._owners = alone | self._owners
        self._shown = [spelled[handle] for handle in self._owners]

    def whole(self, said: str) -> str | None:
        """Return the whole name of who is meant by *said*, None when that is nobody, or not clear."""
        return self._owners.get(folded(said))

    def nearest(self, said: str) -> str:
        """Return "; did you mean 'x'?" for the name that is most alike, "" when none is."""
        return nearest(said, self._shown)


def _whole_names(entity: Entity) -> Iterator[str]:
    yield entity.name
    yield _ARTICLE.sub("", entity.name)


def _other_names(entity: Entity) -> Iterator[str]:
    yield from entity.aliases


def _parts(entity: Entity) -> Iterator[str]:
    words = entity.name.split()
    if entity.kind == "character" and len(words) > 1:
        yield words[0]
        yield words[-1]


def folded(name: str) -> str:
    """Return *name* so that two spellings of it are one."""
    return " ".join(name.split()).casefold()


def refuse_shared_names(files: Sequence[EntityFile], findings: Findings) -> None:
    """Note every name, or other name, that two of *files* claim: nobody could say who is meant."""
    owners: dict[str, EntityFile] = {}
    for one in files:
        other = owners.setdefault(folded(one.entity.name), one)
        if other is not one:
            text = f"{one.entity.name!r} has a file already, {other.entity.file}; put both into one, or rename one"
            findings.refuse(one.entity.file, one.name_line, text)
    for one in files:
        for alias in one.entity.aliases:
            other = owners.setdefault(folded(alias), one)
            if folded(other.entity.name) != folded(one.entity.name):
                text = f"{alias!r} also means {other.entity.name!r} ({other.entity.file}); let it mean one of them"
                findings.refuse(one.entity.file, one.aliases_line, text)
