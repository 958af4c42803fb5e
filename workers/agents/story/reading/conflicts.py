"""Two claims about one subject that cannot both hold, by rules: whoever tells something new is held to what was told.

Precise before complete: what may have changed in the story's course, what is only hinted at, and what two texts leave
open is no conflict.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from workers.agents.story.reading.claims import Claim, Slot
from workers.agents.story.reading.lexicon import lexicon
from workers.agents.story.reading.predicates import deny

#: Severities from the least on.
SEVERITIES = ("minor", "major", "critical")
#: Characters between two places that were told of together.
_BESIDE = 30
#: Kinds of what is said of two: its keys name both.
OF_KIN = frozenset({"relation", "role"})


@dataclass(frozen=True, slots=True)
class Clash:
    """A claim and an older one that it speaks against; `kind` is the slot in which they differ."""

    old: Claim
    new: Claim
    kind: str
    severity: str


@dataclass(frozen=True)
class World:
    """What was told before: `claims` in the order in which they are named as sources, and the `texts` they stand in.

    `characters` are names of persons: they stand in many places, buildings in one.
    """

    claims: Sequence[Claim]
    texts: Sequence[str] = ()
    characters: frozenset[str] = frozenset()
    by_subject: Mapping[str, Sequence[Claim]] = field(init=False)
    #: By their keys, whoever they are told of: who is whose kin is said of either.
    of_kin: Mapping[str, Sequence[tuple[Claim, Slot]]] = field(init=False)

    def __post_init__(self) -> None:
        by_name = sorted(self.claims, key=lambda claim: claim.subject)
        grouped = {name: tuple(found) for name, found in groupby(by_name, lambda claim: claim.subject)}
        object.__setattr__(self, "by_subject", grouped)
        of_kin: dict[str, list[tuple[Claim, Slot]]] = {}
        for claim in self.claims:
            for slot in claim.slots:
                if slot.kind in OF_KIN:
                    of_kin.setdefault(f"{slot.kind} {slot.key}", []).append((claim, slot))
        object.__setattr__(self, "of_kin", of_kin)

    def said_together(self, one: Iterable[str], other: Iterable[str]) -> bool:
        """Tell whether a word of *one* was told beside a word of *other* before: one place may be in the other."""
        first, second = ([word.casefold() for word in words] for words in (one, other))
        return any(_near(line, here, there) for line in self.texts for here in first for there in second)


def _near(line: str, one: str, other: str) -> bool:
    """Tell whether both stand in *line*, as close to each other as in "the cottage at the foot of the tower"."""
    places = [[found.span() for found in re.finditer(re.escape(word), line)] for word in (one, other)]
    return any(max(a, c) - min(b, d) <= _BESIDE for a, b in places[0] for c, d in places[1])


def clashes_of(new: Sequence[Claim], world: World) -> list[Clash]:
    """Return every clash of *new* with what was told before, at most one for a sentence and a subject."""
    found: list[Clash] = []
    told: set[tuple[str, str]] = set()
    for claim in new:
        if claim.tells_change or (claim.subject, claim.text) in told:
            continue
        clash = next(_clashes(claim, world), None)
        if clash is not None:
            told.add((claim.subject, claim.text))
            found.append(clash)
    return found


def _clashes(new: Claim, world: World) -> Iterator[Clash]:
    olds = [old for old in world.by_subject.get(new.subject, ()) if not old.is_past and old.text != new.text]
    for slot in new.slots:
        pairs = [(old, other) for old in olds for other in old.slots if _are_comparable(other, slot)]
        if slot.kind in OF_KIN:
            told = world.of_kin.get(f"{slot.kind} {slot.key}", ())
            pairs = [(old, other) for old, other in told if not old.is_past and old.text != new.text]
        # Whatever was told already cannot speak against it, even when something else was told, too.
        if any(_agrees(other, slot) for _, other in pairs):
            continue
        for old, other in pairs:
            if _COMPARED[slot.kind](other, slot, world, new.subject):
                yield Clash(old, new, slot.kind, _lowered(_severity(slot), new.is_spoken or old.is_spoken))
    for old in olds:
        if old.predicate and new.predicate and not old.tells_change and deny(old.predicate, new.predicate):
            yield Clash(old, new, "negation", _lowered(lexicon().severity["negation"], new.is_spoken or old.is_spoken))


def _severity(slot: Slot) -> str:
    known = lexicon()
    if slot.kind == "state":
        return known.states[slot.key.split()[0]].severity
    return known.severity[slot.kind]


def _lowered(severity: str, is_spoken: bool) -> str:
    """Return *severity*, one less for what somebody says: people err and lie."""
    return SEVERITIES[max(0, SEVERITIES.index(severity) - is_spoken)]


def _are_comparable(old: Slot, new: Slot) -> bool:
    if (old.kind, old.key) != (new.kind, new.key):
        return False
    return old.kind not in {"count", "feature"} or bool(old.nouns & new.nouns)


def _agrees(old: Slot, new: Slot) -> bool:
    if new.kind == "place":
        return bool(old.values & new.values) or (not new.values and new.nouns <= old.nouns)
    return bool(old.values & new.values)


def _differ(old: Slot, new: Slot, _world: World, _subject: str) -> bool:
    return old.values.isdisjoint(new.values)


def _counts_differ(old: Slot, new: Slot, _world: World, _subject: str) -> bool:
    known, nouns = lexicon().nouns, old.nouns & new.nouns
    # "They were six men": what somebody or something is, it is as a whole.
    if nouns & known["enduring"] or (old.is_anchored and new.is_anchored):
        return True
    return len((old.context & new.context) - nouns) > bool(nouns & known["passing"])


def _states_differ(_old: Slot, new: Slot, _world: World, _subject: str) -> bool:
    natural = lexicon().states[new.key.split()[0]].natural
    return natural not in new.values or new.is_anchored


def _features_differ(old: Slot, new: Slot, _world: World, _subject: str) -> bool:
    nouns = old.nouns & new.nouns
    shared = (old.context & new.context) - nouns
    if new.key in {"side", "compass", "rank"}:
        return bool(shared)
    return bool(nouns & lexicon().nouns["enduring"]) or bool(shared)


def _share_objects(old: Slot, new: Slot, _world: World, _subject: str) -> bool:
    return bool(old.context & new.context)


def _days_differ(old: Slot, new: Slot, _world: World, _subject: str) -> bool:
    return len(old.context & new.context) > 1


def _places_differ(old: Slot, new: Slot, world: World, subject: str) -> bool:
    if new.key == "stand" and subject in world.characters:
        return False
    if not new.values or not (old.values or old.nouns):
        return False
    # A house is in its street, and the street in its town.
    return not world.said_together(new.values, old.values or old.nouns)


_COMPARED: Mapping[str, Callable[[Slot, Slot, World, str], bool]] = {
    "age": _differ,
    "count": _counts_differ,
    "state": _states_differ,
    "feature": _features_differ,
    "taste": _share_objects,
    "place": _places_differ,
    "days": _days_differ,
    "trade": _differ,
    "relation": _differ,
    "role": _differ,
}
