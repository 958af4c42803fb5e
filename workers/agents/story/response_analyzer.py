"""What a response is like: its scene, who is in it, where and when, and the rhythm of the last responses.

A model judges type and tension of the scene, and who is there without being named; everything that can be counted is
counted. What it says of persons, place and time must be known to the story or stand in the response.
"""

import asyncio
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from contracts.analysis_background import Characters, ResponseAnalysis, Scene
from contracts.stories import Entity
from memory.stories.arithmetic import pacing_alert, plain, variety_alert
from memory.stories.view import PastScene
from workers import Agent, Context
from workers.agents.story.asking import RULES, Block, asked
from workers.agents.story.reading.casting import Handles, cast_of, named
from workers.agents.story.reading.grounding import MOST_CHECKED
from workers.agents.story.reading.prose import narration, stands_in
from workers.agents.story.reading.story_time import clock_in, elapsed_minutes, moments_in
from workers.agents.story.rules.scenes import HIGHEST, Measures, SceneType, is_nobody, measured, scene_of, tension_of
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "resp_analyzer"

#: Responses that are looked back at: as far as an alert on a tension that does not change counts.
_PAST = 50
#: Minutes that a response takes at most: six days. What looks like more is a step back within the same week, to what
#: happened somewhere else meanwhile.
_LONGEST_STEP = 6 * 24 * 60
#: Characters of a name, a place or a time in a model's words.
_LONGEST = 80

agent = Agent("StoryResponseAgent", description="Tells what a response is like: scene, characters, place and time.")


class SceneReading(Answer):
    """What a model makes of a response; texts are empty where it does not say."""

    reasoning: str
    scene_type: SceneType
    tension: float
    in_scene: tuple[str, ...]
    mentioned: tuple[str, ...]
    location: str
    timestamp: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What must be understood of a response, by rules or by a model; None for a place or time that is not told."""

    scene: SceneType
    tension: float
    in_scene: tuple[str, ...]
    mentioned: tuple[str, ...]
    location: str | None
    timestamp: str | None


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> ResponseAnalysis:
    """Return what the response is like."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    past = await story.past_scenes(_PAST)
    measures, reading = await asyncio.to_thread(read_by_rules, response.text, entities)
    shown = (Block.response(response.text), Block("known", _known(entities), rank=2), Block("before", _before(past)))
    answer = await asked(context, SECTION, SceneReading, blocks=shown)
    if answer is not None:
        reading = await asyncio.to_thread(checked, answer.value, reading, response.text, entities)
    by = RULES if answer is None else answer.model
    return await asyncio.to_thread(_section, reading, measures, past, response.text, by=by)


def read_by_rules(text: str, entities: Sequence[Entity]) -> tuple[Measures, Reading]:
    """Return what is counted in *text*, and what rules make of it."""
    measures, cast, told = measured(text), cast_of(text, entities), narration(text)
    places = Handles([entity for entity in entities if entity.kind == "location"]).find(told)
    moment = clock_in(told)
    reading = Reading(
        scene=scene_of(text, measures),
        tension=tension_of(text, measures),
        in_scene=cast.in_scene,
        mentioned=cast.mentioned,
        location=places[0].name if places else None,
        timestamp=None if moment is None else _without_stop(" ".join(moment.words.split())),
    )
    return measures, reading


def checked(answer: SceneReading, rules: Reading, text: str, entities: Sequence[Entity]) -> Reading:
    """Return what holds of *answer*; what does not is as the *rules* have it."""
    in_scene = tuple(_persons(answer.in_scene, text, entities)) or rules.in_scene
    mentioned = tuple(name for name in _persons(answer.mentioned, text, entities) if name not in in_scene)
    tension = rules.tension if math.isnan(answer.tension) else min(max(answer.tension, 0.0), HIGHEST)
    return replace(
        rules,
        scene=answer.scene_type,
        tension=round(tension),
        in_scene=in_scene,
        mentioned=mentioned,
        location=_place(answer.location, text, entities) or rules.location,
        timestamp=_from_text(answer.timestamp, text) or rules.timestamp,
    )


def _section(
    reading: Reading, measures: Measures, past: Sequence[PastScene], text: str, *, by: str
) -> ResponseAnalysis:
    scene = Scene(
        type=reading.scene,
        pace=measures.pace,
        tension=plain(reading.tension),
        words=measures.words,
        dialogue_share=measures.dialogue_share,
    )
    variety = variety_alert([reading.scene, *(one.scene for one in past)])
    pacing = pacing_alert([reading.tension, *(one.tension for one in past)])
    told = {
        "location": reading.location,
        "time": _given(elapsed=_elapsed(reading.timestamp, past, text), timestamp=reading.timestamp),
        "alerts": _given(variety=variety, pacing=pacing),
    }
    characters = Characters(in_scene=reading.in_scene, mentioned=reading.mentioned)
    return ResponseAnalysis.model_validate({"by": by, "scene": scene, "characters": characters, **_given(**told)})


def _given(**values: object) -> dict[str, object]:
    """Return those of *values* that are told."""
    return {name: value for name, value in values.items() if value is not None and value != {}}


def _elapsed(now: str | None, past: Sequence[PastScene], text: str) -> int | None:
    """Return the minutes since the last response that told its time; in the first one, those that it tells itself."""
    before = next((one.timestamp for one in past if one.timestamp is not None), None)
    if before is None:
        timed = [moment.words for moment in moments_in(narration(text)) if moment.minute is not None]
        before = timed[0] if len(timed) > 1 else None
    minutes = elapsed_minutes(before, now)
    return None if minutes is None or minutes > _LONGEST_STEP else minutes


def _persons(said: Iterable[str], text: str, entities: Sequence[Entity]) -> Iterator[str]:
    """Yield who is meant by *said*, once each: characters with a file by full name, others as the text has them."""
    kinds = {entity.name: entity.kind for entity in entities}
    told: set[str] = set()
    for one in islice(said, MOST_CHECKED):
        name = named(one, entities)
        if name is None and one[:1].isupper() and not is_nobody(one):
            name = _from_text(one, text)
        if name is not None and name not in told and kinds.get(name, "character") == "character":
            told.add(name)
            yield name


def _place(said: str, text: str, entities: Sequence[Entity]) -> str | None:
    name = named(said, [entity for entity in entities if entity.kind == "location"])
    return name or _from_text(said, text)


def _from_text(said: str, text: str) -> str | None:
    """Return *said* as one line when it stands in *text*, None when it does not."""
    line = " ".join(said.split())
    return line if len(line) <= _LONGEST and stands_in(line, text) else None


def _known(entities: Sequence[Entity]) -> list[str]:
    """Return who and what has a file, a line each: characters first, other places than locations left out."""
    ordered = sorted(entities, key=lambda one: one.kind != "character")
    shown = (one for one in ordered if one.kind in ("character", "location"))
    return [f"{one.kind}: {', '.join((one.name, *one.aliases))}" for one in shown]


def _before(past: Sequence[PastScene]) -> list[str]:
    """Return the last scene, for how tension and time have moved."""
    last = past[:1]
    return [f"{one.scene}, tension {plain(one.tension or 0)}/10, {one.timestamp or 'no time told'}" for one in last]


def _without_stop(words: str) -> str:
    """Return *words* without the dot of their sentence; that of "p.m." is their own."""
    return words if "." in words.rpartition(" ")[2][:-1] else words.rstrip(".")
