"""How like a sentence is to the examples of a task, beyond what any request is like: a likelihood ratio, in logarithms.

A word counts by how much oftener the task's examples hold it, or a word that can stand for it, than requests do at
large. A word that the examples know nothing of counts against the task, and so does the lack of what nearly all say.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from supervisor.interpretation.wishes.vocabulary import NUMBER, everyday
from supervisor.interpretation.words import stems_of, tokens_of

#: A task with fewer examples is described better by its keywords and its description.
FEWEST_EXAMPLES = 3
#: What a task says in more examples is read no further: learning is bounded, whatever a card holds.
_MOST_EXAMPLES = 200
#: Words of a sentence, or of an example, that are looked at, and how many different ones.
_LONGEST, _MOST_WORDS = 512, 128
#: Tasks that are compared word by word: those of all with the most rare words in common with the sentence.
_MOST_COMPARED = 48
#: Of what a task's sentences say, the parts that come from the words of its examples, from words that can stand for
#: them, and from anywhere. These and the next were chosen on random sets of intents; half or double changes little.
_OWN, _KIN, _FOREIGN = 0.8, 0.3, 0.15
#: Taken off how many examples hold a word: what is said once may be chance.
_ONCE = 0.5
#: No word is more evidence than this, in logarithms.
_MOST_GAIN = 6.0
#: What two neighbouring words count beyond the words themselves, and the share of requests that hold a usual pair.
_PAIR, _PAIR_SHARE = 0.35, 0.04
#: Sentences of fewer different words are judged as if they had so many, and may lack the less: "Friday" alone answers
#: some question and is no request for a room.
_FEW_WORDS = 4
#: What the lack of a task's most usual telling word costs, and the share of requests beyond which a word tells nothing.
_LACK, _TELLING = 2.0, 0.05
#: A task's own measure is the mean likeness of each of its examples to the others: how far it counts, and how far below
#: it a sentence may stay. What is asked in many ways is thus content with less than what is asked in one.
_OWN_MEASURE, _ENOUGH = 0.6, -2.8
#: No sentence is of a task, however mixed its examples, when it is said at large so much more likely.
_LEAST = -0.5
#: Examples and sentences that are kept as they were read.
_KEPT = 4096


class Word(NamedTuple):
    """A stem with the groups it belongs to, each with one over the share of requests that hold it."""

    stem: str
    share: float
    trust: float
    #: What it counts for a task that knows nothing of it.
    foreign: float
    groups: tuple[tuple[str, float], ...]
    #: The stem and the groups that are rare enough to tell tasks apart.
    telling: tuple[str, ...]


class Sentence(NamedTuple):
    """The different words of a sentence and its different pairs of neighbours, in order."""

    words: tuple[Word, ...]
    pairs: tuple[str, ...]
    #: What it comes to for a task that knows nothing of any word.
    foreign: float

    def features(self) -> Iterator[str]:
        """Yield everything that an example is counted by; a group as often as words of it are said."""
        yield from self.pairs
        for word in self.words:
            yield word.stem
            for group, _ in word.groups:
                yield group


@dataclass(frozen=True, slots=True)
class Examples:
    """What a task's examples say: *shares* are of the examples; *usual* is the largest share of a telling feature.

    *enough* is the likeness from which on a sentence may be of the task.
    """

    shares: Mapping[str, float]
    #: How much each telling feature speaks for the task, the rarer the more.
    telling: Mapping[str, float]
    usual: float
    enough: float


def sentence_of(stems: Sequence[str]) -> Sentence:
    """Return what is compared of a sentence, given the stems of its words in order."""
    stems = stems[:_LONGEST]
    read = [NUMBER if one.isdigit() else one for one in stems]
    groups = everyday().groups_in(stems)
    words: dict[str, Word] = {}
    for one, names in zip(read, groups, strict=True):
        if one not in words:
            words[one] = _word(one, names)
            if len(words) == _MOST_WORDS:
                break
    # "in paris" and "in rome" are the same pair.
    named = [
        min((name for name in names if name[0] == "#"), default=one) for one, names in zip(read, groups, strict=True)
    ]
    pairs = zip(["^", *named], [*named, "$"], strict=True)
    joined = dict.fromkeys(f"{left} {right}" for left, right in pairs)
    return Sentence(tuple(words.values()), tuple(joined), sum(word.foreign for word in words.values()))


@lru_cache(maxsize=_KEPT)
def _word(one: str, names: frozenset[str]) -> Word:
    vocabulary = everyday()
    return Word(
        stem=one,
        share=vocabulary.share_of(one),
        trust=vocabulary.trust_in(one),
        foreign=vocabulary.trust_in(one) * math.log(_FOREIGN),
        groups=tuple((name, 1 / vocabulary.share_of(name)) for name in sorted(names)),
        telling=tuple(feature for feature in (one, *sorted(names)) if vocabulary.share_of(feature) <= _TELLING),
    )


@lru_cache(maxsize=_KEPT)
def learn(about: tuple[str, ...], examples: tuple[str, ...]) -> Examples:
    """Return what *examples* say; each text *about* the task, such as its name, counts as one example more.

    Kept by its arguments: a card that arrives costs what is new in it.
    """
    read = [_read(example) for example in examples[:_MOST_EXAMPLES]]
    every = [*read, *(sentence_of(stems) for text in about if (stems := stems_of(text)))]
    counts = Counter(feature for one in every for feature in set(one.features()))
    size = len(every)
    shares = {feature: (count - _ONCE) / size for feature, count in counts.items()}
    rare = sorted({feature for one in every for word in one.words for feature in word.telling})
    usual = max((shares[feature] for feature in rare), default=0.0)
    measures = [_likeness(one, _without(one, counts, size), usual) for one in read]
    return Examples(
        shares=shares,
        telling={feature: -shares[feature] * math.log(everyday().share_of(feature)) for feature in rare},
        usual=usual,
        enough=max(_LEAST, _OWN_MEASURE * math.fsum(measures) / len(measures) + _ENOUGH),
    )


def _read(example: str) -> Sentence:
    return sentence_of([token.stem for token in tokens_of(example) if token.is_word])


def _without(one: Sentence, counts: Counter[str], size: int) -> dict[str, float]:
    """Return the shares that the features of *one* have in the other examples."""
    return {feature: (counts[feature] - 1 - _ONCE) / (size - 1) for feature in one.features() if counts[feature] > 1}


def _likeness(sentence: Sentence, shares: Mapping[str, float], usual: float) -> float:
    total, most_usual = sentence.foreign, 0.0
    for word in sentence.words:
        kin = 0.0
        for group, rarity in word.groups:
            if group in shares:
                kin = max(kin, shares[group] * rarity)
        own = shares.get(word.stem, 0.0)
        if own or kin:
            ratio = _OWN * own / word.share + _KIN * kin + _FOREIGN
            total += word.trust * min(_MOST_GAIN, math.log(ratio)) - word.foreign
            most_usual = max(most_usual, *(shares.get(feature, 0.0) for feature in word.telling), 0.0)
    for pair in sentence.pairs:
        if pair in shares:
            total += _PAIR * math.log1p(shares[pair] / _PAIR_SHARE)
    size = math.sqrt(max(_FEW_WORDS, len(sentence.words)))
    shortness = size / math.sqrt(max(1, len(sentence.words)))
    return total / size - _LACK * shortness * max(0.0, usual - most_usual)


class Likeness:
    """The tasks that are declared by examples, by their places in a catalogue."""

    def __init__(self, tasks: Mapping[int, Examples]) -> None:
        self._tasks = tasks
        self._holding: dict[str, list[tuple[int, float]]] = defaultdict(list)
        if len(tasks) <= _MOST_COMPARED:
            return
        for place, examples in tasks.items():
            for feature, weight in examples.telling.items():
                self._holding[feature].append((place, weight))

    def of(self, stems: Sequence[str]) -> dict[int, float]:
        """Return by its place how far each task that *stems* may be of is above what is enough for it."""
        if not self._tasks or not stems:
            return {}
        sentence = sentence_of(stems)
        found = {}
        for place in self._compared(sentence):
            task = self._tasks[place]
            above = _likeness(sentence, task.shares, task.usual) - task.enough
            if above >= 0:
                found[place] = above
        return found

    def _compared(self, sentence: Sentence) -> Sequence[int]:
        if len(self._tasks) <= _MOST_COMPARED:
            return tuple(self._tasks)
        shared: dict[int, float] = defaultdict(float)
        for feature in {feature for word in sentence.words for feature in word.telling}:
            for place, weight in self._holding.get(feature, ()):
                shared[place] += weight
        return sorted(shared, key=lambda place: (-shared[place], place))[:_MOST_COMPARED]
