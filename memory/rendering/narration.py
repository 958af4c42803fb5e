"""Actions, senses and messages of an agent, as sentences in the first person.

Each is one line, whatever the names and texts in it. New actions, senses and odd plurals are worded by those
registered: `Narrator.with_action`, `Narrator.with_sense`, `Narrator.with_plural`.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tasklore.contracts.observations import Action, AgentTarget, Position, SensoryData
from tasklore.memory.rendering.quoting import MAX_SHOWN, plain

Tense = Literal["present", "past"]
#: Tells an action in the past tense, without a full stop: "I moved to position (2, 1.6)".
TellAction = Callable[[Action], str]
#: Tells a sense in a tense, None when there is nothing to tell; it is given the value of its key.
TellSense = Callable[[Any, Tense], str | None]

#: Decimals of a number that are told: finer than an agent walks.
_DECIMALS = 2
#: Objects of one kind, kinds, or agents that are told one by one; of more only how many there are.
MOST_TOLD = 12
#: A colon behind which words would begin.
_BEGINS = re.compile(r":(?=\s|$)")
#: Characters of one action or sense as somebody's own function tells it.
_LONGEST_TOLD = 600


@dataclass(frozen=True, slots=True)
class Narrator:
    """Words actions and observations; an unregistered action is worded by its bare name, a sense is left out.

    `most` is how many of a kind, and how many kinds, are listed one by one.
    """

    actions: Mapping[str, TellAction] = field(default_factory=lambda: dict(_ACTIONS))
    senses: Mapping[str, TellSense] = field(default_factory=dict)
    plurals: Mapping[str, str] = field(default_factory=lambda: dict(_PLURALS))
    most: int = MOST_TOLD

    def with_action(self, action: str, tell: TellAction) -> "Narrator":
        """Return a narrator that also words *action*, or words it anew."""
        return replace(self, actions={**self.actions, action: tell})

    def with_sense(self, key: str, tell: TellSense) -> "Narrator":
        """Return a narrator that also words the sense under *key* of the sensory data."""
        return replace(self, senses={**self.senses, key: tell})

    def with_plural(self, kind: str, kinds: str) -> "Narrator":
        """Return a narrator that calls several of *kind* *kinds*: mouse and mice."""
        return replace(self, plurals={**self.plurals, kind: kinds})

    def telling(self, most: int) -> "Narrator":
        """Return a narrator that lists at most *most* of a kind one by one; with 0 it only counts."""
        return replace(self, most=most)

    def action(self, action: Action) -> str:
        """Return what the agent did: "I texted Alice: 'Found coins!'"."""
        tell = self.actions.get(action.action)
        return (
            _say_other(action) if tell is None else plain(tell(action), _LONGEST_TOLD)
        )

    def now(self, sensed: SensoryData) -> str:
        """Return its senses: "I am at position (2, 1), have collected 1 coin; I see no objects; I see ..."."""
        return self._observation(sensed, "present")

    def then(self, sensed: SensoryData) -> str:
        """Return its senses in the past tense: "I was at position (2, 1), had collected 1 coin; I saw ..."."""
        return self._observation(sensed, "past")

    def counted(self, number: int, kind: str) -> str:
        """Return how many of a kind there are: "1 coin", "2 coins", "3 boxes", "2 berries", "1 sheep"."""
        kinds = self.plurals.get(kind)
        return f"{number} {plain(kind) if number == 1 else plain(kinds) if kinds else plural(plain(kind))}"

    def objects(self, sensed: SensoryData) -> list[str]:
        """Return the objects in sight, a text for each kind: "2 coins at: (2, 1.6), (2.4, 0.4)"."""
        by_kind: dict[str, list[Position]] = {}
        for seen in sensed.world_objects:
            by_kind.setdefault(seen.kind, []).append(seen.position)
        told = [
            f"{self.counted(len(by_kind[kind]), kind)}{self._places(by_kind[kind], sensed.position)}"
            for kind in sorted(by_kind)[: self.most]
        ]
        if more := sum(len(by_kind[kind]) for kind in sorted(by_kind)[self.most :]):
            told.append(self.counted(more, "other object" if told else "object"))
        return told

    def _observation(self, sensed: SensoryData, tense: Tense) -> str:
        see = "I see" if tense == "present" else "I saw"
        objects = [f"{see} {told}" for told in self.objects(sensed)] or [
            f"{see} no objects"
        ]
        parts = [
            self._standing(sensed, tense),
            *objects,
            f"{see} {self._agents(sensed)}",
            *self._senses(sensed, tense),
        ]
        return "; ".join(parts)

    def _standing(self, sensed: SensoryData, tense: Tense) -> str:
        am, have = ("am", "have") if tense == "present" else ("was", "had")
        # An empty pocket is not worth a word.
        has = sorted(
            (kind, number) for kind, number in sensed.collected.items() if number
        )
        told = [self.counted(number, kind) for kind, number in has[: self.most]]
        if more := sum(number for _, number in has[self.most :]):
            told.append(self.counted(more, "other object" if told else "object"))
        return f"I {am} at position {place(sensed.position)}, {have} collected {list_words(told) or 'nothing'}"

    def _agents(self, sensed: SensoryData) -> str:
        seen = sensed.nearby_agents
        told = [
            f"{plain(one.name)} at {place(one.position)}"
            if one.position is not None
            else plain(one.name)
            for one in seen[: self.most]
        ]
        if more := len(seen) - len(told):
            told.append(self.counted(more, "other agent"))
        return list_words(told) or "no other agents"

    def _places(self, places: Sequence[Position], here: Position) -> str:
        if not self.most:
            return ""
        if len(places) <= self.most:
            return f" at: {', '.join(map(place, places))}"
        nearest = sorted(places, key=lambda one: distance(one, here))[: self.most]
        return (
            f" at: {', '.join(map(place, nearest))} and {len(places) - self.most} more"
        )

    def _senses(self, sensed: SensoryData, tense: Tense) -> Iterable[str]:
        for key, tell in self.senses.items():
            if key in sensed.further and (
                told := plain(tell(sensed.further[key], tense) or "", _LONGEST_TOLD)
            ):
                yield told


def at_time(time_s: float, sentence: str) -> str:
    """Return *sentence* with when it was: "At time 5s Bob said: 'Hello!'"."""
    return f"At time {short(time_s)}s {sentence}"


def say_message(speaker: str, message: str, limit: int = MAX_SHOWN) -> str:
    """Return what *speaker* said, at most *limit* characters of it: "Bob said: 'Hello!'"."""
    return f"{_name_of(speaker)} said: {speech(message, limit)}"


def say_texted(to: str, message: str | None, limit: int = MAX_SHOWN) -> str:
    """Return the message of the agent itself: "I texted Alice: 'Found coins!'"; without words when None."""
    return f"I texted {_name_of(to)}{f': {speech(message, limit)}' if message is not None else ''}"


def _name_of(name: str) -> str:
    """Return *name* on one line, without a colon that would begin a message: "Bob:" is "Bob\u2236"."""
    return _BEGINS.sub("\u2236", plain(name))


def speech(text: str, limit: int = MAX_SHOWN) -> str:
    """Return *text* on one line in single quotes that it cannot close, at most *limit* characters of it."""
    return f"'{plain(text, limit).replace(chr(39), chr(0x2019))}'"


def short(number: float) -> str:
    """Return *number* with two decimals at most and no needless zero: 2, 1.6, 0.25."""
    # Minus nothing is nothing.
    return f"{round(number, _DECIMALS) + 0.0:.{_DECIMALS}f}".rstrip("0").rstrip(".")


def distance(one: Position, other: Position) -> float:
    """Return how far two places are apart, as the crow flies."""
    return math.dist((one.x, one.z), (other.x, other.z))


def place(position: Position) -> str:
    """Return *position* as `(2, 1.6)`."""
    return f"({short(position.x)}, {short(position.z)})"


def plural(kind: str) -> str:
    """Return the plural of an English noun that is regular: coins, boxes, berries."""
    if kind.endswith(("s", "x", "z", "ch", "sh")):
        return f"{kind}es"
    if kind.endswith("y") and kind[-2:-1] not in "aeiou":
        return f"{kind[:-1]}ies"
    return f"{kind}s"


def list_words(parts: Sequence[str]) -> str:
    """Return *parts* as a list in a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def by_whom(speakers: Mapping[str, int], most: int = 5) -> str:
    """Return who said how much, the busiest first: "7 by Bob, 2 by Carol and 3 by others"."""
    ranked = Counter(speakers).most_common()
    told = [f"{number} by {plain(name)}" for name, number in ranked[:most]]
    if more := sum(number for _, number in ranked[most:]):
        told.append(f"{more} by others")
    return list_words(told)


def _say_move(action: Action) -> str:
    match action.target:
        case Position() as there:
            return f"I moved to position {place(there)}"
        case AgentTarget(agent=name):
            return f"I moved towards {plain(name)}"
        case _:
            return "I moved"


def _say_text(action: Action) -> str:
    return say_texted(
        action.target.agent if isinstance(action.target, AgentTarget) else "nobody",
        action.utterance,
    )


def _say_collect(action: Action) -> str:
    where = (
        f"lay at position {place(action.target)}"
        if isinstance(action.target, Position)
        else "I had found"
    )
    return f"I collected what {where}"


def _say_other(action: Action) -> str:
    """Return an unregistered action: "I did 'dance' with Bob"."""
    match action.target:
        case Position() as there:
            target = f" at position {place(there)}"
        case AgentTarget(agent=name):
            target = f" with {plain(name)}"
        case _:
            target = ""
    words = (
        f", saying {speech(action.utterance)}" if action.utterance is not None else ""
    )
    return f"I did {speech(action.action)}{target}{words}"


_ACTIONS: Mapping[str, TellAction] = {
    "move": _say_move,
    "text": _say_text,
    "collect": _say_collect,
    "wait": lambda _: "I waited",
}
#: Kinds of things that lie about in worlds, and have no regular plural.
_PLURALS: Mapping[str, str] = {
    "sheep": "sheep", "fish": "fish", "deer": "deer", "gold": "gold", "food": "food", "wood": "wood", "wolf": "wolves",
    "knife": "knives", "leaf": "leaves", "loaf": "loaves", "potato": "potatoes", "tomato": "tomatoes",
    "person": "people", "child": "children", "man": "men", "woman": "women", "mouse": "mice",
}  # fmt: skip
