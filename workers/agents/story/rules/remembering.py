"""What makes a sentence worth remembering, by rules; the words are data, in `memory_cues.toml`."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from contracts.analysis_background import NewMemory
from contracts.stories import Entity, StoryResponse
from workers.agents.story.reading.casting import Cast
from workers.agents.story.reading.deeds import Deed, deeds_in
from workers.agents.story.reading.grounding import tags_from
from workers.agents.story.reading.phrases import affirmed, one_line
from workers.agents.story.reading.prose import words

#: Characters of a summary, and of a quote that is kept.
LONGEST_SUMMARY, _LONGEST_QUOTE = 140, 160
#: The significance of what changes a life.
HIGHEST = 10

_CUES = Path(__file__).with_name("memory_cues.toml")
#: A mark that closes what was opened before the sentence.
_CLOSES = re.compile(r'[^"]*[^\s"]"')
_QUOTES = ' "\u201c\u201d\u201e\u00ab\u00bb'


@dataclass(frozen=True, slots=True)
class Cue:
    """One kind of thing that is remembered: `weight` is its significance from 1 to 10."""

    name: str
    type: str
    tone: str
    weight: int
    words: tuple[str, ...]


@cache
def memory_cues() -> tuple[Cue, ...]:
    """Return every kind, the weightiest first."""
    tables = tomllib.loads(_CUES.read_text("utf-8"))
    cues = [
        Cue(name, str(told["type"]), str(told["tone"]), int(told["weight"]), tuple(map(str, told["words"])))
        for name, told in tables.items()
    ]
    return tuple(sorted(cues, key=lambda cue: -cue.weight))


def by_rules(response: StoryResponse, entities: Sequence[Entity], scene: Cast) -> list[NewMemory]:
    """Return the weightiest sentence of each kind for each character in the scene."""
    found: dict[tuple[str, str], NewMemory] = {}
    for deed in deeds_in(response.text, entities, scene):
        cues = [cue for cue in memory_cues() if affirmed(cue.words, deed.text)]
        if not cues:
            continue
        weight = min(HIGHEST, cues[0].weight + len(cues) - 1)
        before = found.get((deed.who, cues[0].name))
        if before is None or before.significance < weight:
            found[deed.who, cues[0].name] = _remembered(deed, cues, weight, response.number, scene)
    return list(found.values())


def _remembered(deed: Deed, cues: Sequence[Cue], weight: int, number: int, scene: Cast) -> NewMemory:
    told = _closed(deed.sentence)
    if deed.is_said and len(deed.text) == len(deed.sentence):
        # A whole sentence of speech: with what is said around it, when that is not too long.
        spoken = (deed.quotation or "", deed.text.strip(_QUOTES))
        told = next((said for said in spoken if 0 < len(said) <= LONGEST_SUMMARY), spoken[-1])
    return memory(
        id=f"MEM-{number}-{cues[0].name}",
        character=deed.who,
        location=place(scene),
        type=cues[0].type,
        significance=weight,
        tone=cues[0].tone,
        summary=one_line(told, LONGEST_SUMMARY),
        quote=_quote(deed),
        tags=tags_from((*(cue.name for cue in cues), words(deed.who)[0])),
    )


def _quote(deed: Deed) -> str | None:
    """Return what is said there: all of it when that is short, else the sentence of it, else nothing."""
    sentence = deed.text.strip(_QUOTES) if deed.is_said else ""
    quote = next((said for said in (deed.quotation, sentence) if said and len(said) <= _LONGEST_QUOTE), None)
    return quote and quote.rstrip(" ,")


def _closed(sentence: str) -> str:
    """Return *sentence* with the mark that it lacks where it is a part of what is said."""
    if sentence.count('"') % 2 == 0:
        return sentence
    return f'"{sentence}' if _CLOSES.match(sentence) else f'{sentence}"'


def memory(**told: object) -> NewMemory:
    """Return a memory of what is *told*; None is not written."""
    return NewMemory.model_validate({name: value for name, value in told.items() if value is not None})


def place(scene: Cast) -> str | None:
    """Return where it happens: the place that is named first."""
    return scene.locations[0] if scene.locations else None
