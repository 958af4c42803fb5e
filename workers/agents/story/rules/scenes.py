"""What rules make of a scene: its type and tension by words that stand in it, its rhythm by counting."""

import math
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel

from contracts.words import reads_unknown_as_other
from memory.stories.arithmetic import Pace, dialogue_share, pace
from workers.agents.story.reading.prose import folded, quotations, sentences, words

_CUES = Path(__file__).with_name("scene_cues.toml")
#: Tension of a scene whose words say nothing of it, and the highest there is.
_USUAL, HIGHEST = 3, 10
#: Words over which points of tension are told: fewer do not make a scene more tense than it is.
_STRETCH = 150
#: What a point is worth there.
_WEIGHT = 0.8

_Type = Literal["dialogue", "action", "description", "introspection", "romance", "conflict", "transition", "other"]
#: Types that are told by what people do, however much they talk meanwhile.
_LOUD = frozenset({"conflict", "romance", "action"})
#: What kinds of scenes there are; whatever else a model says is `other`.
SceneType = Annotated[_Type, reads_unknown_as_other(_Type)]


@dataclass(frozen=True, slots=True)
class Measures:
    """What is counted in a response: its words, the share of them that is spoken, and how fast it reads."""

    words: int
    dialogue_share: float
    pace: Pace


class _Cues(BaseModel):
    """The words of `scene_cues.toml`; those of `tension` by the points that each is worth."""

    dialogue_share: float
    least_hits: int
    least_density: float
    least_density_in_talk: float
    scenes: dict[_Type, tuple[str, ...]]
    tension: dict[int, tuple[str, ...]]
    nobody: frozenset[str]


def measured(text: str) -> Measures:
    """Return what is counted in *text*."""
    total = len(words(text))
    spoken = sum(len(words(one.text)) for one in quotations(text))
    return Measures(total, dialogue_share(spoken, total), pace(total, len(sentences(text))))


def scene_of(text: str, measures: Measures) -> SceneType:
    """Return the type of scene that the words of *text* point at, `other` for a text without any word.

    Much talk makes it dialogue, unless words of what is done in it stand close together.
    """
    if not measures.words:
        return "other"
    cues, said = _cues(), _Said(text)
    hits = {kind: said.times(listed) for kind, listed in cues.scenes.items()}
    kind = max(hits, key=lambda one: hits[one])
    density = 100 * hits[kind] / measures.words if hits[kind] >= cues.least_hits else 0.0
    if measures.dialogue_share >= cues.dialogue_share:
        return kind if kind in _LOUD and density >= cues.least_density_in_talk else "dialogue"
    return kind if density >= cues.least_density else "description"


def tension_of(text: str, measures: Measures) -> int:
    """Return how tense the words of *text* are, from 0 to 10, by the points of each and the length of the text."""
    said = _Said(text)
    points = sum(worth * said.times(listed) for worth, listed in _cues().tension.items())
    raised = points * _STRETCH / max(measures.words, _STRETCH) * _WEIGHT
    return max(0, min(HIGHEST, math.floor(_USUAL + raised + 0.5)))


class _Said:
    """A text in which words and phrases are counted."""

    def __init__(self, text: str) -> None:
        self._text = folded(text)
        self._words = Counter(words(self._text))

    def times(self, listed: tuple[str, ...]) -> int:
        """Return how often one of *listed* is said."""
        phrases = (phrase for phrase in listed if not phrase.isalnum())
        return sum(self._words[word] for word in listed) + sum(self._text.count(phrase) for phrase in phrases)


def is_nobody(said: str) -> bool:
    """Return whether *said* is a word that begins like a name, and names nobody in particular: "Everyone"."""
    return said.casefold() in _cues().nobody


@cache
def _cues() -> _Cues:
    return _Cues.model_validate(tomllib.loads(_CUES.read_text("utf-8")))
