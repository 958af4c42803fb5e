"""What a response is like: its scene, who is in it, where and when, and the rhythm of the last responses.

What can be counted is counted. What must be understood a model says, with the words of the response that show it.
"""

import asyncio
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Literal, TypeVar

from contracts.analysis_background import Alerts, Characters, ResponseAnalysis, Scene, StoryTime
from contracts.analysis_pieces import Piece
from contracts.stories import Entity
from contracts.words import reads_unknown_as_other
from memory.stories.arithmetic import dialogue_share, pace, pacing_alert, plain, variety_alert
from memory.stories.view import PastScene
from workers import Agent, Context
from workers.agents.story.asking import RULES, Asked, Block, asked
from workers.agents.story.grounding import MOST_CHECKED, faults_of, name_in, quotation_in
from workers.agents.story.names import Names, counts_of
from workers.agents.story.text import quotations, sentences, words
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "resp_analyzer"

#: Responses that are looked back at: as far as an alert on a tension that does not change counts.
_PAST = 50
#: Minutes that a response may take: a hundred years.
_LONGEST_STEP = 100 * 366 * 24 * 60
#: Characters of a place or a time in a model's words, and the highest tension.
_LONGEST, HIGHEST = 80, 10

_Type = Literal["dialogue", "action", "description", "introspection", "romance", "conflict", "transition", "other"]
#: What kinds of scenes there are; whatever else a model says is `other`.
SceneType = Annotated[_Type, reads_unknown_as_other(_Type)]

_Part = TypeVar("_Part", bound=Piece)

agent = Agent("StoryResponseAgent", description="Tells what a response is like: scene, characters, place and time.")


class Person(Answer):
    """Somebody whom the response has, and words that show it."""

    name: str
    quotation: str


class SceneReading(Answer):
    """What a model makes of a response; texts are empty, and minutes -1, where it does not say."""

    reasoning: str
    scene_type: SceneType
    tension: float
    in_scene: tuple[Person, ...]
    mentioned: tuple[Person, ...]
    location: str
    location_quotation: str
    timestamp: str
    elapsed_minutes: float
    time_quotation: str


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> ResponseAnalysis:
    """Return what the response is like."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    past = await story.past_scenes(_PAST)
    shown = (Block("known", _known(entities), rank=2), Block("before", _before(past)), Block.response(response.text))
    answer = await asked(context, SECTION, SceneReading, blocks=shown, faults=lambda said: _faults(said, response.text))
    return await asyncio.to_thread(_section, response.text, entities, past, answer)


def _faults(said: SceneReading, text: str) -> Iterator[str]:
    for field in ("in_scene", "mentioned"):
        for number, one in enumerate(getattr(said, field), start=1):
            yield from faults_of(f"{field} {number}", one.quotation, text)
    for field, quotation in (("location", said.location_quotation), ("timestamp", said.time_quotation)):
        if getattr(said, field):
            yield from faults_of(field, quotation, text)


def _section(
    text: str, entities: Sequence[Entity], past: Sequence[PastScene], answer: Asked[SceneReading] | None
) -> ResponseAnalysis:
    total = len(words(text))
    measures = {
        "words": total,
        "dialogue_share": dialogue_share(sum(len(words(one.text)) for one in quotations(text)), total),
        "pace": pace(total, len(sentences(text))),
    }
    if answer is None:
        kinds = {entity.name: entity.kind for entity in entities}
        named = tuple(name for name in counts_of(text, entities) if kinds[name] == "character")
        return ResponseAnalysis(by=RULES, scene=Scene.model_validate(measures), characters=Characters(mentioned=named))
    said = answer.value
    tension = None if math.isnan(said.tension) else round(min(max(said.tension, 0.0), HIGHEST))
    judged = {"type": said.scene_type, **({} if tension is None else {"tension": plain(tension)})}
    in_scene = tuple(_persons(said.in_scene, text, entities))
    mentioned = tuple(name for name in _persons(said.mentioned, text, entities) if name not in in_scene)
    alerts = {
        "variety": variety_alert([said.scene_type, *(one.scene for one in past)]),
        "pacing": pacing_alert([tension, *(one.tension for one in past)]),
    }
    return _given(
        ResponseAnalysis,
        by=answer.model,
        scene=Scene.model_validate({**judged, **measures}),
        characters=Characters(in_scene=in_scene, mentioned=mentioned),
        location=_place(said, text, entities),
        time=_time(said, text),
        alerts=_given(Alerts, **alerts) if any(alerts.values()) else None,
    )


def _given(shape: type[_Part], **told: object) -> _Part:
    """Return a part of the document with what is told; None is not written."""
    return shape.model_validate({name: value for name, value in told.items() if value is not None})


def _persons(said: Iterable[Person], text: str, entities: Sequence[Entity]) -> Iterator[str]:
    """Yield who is meant, once each: characters with a file by full name, others as the text has them."""
    kinds = {entity.name: entity.kind for entity in entities}
    told: set[str] = set()
    for one in islice(said, MOST_CHECKED):
        name = name_in(one.name, text, entities) if quotation_in(one.quotation, text) is not None else None
        if name is not None and name not in told and kinds.get(name, "character") == "character":
            told.add(name)
            yield name


def _place(said: SceneReading, text: str, entities: Sequence[Entity]) -> str | None:
    if quotation_in(said.location_quotation, text) is None:
        return None
    known = Names([entity for entity in entities if entity.kind == "location"]).owner(said.location)
    return known or (" ".join(said.location.split())[:_LONGEST] or None)


def _time(said: SceneReading, text: str) -> StoryTime | None:
    """Return the time that a model read; None where the response shows none."""
    if quotation_in(said.time_quotation, text) is None:
        return None
    elapsed = plain(said.elapsed_minutes) if 0 <= said.elapsed_minutes <= _LONGEST_STEP else None
    timestamp = " ".join(said.timestamp.split())[:_LONGEST] or None
    if elapsed is None and timestamp is None:
        return None
    return _given(StoryTime, elapsed_minutes=elapsed, timestamp=timestamp)


def _known(entities: Sequence[Entity]) -> list[str]:
    """Return who and what has a file, a line each: characters first, other kinds than places left out."""
    ordered = sorted(entities, key=lambda one: one.kind != "character")
    shown = (one for one in ordered if one.kind in ("character", "location"))
    return [f"{one.kind}: {', '.join((one.name, *one.aliases))}" for one in shown]


def _before(past: Sequence[PastScene]) -> list[str]:
    """Return the last scene, for how tension and time have moved."""
    last = past[:1]
    return [f"{one.scene}, tension {plain(one.tension or 0)}/10, {one.timestamp or 'no time told'}" for one in last]
