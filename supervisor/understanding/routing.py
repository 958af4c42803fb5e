"""Which task an utterance asks for: names, keywords, words of the card and likeness to its examples.

A value of a slot (a date, a number, a name) is no evidence: half of all tasks take a date.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import AgentCard
from tasklore.supervisor.catalogue import Catalogue, Offer
from tasklore.supervisor.understanding.cues import CueIndex, learn_phrases
from tasklore.supervisor.understanding.schema import TaskSchema, task_schema
from tasklore.supervisor.understanding.utterance import (
    STOP,
    ReadUtterance,
    stems_of,
    tokens_of,
)

#: Characters of an agent's description and keywords, times its tasks: each task is weighed by all of them.
_MOST_WEIGHED = 250_000
#: How much one word says, by where the card has it; a word counts once, by its best place. The first word of a task's
#: name is mostly a verb that other tasks have too.
_NAMED = 16.0
_KEYWORD = 3.0
_NAME_WORD = 2.0
_CUE = 1.5
_FIRST_WORD = 1.0
_EXAMPLE = 1.0
_DESCRIBED = 0.8
#: Evidence below this is chance: one word of a description, or one cue without a value.
_ENOUGH = 2.0
#: The evidence of an utterance that is like a task's examples, at most: less than that of its name.
_LIKE_MOST = 8.0
#: A task with so many examples is known by them better than by the words of its name and description.
_TELLING_EXAMPLES = 3
#: A runner-up this near to the best makes the choice a question.
_CLOSE = 0.65
#: Runners-up that are named; a thousand fitting tasks are settled by asking.
_MOST_RIVALS = 50
#: Examples of a task that are learned from: learning is bounded, whatever a card holds.
MOST_EXAMPLES = 200
#: Words of an utterance that are looked at.
_MOST_LIKE_WORDS = 64
#: Weights of other features beside a word.
_PAIR = 0.5
_PIECE = 0.25
_PIECES = (3, 4)
#: How many examples a feature counts for that none of them has.
_UNKNOWN = 0.5
#: Examples beside the known ones, of which some say a usual word: with few cards, nothing else tells that it is usual.
_OTHERS = 6.0
_USUAL = 3.0
#: How far an example moves what its features count, how often all are gone through, and for how many in all.
_STEP = 0.5
_PASSES = 6
_MOST_STEPS = 1_000
#: By how much less like it is with no word in common that says something.
_NOTHING_SAID = 0.9
_EMPTY = STOP | {"0"}
#: The likeness from which on an utterance is of a task.
ENOUGH = 0.295
_STOP_STEMS = frozenset(stem for word in STOP for stem in stems_of(word))
#: What may stand beside the words that name a task whole: no "not", and nothing that asks or tells of it.
_COURTEOUS = frozenset(
    token.stem
    for token in tokens_of(
        "please pls kindly just now right away ok okay yes hi hello hey thanks thank so and"
        " can could will would you i i'd want need like to let's bitte por favor s'il te vous plaît"
    )
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RoutingTask:
    """One task ready to be chosen and filled.

    *names* are the stems that name the task or its agent, *openers* those with which a request for it may begin, and
    *known* those of all that the card says of itself; *said* has all words of its examples too. *wordings* are the
    stems of each example, and of its name, of a task that has to be named whole; None for any other.
    """

    offer: Offer
    schema: TaskSchema
    cues: CueIndex
    names: frozenset[str]
    openers: frozenset[str]
    known: frozenset[str]
    said: frozenset[str]
    wordings: tuple[frozenset[str], ...] | None

    @property
    def key(self) -> tuple[str, str]:
        """The agent's id and the task's name."""
        return self.offer.agent.agent_id, self.offer.task.name

    def may_be_meant(self, stems: Collection[str]) -> bool:
        """Return whether a sentence of *stems* may ask for it: likeness is not enough for one to be named whole."""
        if self.wordings is None:
            return True
        return any(
            wording.issubset(stems) and wording.issuperset(set(stems) - _COURTEOUS)
            for wording in self.wordings
        )


@dataclass(frozen=True, slots=True)
class Route:
    """*task* and the evidence for it; *rivals* are nearly as likely."""

    task: RoutingTask
    score: float
    rivals: tuple[RoutingTask, ...] = ()


class Router:
    """The tasks of one catalogue, indexed by the stems that speak for them; made once for each catalogue.

    *catalogue* is without unreadable cards: one of them must not cost the others an answer. `chosen` is the task of a
    catalogue that was narrowed to it, None of any other.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue, self.tasks = _prepare_tasks(catalogue)
        is_chosen = bool(catalogue.part) and len(self.tasks) == 1
        self.chosen = self.tasks[0] if is_chosen else None
        #: Stems with which a request for any of the tasks may begin.
        self.openers = frozenset(
            chain.from_iterable(task.openers for task in self.tasks)
        )
        self._by_key = {task.key: task for task in reversed(self.tasks)}
        weights = [_weights(task) for task in self.tasks]
        spread = Counter(chain.from_iterable(weights))
        self._index: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
        self._named: dict[str, list[int]] = defaultdict(list)
        self._phrases: dict[str, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
        for place, (task, stems) in enumerate(zip(self.tasks, weights, strict=True)):
            for stem, weight in stems.items():
                rarity = math.log(1 + len(self.tasks) / spread[stem]) / math.log(
                    1 + len(self.tasks)
                )
                self._index[stem].append((place, weight, weight * rarity))
            for name in _identifiers(task):
                self._named[name].append(place)
            for phrase in _keywords(task):
                if len(phrase) > 1:
                    self._phrases[phrase[0]].append((place, phrase))
        self._likeness = Likeness(
            {
                place: [
                    _telling_stems(ReadUtterance(example))
                    for example in task.offer.task.examples[:MOST_EXAMPLES]
                ]
                for place, task in enumerate(self.tasks)
                if task.offer.task.examples
            }
        )

    def find(self, agent_id: str, task_name: str) -> RoutingTask | None:
        """Return the task, or None when the catalogue has no such."""
        return self._by_key.get((agent_id, task_name))

    def rank(self, utterance: ReadUtterance, most: int) -> list[RoutingTask]:
        """Return the *most* likely tasks, likeliest first, with or without evidence, for a model's prompt."""
        rarity = self._weigh(utterance)[1]
        places = sorted(
            range(len(self.tasks)), key=lambda place: (-rarity.get(place, 0.0), place)
        )
        return [self.tasks[place] for place in places[:most]]

    def choose(self, utterance: ReadUtterance) -> Route | None:
        """Return the likeliest task with its rivals, or None when nothing fits."""
        evidence, rarity = self._weigh(utterance)
        stems = [token.stem for token in utterance.tokens if token.is_word]
        ranked = sorted(
            (
                place
                for place in evidence
                if evidence[place] >= _ENOUGH and self.tasks[place].may_be_meant(stems)
            ),
            key=lambda place: -rarity[place],
        )
        if not ranked:
            return None
        best = rarity[ranked[0]]
        rivals = tuple(
            self.tasks[place] for place in ranked[1:] if rarity[place] >= best * _CLOSE
        )
        return Route(self.tasks[ranked[0]], best, rivals[:_MOST_RIVALS])

    def _weigh(
        self, utterance: ReadUtterance
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Return the evidence for each task that has any: plain, and weighed by how few tasks share it."""
        evidence: dict[int, float] = defaultdict(float)
        rarity: dict[int, float] = defaultdict(float)
        stems = _telling_stems(utterance)
        said = dict.fromkeys(stems)
        for stem in said:
            for place, weight, rare in self._index.get(stem, ()):
                evidence[place] += weight
                rarity[place] += rare
        # Names and keywords of several words count in full for each task that shares them.
        words = {word.strip("-_.,;:!?()'\"") for word in utterance.text.lower().split()}
        more = [
            (place, _NAMED)
            for place in {
                place for word in words for place in self._named.get(word, ())
            }
        ]
        phrases = (one for stem in said for one in self._phrases.get(stem, ()))
        more += [
            (place, _KEYWORD)
            for place in {
                place for place, phrase in phrases if said.keys() >= set(phrase)
            }
        ]
        alike = self._likeness.of(stems)
        most = max(alike.values(), default=1.0)
        more += [
            (place, min(_LIKE_MOST, _ENOUGH * most * most) * (likeness / most) ** 2)
            for place, likeness in alike.items()
        ]
        for place, weight in more:
            evidence[place] += weight
            rarity[place] += weight
        return evidence, rarity


def _telling_stems(utterance: ReadUtterance) -> list[str]:
    """Return the stems of the words that no date consumes, and one digit for each amount with its unit."""
    dates = utterance.moment_marks
    amounts = utterance.amount_marks
    begin = {one.start for one in utterance.amounts}
    stems = []
    for token in utterance.tokens:
        if token.is_word and not dates[token.start]:
            if not amounts[token.start]:
                stems.append(token.stem)
            elif token.start in begin:
                stems.append("0")
    return stems


def problem_of(card: AgentCard) -> str | None:
    """Return why no sentence can be read into the tasks of *card*, None when all of them are fine."""
    about = len(card.description) + sum(len(keyword) + 1 for keyword in card.keywords)
    if about * len(card.tasks) > _MOST_WEIGHED:
        most = _MOST_WEIGHED // len(card.tasks)
        return f"description and keywords have {about:,} characters; with {len(card.tasks):,} tasks keep to {most:,}"
    for task in card.tasks:
        try:
            task_schema(task)
        except InvalidInput as error:
            return f"task {task.name!r}: {error}"
    return None


def _prepare_tasks(catalogue: Catalogue) -> tuple[Catalogue, tuple[RoutingTask, ...]]:
    """Return *catalogue* without unreadable cards, and its tasks."""
    tasks: list[RoutingTask] = []
    odd: set[str] = set()
    for offer in catalogue.tasks():
        try:
            tasks.append(_prepare(offer))
        except InvalidInput:
            odd.add(offer.agent.agent_id)
    if not odd:
        return catalogue, tuple(tasks)
    readable = Catalogue(
        card for agent_id, card in catalogue.cards.items() if agent_id not in odd
    )
    return readable, tuple(
        task for task in tasks if task.offer.agent.agent_id not in odd
    )


def _prepare(offer: Offer) -> RoutingTask:
    schema = task_schema(offer.task)
    named = (
        *offer.agent.keywords,
        *offer.task.keywords,
        offer.task.name,
        _bare_id(offer),
    )
    names = frozenset(stem for text in named for stem in stems_of(text)) - _STOP_STEMS
    known = names | _own_stems(offer, schema)
    phrases = [(phrase, slot) for slot in schema.slots for phrase in slot.phrases]
    begun = (stems_of(example)[:1] for example in offer.task.examples)
    openers = names | (frozenset(chain.from_iterable(begun)) - _STOP_STEMS)
    return RoutingTask(
        offer=offer,
        schema=schema,
        cues=CueIndex([*phrases, *learn_phrases(offer.task, schema, known)]),
        names=names,
        openers=openers,
        known=known,
        said=known.union(*map(stems_of, offer.task.examples)),
        wordings=_wordings(offer, schema),
    )


def _wordings(offer: Offer, schema: TaskSchema) -> tuple[frozenset[str], ...] | None:
    """Return the stems of the name and of each example of a task that has to be named whole.

    Its card says so, or it is one to confirm that takes no values. None for other tasks, and for one without examples.
    """
    task = offer.task
    is_bare = schema.is_named_whole or (
        task.confirm and task.approver is None and not schema.slots
    )
    if not is_bare or not task.examples:
        return None
    texts = (task.name, *task.examples[:MOST_EXAMPLES])
    return tuple(frozenset(stems_of(text)) for text in texts)


def _own_stems(offer: Offer, schema: TaskSchema) -> frozenset[str]:
    """Return the stems of a card's own words; of its examples only those of several, as the rest are values."""
    texts = [offer.task.description, offer.agent.description]
    for slot in schema.slots:
        texts += [
            *map(str, slot.choices),
            *(stem for phrase in slot.phrases for stem in phrase.stems),
        ]
    said = Counter(
        stem
        for example in offer.task.examples
        for stem in {
            token.stem for token in tokens_of(example) if example[token.start].islower()
        }
    )
    shared = {stem for stem, count in said.items() if count > 1}
    return frozenset(stem for text in texts for stem in stems_of(text)) | shared


def _bare_id(offer: Offer) -> str:
    return offer.agent.agent_id.removesuffix("Agent")


def _identifiers(task: RoutingTask) -> Iterator[str]:
    """Yield the identifiers of *task* that name it in any sentence; not "weather", when examples say more about it."""
    agent_id = task.offer.agent.agent_id
    name = task.offer.task.name.lower()
    if (
        len(task.offer.task.examples) < _TELLING_EXAMPLES
        or not agent_id.isalpha()
        or not agent_id.islower()
    ):
        yield agent_id.lower().strip("-_")
    if "_" in name:
        yield name.strip("-_")


def _keywords(task: RoutingTask) -> Iterator[tuple[str, ...]]:
    for keyword in (*task.offer.agent.keywords, *task.offer.task.keywords):
        if stems := stems_of(keyword):
            yield stems


def _weights(task: RoutingTask) -> dict[str, float]:
    weights: dict[str, float] = {}
    for stems, weight in _evidence(task):
        for stem in stems:
            if (weight == _KEYWORD or stem not in _STOP_STEMS) and not stem.isdigit():
                weights[stem] = max(weights.get(stem, 0.0), weight)
    return weights


def _evidence(task: RoutingTask) -> Iterator[tuple[Sequence[str], float]]:
    for stems in _keywords(task):
        if len(stems) == 1:
            yield stems, _KEYWORD
    for slot in task.schema.slots:
        for phrase in slot.phrases:
            yield phrase.stems, _CUE
        for choice in slot.choices:
            yield stems_of(str(choice)), _CUE
    if len(task.offer.task.examples) >= _TELLING_EXAMPLES:
        return
    first, *others = stems_of(task.offer.task.name) or ("",)
    yield (first,), _FIRST_WORD if others else _NAME_WORD
    yield others, _NAME_WORD
    yield stems_of(_bare_id(task.offer)), _NAME_WORD
    for example in task.offer.task.examples:
        yield stems_of(example), _EXAMPLE
    for text in (task.offer.task.description, task.offer.agent.description):
        yield stems_of(text), _DESCRIBED


class Likeness:
    """How like an utterance is to the examples of each task: words, pairs and pieces of words, weighed by rarity.

    The weight of each feature for each task is learned from the examples, which are to come out as 1 for their own task
    and as 0 for the others (least mean squares). A word that no example has makes an utterance less like all of them,
    so that one that no task is for stays below `ENOUGH`. All numbers are one word. *tasks* are the examples, each as
    the stems of its words, by the place of their task in a catalogue.
    """

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
                for place, likeness in {
                    **dict.fromkeys(places, 0.0),
                    **self._weigh(unit),
                }.items():
                    step = _STEP * ((place in places) - likeness)
                    if place in places or likeness > 0:
                        for feature, weight in unit.items():
                            counts = self._counts[feature]
                            counts[place] = counts.get(place, 0.0) + step * weight

    def _unit(self, features: Mapping[str, float]) -> dict[str, float]:
        weighed = {
            feature: weight * self._rarity(feature)
            for feature, weight in features.items()
        }
        length = (
            math.sqrt(math.fsum(weight * weight for weight in weighed.values())) or 1.0
        )
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
        stems = stems[:_MOST_LIKE_WORDS]
        if "0" in stems and _EMPTY.issuperset(stems):
            return {}
        said = {
            place
            for stem in stems
            if stem not in _EMPTY
            for place in self._counts.get(stem, ())
        }
        return {
            place: likeness * (1 if place in said else _NOTHING_SAID) / ENOUGH
            for place, likeness in self._weigh(self._unit(_features(stems))).items()
            if likeness > 0
        }


def _features(stems: Sequence[str]) -> dict[str, float]:
    stems = ["0" if stem[0].isdigit() else stem for stem in stems]
    found = {
        f"{first} {second}": _PAIR
        for first, second in zip(["^", *stems], [*stems, "$"], strict=True)
    }
    for stem in stems:
        found[stem] = 1.0
        if stem not in STOP:
            bounded = f"<{stem}>"
            for size in _PIECES:
                found |= {
                    f"~{bounded[at : at + size]}": _PIECE
                    for at in range(len(bounded) - size + 1)
                }
    return found
