"""Which task a sentence asks for: keywords, names, descriptions, examples and cues, weighed by how rare they are.

A task with several examples is judged by how like them a sentence is, not by words of its name and description.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from contracts.errors import InvalidInput
from contracts.messages import AgentCard
from supervisor.catalogue import Catalogue, Offer
from supervisor.interpretation.values.cues import CueIndex
from supervisor.interpretation.values.fields import TaskShape, shape_of
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.likeness import FEWEST_EXAMPLES, Examples, Likeness, learn
from supervisor.interpretation.words import STOP, stems_of

#: How much one word says, by where the card has it; a word counts once, by its best place.
_NAMED, _KEYWORD, _NAME_WORD, _CUE, _EXAMPLE, _DESCRIBED = 12.0, 3.0, 2.0, 1.5, 1.0, 0.8
#: Characters of what is said of an agent, times its tasks: each of them is weighed by all of it.
_MOST_WEIGHED = 250_000
#: Evidence below this is chance: one word of a description, or one cue without a value.
_ENOUGH = 2.0
#: The evidence of a sentence that is like a task's examples: from just enough to nearly as good as its name.
_LIKE_MOST = 8.0
#: How fast it falls off behind the likeliest task: a tenth of a logarithm makes two tasks `_CLOSE`.
_FALL = 1.6
#: A runner-up this near to the best makes the choice a question.
_CLOSE = 0.85
#: Runners-up that are tried with the values of the sentence: what fits a thousand tasks is settled by asking.
_MOST_RIVALS = 50
_IDENTIFIER = re.compile(r"[a-z0-9_-]+")
_STOP_STEMS = frozenset(stem for word in STOP for stem in stems_of(word))


@dataclass(frozen=True, slots=True)
class Prepared:
    """One task ready to be chosen and filled."""

    offer: Offer
    shape: TaskShape
    cues: CueIndex
    #: Stems that name the task or its agent, the strong half of the evidence.
    names: frozenset[str]
    #: What its examples say, None when there are too few to go by.
    examples: Examples | None


@dataclass(frozen=True, slots=True)
class Choice:
    """*task* and the evidence for it; *rivals* are nearly as likely."""

    task: Prepared
    score: float
    rivals: tuple[Prepared, ...] = ()


class Router:
    """The tasks of one catalogue, indexed by the stems that speak for them.

    *catalogue* is without the cards that cannot be read: one of them must not cost anybody an answer.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue, self.tasks = _prepared(catalogue)
        #: Stems that name any task or its agent.
        self.names = frozenset(stem for task in self.tasks for stem in task.names)
        self._by_name = {_named(task.offer): task for task in reversed(self.tasks)}
        weights = [_weights(task) for task in self.tasks]
        spread = Counter(stem for stems in weights for stem in stems)
        self._index: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
        for place, stems in enumerate(weights):
            for stem, weight in stems.items():
                rarity = math.log(1 + len(self.tasks) / spread[stem]) / math.log(1 + len(self.tasks))
                self._index[stem].append((place, weight, weight * rarity))
        self._phrases: dict[str, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
        self._named: dict[str, list[int]] = defaultdict(list)
        for place, task in enumerate(self.tasks):
            for phrase in _keyword_phrases(task):
                self._phrases[phrase[0]].append((place, phrase))
            for name in _outright(task):
                self._named[name].append(place)
        self._likeness = Likeness({place: task.examples for place, task in enumerate(self.tasks) if task.examples})

    def find(self, agent_id: str, task_name: str) -> Prepared | None:
        """Return the prepared task, or None when the catalogue has no such."""
        return self._by_name.get((agent_id, task_name))

    def choose(self, scene: Scene) -> Choice | None:
        """Return the likeliest task with its rivals, or None when nothing fits."""
        evidence, rarity = self._weigh(scene)
        ranked = sorted((place for place in evidence if evidence[place] >= _ENOUGH), key=lambda place: -rarity[place])
        if not ranked:
            return None
        best = rarity[ranked[0]]
        rivals = tuple(self.tasks[place] for place in ranked[1:] if rarity[place] >= best * _CLOSE)
        return Choice(self.tasks[ranked[0]], best, rivals[:_MOST_RIVALS])

    def _weigh(self, scene: Scene) -> tuple[dict[int, float], dict[int, float]]:
        """Return the evidence for each task that has any: plain, and weighed by how few tasks share it."""
        evidence: dict[int, float] = defaultdict(float)
        rarity: dict[int, float] = defaultdict(float)
        stems = dict.fromkeys(token.stem for token in scene.tokens if token.is_word)
        for stem in stems:
            for place, weight, rare in self._index.get(stem, ()):
                evidence[place] += weight
                rarity[place] += rare
        for place, more in self._outstanding(scene, stems):
            evidence[place] += more
            rarity[place] += more
        return evidence, rarity

    def _outstanding(self, scene: Scene, stems: Mapping[str, None]) -> Iterator[tuple[int, float]]:
        """Yield the evidence that counts in full, whoever shares it: names, keywords of several words, likeness."""
        named = {place for name in _identifiers_in(scene.text) for place in self._named.get(name, ())}
        yield from ((place, _NAMED) for place in named)
        said = {
            place
            for stem in stems
            for place, phrase in self._phrases.get(stem, ())
            if all(part in stems for part in phrase)
        }
        yield from ((place, _KEYWORD) for place in said - named)
        like = self._likeness.of([token.stem for token in scene.tokens if token.is_word])
        most = max(like.values(), default=0.0)
        for place, above in like.items():
            yield place, min(_LIKE_MOST, _ENOUGH + most) * math.exp(_FALL * (above - most))


def problem_of(card: AgentCard) -> str | None:
    """Return why no sentence can be read into the tasks of *card*, None when all of them are fine."""
    about = len(card.description) + sum(len(keyword) + 1 for keyword in card.keywords)
    if about * len(card.tasks) > _MOST_WEIGHED:
        most = _MOST_WEIGHED // len(card.tasks)
        return f"description and keywords have {about:,} characters; with {len(card.tasks):,} tasks keep to {most:,}"
    for task in card.tasks:
        try:
            # What is read of a card is kept: read when it arrives, it costs the next sentence nothing.
            _prepare(Offer(card, task))
        except InvalidInput as error:
            return f"task {task.name!r}: {error}"
    return None


def _prepared(catalogue: Catalogue) -> tuple[Catalogue, tuple[Prepared, ...]]:
    """Return what of *catalogue* can be read, and its tasks."""
    tasks: list[Prepared] = []
    odd: set[str] = set()
    for offer in catalogue.tasks():
        try:
            tasks.append(_prepare(offer))
        except InvalidInput:
            odd.add(offer.agent.agent_id)
    if not odd:
        return catalogue, tuple(tasks)
    readable = Catalogue(card for agent_id, card in catalogue.cards.items() if agent_id not in odd)
    return readable, tuple(task for task in tasks if task.offer.agent.agent_id not in odd)


def _named(offer: Offer) -> tuple[str, str]:
    return offer.agent.agent_id, offer.task.name


def _outright(task: Prepared) -> Iterator[str]:
    """Yield what names *task* in any sentence; "weather" does not, when examples say what is asked about it."""
    agent_id, name = task.offer.agent.agent_id, task.offer.task.name.lower()
    if task.examples is None or not agent_id.isalpha() or not agent_id.islower():
        yield agent_id.lower().strip("-_")
    if "_" in name:
        yield name.strip("-_")


def _identifiers_in(text: str) -> frozenset[str]:
    """Return the words of *text* that may be identifiers, whole, without what may stand around them."""
    return frozenset(found.strip("-_") for found in _IDENTIFIER.findall(text.lower()))


def _prepare(offer: Offer) -> Prepared:
    shape = shape_of(offer.task)
    keywords = frozenset(stem for word in (*offer.agent.keywords, *offer.task.keywords) for stem in stems_of(word))
    names = keywords | (frozenset((*stems_of(offer.task.name), *stems_of(_bare_id(offer)))) - _STOP_STEMS)
    return Prepared(offer, shape, CueIndex(shape), names, _examples(offer))


def _examples(offer: Offer) -> Examples | None:
    if len(offer.task.examples) < FEWEST_EXAMPLES:
        return None
    named = f"{_bare_id(offer)} {offer.task.name}"
    return learn((named, offer.task.description.partition(". ")[0]), offer.task.examples)


def _bare_id(offer: Offer) -> str:
    return offer.agent.agent_id.removesuffix("Agent")


def _weights(task: Prepared) -> dict[str, float]:
    weights: dict[str, float] = {}
    for stems, weight in _evidence(task):
        for stem in stems:
            if weight == _KEYWORD or stem not in _STOP_STEMS:
                weights[stem] = max(weights.get(stem, 0.0), weight)
    return weights


def _evidence(task: Prepared) -> Iterator[tuple[tuple[str, ...], float]]:
    agent, card = task.offer.agent, task.offer.task
    for keyword in (*agent.keywords, *card.keywords):
        if len(stems := stems_of(keyword)) == 1:
            yield stems, _KEYWORD
    for field in task.shape.fields:
        for phrase in field.phrases:
            yield phrase.stems, _CUE
        for choice in field.choices:
            yield stems_of(str(choice)), _CUE
    if task.examples is not None:
        return
    yield stems_of(card.name), _NAME_WORD
    yield stems_of(_bare_id(task.offer)), _NAME_WORD
    for example in card.examples:
        yield stems_of(example), _EXAMPLE
    for text in (card.description, agent.description):
        yield stems_of(text), _DESCRIBED


def _keyword_phrases(task: Prepared) -> Iterator[tuple[str, ...]]:
    for keyword in (*task.offer.agent.keywords, *task.offer.task.keywords):
        if len(stems := stems_of(keyword)) > 1:
            yield stems
