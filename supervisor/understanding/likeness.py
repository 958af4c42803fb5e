"""How like an utterance is to the examples of each task: words, pairs of words and pieces of words, weighed by rarity.

What each feature counts for each task is learned from the examples: they are to come out as 1 for their own task and
as 0 for the others (least mean squares). A word that no example has makes an utterance less like all of them, so that
what no task is for stays below `ENOUGH`. Numbers count as one word: which number it is says nothing about the task.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from supervisor.understanding.utterance import STOP

#: What a task says in more examples is read no further: learning is bounded, whatever a card holds.
MOST_EXAMPLES = 200
#: Words of an utterance that are looked at.
_MOST_WORDS = 64
#: What features count beside a word.
_PAIR, _PIECE = 0.5, 0.25
_PIECES = (3, 4)
#: How many examples a feature counts for that none of them has.
_UNKNOWN = 0.5
#: Examples beside the known ones, of which some say a usual word: with few cards, nothing else tells that it is usual.
_OTHERS, _USUAL = 6.0, 3.0
#: How far an example moves what its features count, how often all are gone through, and for how many in all.
_STEP, _PASSES, _MOST_STEPS = 0.5, 6, 1_000
#: By how much less like it is with no word in common that says something.
_NOTHING_SAID = 0.9
_EMPTY = STOP | {"0"}
#: The likeness from which on an utterance is of a task.
ENOUGH = 0.295


class Likeness:
    """The tasks that have examples, by their places in a catalogue; each example is the stems of its words."""

    def __init__(self, tasks: Mapping[int, Sequence[Sequence[str]]]) -> None:
        owners: dict[tuple[str, ...], set[int]] = defaultdict(set)
        for place, examples in tasks.items():
            for stems in examples:
                owners[tuple(stems)].add(place)
        self._size = len(owners)
        read = [(places, _features(stems)) for stems, places in owners.items()]
        self._holding = Counter(feature for _, features in read for feature in features)
        #: What each feature counts, by task.
        self._counts: dict[str, dict[int, float]] = defaultdict(dict)
        units = [(places, self._unit(features)) for places, features in read]
        for _ in range(max(1, min(_PASSES, _MOST_STEPS // (self._size or 1)))):
            for places, unit in units:
                for place, likeness in {**dict.fromkeys(places, 0.0), **self._weigh(unit)}.items():
                    step = _STEP * ((place in places) - likeness)
                    if place in places or likeness > 0:
                        for feature, weight in unit.items():
                            counts = self._counts[feature]
                            counts[place] = counts.get(place, 0.0) + step * weight

    def _unit(self, features: Mapping[str, float]) -> dict[str, float]:
        weighed = {feature: weight * self._rarity(feature) for feature, weight in features.items()}
        length = math.sqrt(math.fsum(weight * weight for weight in weighed.values())) or 1.0
        return {feature: weight / length for feature, weight in weighed.items()}

    def _rarity(self, feature: str) -> float:
        usual = _USUAL if feature in STOP else 0.0
        rare = (self._size + _OTHERS) / ((self._holding[feature] or _UNKNOWN) + usual)
        return math.sqrt(math.sqrt(math.log(1 + rare)))

    def _weigh(self, unit: Mapping[str, float]) -> dict[int, float]:
        found: dict[int, float] = defaultdict(float)
        for feature, weight in unit.items():
            for place, count in self._counts.get(feature, {}).items():
                found[place] += weight * count
        return found

    def of(self, stems: Sequence[str]) -> dict[int, float]:
        """Return how like *stems* is to each task, 1 for just enough; nothing for a value by itself, as "42k" is."""
        stems = stems[:_MOST_WORDS]
        if "0" in stems and _EMPTY.issuperset(stems):
            return {}
        said = {place for stem in stems if stem not in _EMPTY for place in self._counts.get(stem, ())}
        return {
            place: likeness * (1 if place in said else _NOTHING_SAID) / ENOUGH
            for place, likeness in self._weigh(self._unit(_features(stems))).items()
            if likeness > 0
        }


def _features(stems: Sequence[str]) -> dict[str, float]:
    return dict(_counted(["0" if stem[0].isdigit() else stem for stem in stems]))


def _counted(stems: Sequence[str]) -> Iterator[tuple[str, float]]:
    for first, second in zip(["^", *stems], [*stems, "$"], strict=True):
        yield f"{first} {second}", _PAIR
    for stem in stems:
        yield stem, 1.0
        if stem not in STOP:
            bounded = f"<{stem}>"
            for size in _PIECES:
                for start in range(len(bounded) - size + 1):
                    yield f"~{bounded[start : start + size]}", _PIECE
