"""Who and what a text names: characters in its scene, those that are only spoken of, and places.

Rules read names, not pronouns: somebody is in the scene who is named in what is told or is spoken to. Named in speech
alone, as an owner ("Tom's boat") or after words such as "about", somebody is only mentioned. A first or last name
stands for its owner as long as no other entity shares it.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from operator import attrgetter
from pathlib import Path

from contracts.stories import Entity, EntityKind
from workers.agents.story.reading.prose import Quotation, folded, quotations, words

_CUES = Path(__file__).with_name("casting.toml")
_OWNED = re.compile(r"['\u2019](?:s\b|(?=\s))")
_CLAUSE = re.compile(r"[.!?\u2026]\s")
#: What stands between what one does and what another says.
_SIGNS = re.compile(r"[.!?\u2026;:\u2014]")
#: Characters of a clause before a name in it.
_CLAUSE_LENGTH = 300
#: Characters before a name in which the words stand that tell how it is meant.
_NEAR = 40
#: Casts whose names are kept: those of the stories at hand, and parts of them; a task asks for the same some ten times.
_KEPT = 64
_VOCATIVE_ENDS = ",.!?\u2026\u2014-"


@dataclass(frozen=True, slots=True)
class Naming:
    """One place of a text where an entity is named, `text[start:end]`; `name` is its full name."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Cast:
    """Full names, each in the order of first appearance; `counts` says how often each entity is named, of any kind."""

    in_scene: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    locations: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Called:
    """Who is called what, by folded name, and what finds those names in a text."""

    owners: Mapping[str, str]
    loose: frozenset[str]

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        return _pattern(self.owners, self.loose)


@lru_cache(_KEPT)
def _called(entities: tuple[tuple[str, EntityKind, tuple[str, ...]], ...]) -> _Called:
    known = [Entity(name=name, kind=kind, aliases=aliases) for name, kind, aliases in entities]
    return _Called(_owners(known), frozenset(one.name for one in known if one.kind != "character"))


class Handles:
    """The names by which a text may call the entities of a story."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        self._called = _called(tuple((one.name, one.kind, one.aliases) for one in entities))

    def find(self, text: str) -> list[Naming]:
        """Return every naming in *text*, in order, the longest name where several begin."""
        owners, pattern = self._called.owners, self._called.pattern
        found = [(owners.get(folded(one[0])), one) for one in pattern.finditer(text)] if pattern else []
        # A letter may be found as another one's and yet be none of a name: the dotless i.
        return [Naming(name, one.start(), one.end()) for name, one in found if name is not None]

    def owner(self, said: str) -> str | None:
        """Return the full name of whoever is called *said* and nothing else; None for nobody, or for several."""
        return self._called.owners.get(folded(said).strip(" '.,"))


def cast_of(text: str, entities: Sequence[Entity]) -> Cast:
    """Return who is in the scene of *text*, who is only mentioned, and which places are named."""
    kinds = {entity.name: entity.kind for entity in entities}
    namings, spoken = Handles(entities).find(text), quotations(text)
    counts: dict[str, int] = {}
    present: set[str] = set()
    for naming in namings:
        counts[naming.name] = counts.get(naming.name, 0) + 1
        if naming.name not in present and _is_present(text, naming, spoken):
            present.add(naming.name)
    characters = [name for name in counts if kinds[name] == "character"]
    return Cast(
        tuple(name for name in characters if name in present),
        tuple(name for name in characters if name not in present),
        tuple(name for name in counts if kinds[name] == "location"),
        counts,
    )


def named(said: str, entities: Sequence[Entity]) -> str | None:
    """Return the full name of the entity that *said* means: a full name, an alias, or a first or last name of its own.

    None when nobody is called so, or more than one is.
    """
    return Handles(entities).owner(said)


def speaker(quotation: Quotation, entities: Sequence[Entity]) -> str | None:
    """Return who says it, when what is told around it names a character: right behind it, else nearest before it.

    Whoever is spoken to does not: Tobias says nothing in `"Wait," she told Tobias.`
    """
    handles = Handles([entity for entity in entities if entity.kind == "character"])
    behind = _CLAUSE.split(quotation.after)[0]
    replied = [naming for naming in handles.find(behind) if not is_spoken_to(behind, naming)]
    spoken_to = {naming.name for naming in handles.find(behind)} - {naming.name for naming in replied}
    told = [one for one in handles.find(quotation.before) if not is_spoken_to(quotation.before, one)]
    candidates = [[one for one in told if one.name not in spoken_to][-1:]]
    # "..., said Mara" beats whoever came before; "... Mara laughed." may be somebody else's answer.
    candidates.insert(0 if behind[:1].islower() else 1, replied[:1])
    return next((found[0].name for found in candidates if found), None)


def is_spoken_to(told: str, naming: Naming) -> bool:
    """Tell whether somebody else speaks to whom *naming* names in *told*: "she told Tobias", "said Mara to Tobias"."""
    clause = _SIGNS.split(told[max(0, naming.start - _CLAUSE_LENGTH) : naming.start])[-1]
    before = [word for word in words(clause) if word.casefold() not in _cues("leads") and not word.endswith("ly")]
    lows = [word.casefold() for word in before]
    if lows[-1:] == ["to"]:
        return not _cues("says").isdisjoint(lows)
    # "asked Mara" is her own word, "she asked Mara" is somebody else's.
    speaks = any(word in _cues("subjects") or before[at][0].isupper() for at, word in enumerate(lows[:-1]))
    return speaks and not _cues("addresses").isdisjoint(lows[-1:])


def _is_present(text: str, naming: Naming, spoken: Sequence[Quotation]) -> bool:
    """Tell whether a character who is named so is there."""
    last = bisect_right(spoken, naming.start, key=attrgetter("start")) - 1
    around = spoken[last] if last >= 0 else None
    if around is not None and naming.start < around.end:
        return _is_called(text, naming, around)
    if _OWNED.match(text, naming.end):
        return False
    before = [word.casefold() for word in words(text[max(0, naming.start - _NEAR) : naming.start])[-2:]]
    return _cues("apart").isdisjoint({*before[-1:], " ".join(before)})


def _is_called(text: str, naming: Naming, around: Quotation) -> bool:
    """Tell whether somebody is addressed, at the beginning or the end of what is said: "Tom, wait." "Wait, Tom."."""
    before, after = text[around.start + 1 : naming.start], text[naming.end : around.end - 1].strip()
    begins = not before.strip() and after[:1] in _VOCATIVE_ENDS
    ends = before.rstrip().endswith(",") and not after.strip(_VOCATIVE_ENDS)
    return begins or ends


def _owners(entities: Sequence[Entity]) -> dict[str, str]:
    """Return who is called what; full names before aliases, and those before parts of names, which must be unique."""
    owners: dict[str, str] = {}
    for handles in (_full_names, _aliases, _parts):
        claims: dict[str, set[str]] = {}
        for entity in entities:
            for handle in handles(entity):
                claims.setdefault(folded(handle), set()).add(entity.name)
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
            if part[0].isupper() and len(part) > 1 and part.casefold() not in _cues("titles"):
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


@cache
def _cues(name: str) -> frozenset[str]:
    return frozenset(str(word) for word in tomllib.loads(_CUES.read_text("utf-8"))[name])
