"""How like an utterance is to the examples of each task: words, pairs of words and pieces of words, weighed by rarity.

A word that no example has makes an utterance less like all of them, so that what no task is for stays below
`ENOUGH`. Numbers count as one word: which number it is says nothing about the task.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from supervisor.understanding.utterance import STOP

#: What a task says in more examples is read no further: learning is bounded, whatever a card holds.
MOST_EXAMPLES = 200
#: Words of an utterance that are looked at.
_MOST_WORDS = 64
#: What features count beside a word that says something.
_STOP_WORD, _PAIR, _PIECE = 0.8, 0.6, 0.2
_PIECES = (3, 4)
#: Half of the likeness is that to the nearest examples, so many of them; half is that to all of them together.
_NEAREST = 2
#: How many tasks a feature counts for that none of them has.
_UNKNOWN = 0.5
#: Tasks beside the known ones, of which half say a usual word: with few cards, nothing else tells that it is usual.
_OTHERS, _USUAL = 6.0, 0.5
#: By how much less like it is with no word in common that says something, beside 2 with one.
_NOTHING_SAID = 3.5
_EMPTY = STOP | {"0"}
#: The likeness from which on an utterance is of a task.
ENOUGH = 0.13


class Likeness:
    """The tasks that have examples, by their places in a catalogue; each example is the stems of its words."""

    def __init__(self, tasks: Mapping[int, Sequence[Sequence[str]]]) -> None:
        self._size = len(tasks)
        holding: dict[str, set[int]] = defaultdict(set)
        read = {place: [_features(stems) for stems in examples] for place, examples in tasks.items()}
        for place, examples in read.items():
            for features in examples:
                for feature in features:
                    holding[feature].add(place)
        self._rarity = {feature: self._rare(feature, len(places)) for feature, places in holding.items()}
        #: What each feature counts: by task in all its examples together, and by task and number of the example.
        self._whole: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self._each: dict[str, list[tuple[tuple[int, int], float]]] = defaultdict(list)
        for place, examples in read.items():
            total: dict[str, float] = defaultdict(float)
            for number, features in enumerate(examples):
                for feature, weight in self._unit(features).items():
                    total[feature] += weight
                    self._each[feature].append(((place, number), weight))
            length = math.sqrt(math.fsum(weight * weight for weight in total.values())) or 1.0
            for feature, weight in total.items():
                self._whole[feature].append((place, weight / length))

    def _rare(self, feature: str, tasks: float) -> float:
        usual = _OTHERS * _USUAL if feature in STOP else 0.0
        return math.log(1 + (self._size + _OTHERS) / (tasks + usual))

    def _unit(self, features: Mapping[str, float]) -> dict[str, float]:
        weighed = {
            feature: weight * (self._rarity.get(feature) or self._rare(feature, _UNKNOWN))
            for feature, weight in features.items()
        }
        length = math.sqrt(math.fsum(weight * weight for weight in weighed.values())) or 1.0
        return {feature: weight / length for feature, weight in weighed.items()}

    def of(self, stems: Sequence[str]) -> dict[int, float]:
        """Return how like *stems* is to each task, 1 for just enough."""
        if not self._size or not stems:
            return {}
        whole: dict[int, float] = defaultdict(float)
        each: dict[tuple[int, int], float] = defaultdict(float)
        for feature, weight in self._unit(_features(stems[:_MOST_WORDS])).items():
            for place, other in self._whole.get(feature, ()):
                whole[place] += weight * other
            for example, other in self._each.get(feature, ()):
                each[example] += weight * other
        said = {place for stem in stems if stem not in _EMPTY for place, _ in self._whole.get(stem, ())}
        nearest: dict[int, list[float]] = defaultdict(list)
        for (place, _), likeness in each.items():
            nearest[place].append(likeness)
        return {
            place: (likeness + math.fsum(sorted(nearest[place])[-_NEAREST:]) / _NEAREST)
            / (2 if place in said else _NOTHING_SAID)
            / ENOUGH
            for place, likeness in whole.items()
        }


def _features(stems: Sequence[str]) -> dict[str, float]:
    return dict(_counted(["0" if stem[0].isdigit() else stem for stem in stems]))


def _counted(stems: Sequence[str]) -> Iterator[tuple[str, float]]:
    for first, second in zip(["^", *stems], [*stems, "$"], strict=True):
        yield f"{first} {second}", _PAIR
    for stem in stems:
        yield stem, _STOP_WORD if stem in STOP else 1.0
        if stem not in STOP:
            bounded = f"<{stem}>"
            for size in _PIECES:
                for start in range(len(bounded) - size + 1):
                    yield f"~{bounded[start : start + size]}", _PIECE
