"""What a response is like: its scene, who is in it, where and when, and the rhythm of the last responses.

A model judges scene, tension, who is present, place and time; words, dialogue, pace and alerts are counted.
"""

from collections.abc import Iterable, Iterator, Sequence

from contracts.analysis.background import ResponseAnalysis
from memory.stories.arithmetic import dialogue_share, pace, pacing_alert, plain, variety_alert
from workers import Agent, Context
from workers.agents.story.blocks import plain_prose
from workers.agents.story.parts import (
    LONGEST_NAME,
    Count,
    Fault,
    Finding,
    Part,
    Text,
    enroll,
    length_faults,
    one_of,
    person_faults,
    stands_in,
)
from workers.agents.story.prose import quotations, sentences, words
from workers.agents.story.seen import Seen, Turn
from workers.agents.story.sharing import analyse as analyse_part
from workers.answers import Answer

SCENES = ("dialogue", "action", "description", "introspection", "romance", "conflict", "transition", "other")
#: The highest tension, and minutes that a response takes at most: a year.
_HIGHEST, _LONGEST_STEP = 10, 366 * 24 * 60

agent = Agent("StoryResponseAgent", description="Tells what a response is like: scene, characters, place and time.")


class Person(Finding):
    """Somebody who is there, or is only spoken of."""

    name: Text = ""
    presence: Text = one_of("in_scene", "mentioned")


class Place(Finding):
    """Where the response ends."""

    name: Text = ""


class Moment(Finding):
    """When it ends, in its own words."""

    words: Text = ""


class Elapsed(Finding):
    """A stretch of story time that passes."""

    minutes: Count = -1


class SceneReading(Answer):
    """What a model makes of a response."""

    reasoning: Text
    scene_type: Text = one_of(*SCENES)
    tension: Count = -1
    characters: tuple[Person, ...] = ()
    places: tuple[Place, ...] = ()
    moments: tuple[Moment, ...] = ()
    elapsed: tuple[Elapsed, ...] = ()


class ScenePart(Part[SceneReading, ResponseAnalysis]):
    """The scene."""

    section = "resp_analyzer"
    answer = SceneReading
    needs = ("scenes",)
    blocks = ("names", "before", "response")

    def faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        """Yield persons and places that nothing names, and times that are not told."""
        text = plain_prose(seen.response.text)
        if isinstance(finding, Person):
            yield from person_faults("name", finding.name, seen)
        elif isinstance(finding, Place):
            yield from length_faults("name", finding.name, LONGEST_NAME)
            if _place(finding.name, seen) is None and not stands_in(finding.name, text):
                yield Fault("name", "is no known place; use words of the response")
        elif isinstance(finding, Moment):
            yield from length_faults("words", finding.words, LONGEST_NAME)
            if not all(stands_in(word, text) for word in words(finding.words)):
                yield Fault("words", "must be words of the response alone")
        elif isinstance(finding, Elapsed) and not 0 <= finding.minutes <= _LONGEST_STEP:
            yield Fault("minutes", f"must be a whole number from 0 to {_LONGEST_STEP}")

    def reduce(self, seen: Seen, answer: SceneReading | None) -> ResponseAnalysis:
        """Count what can be counted; who is merely named is not said to be there."""
        scene = _measure(seen.response.text)
        if answer is None:
            named = {"mentioned": seen.characters}
            return ResponseAnalysis.model_validate({"scene": scene, "characters": named})
        is_known = answer.scene_type in SCENES
        kind = answer.scene_type if is_known else "other"
        tension = min(max(answer.tension, 0), _HIGHEST) if answer.tension >= 0 else None
        scene = {"type": kind, "pace": scene.pop("pace"), **_given(tension=tension), **scene}
        variety = variety_alert([kind, *(one.scene for one in seen.scenes)])
        pacing = pacing_alert([tension, *(one.tension for one in seen.scenes)])
        told = {
            "location": next((_place(one.name, seen) or one.name for one in answer.places), None),
            "time": _given(
                elapsed=plain(sum(one.minutes for one in answer.elapsed)) if answer.elapsed else None,
                timestamp=next((one.words for one in answer.moments), None),
            ),
            "alerts": _given(variety=variety, pacing=pacing),
        }
        people = _cast(answer.characters, seen)
        return ResponseAnalysis.model_validate({"scene": scene, "characters": people, **_given(**told)})


PART = enroll(ScenePart())


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> ResponseAnalysis:
    """Return what the response is like."""
    return await analyse_part(PART, context)


def _measure(text: str) -> dict[str, object]:
    """Return what is counted in *text*: its words, the share of them that is spoken, and how fast it reads."""
    total, spoken = len(words(text)), sum(len(words(said)) for said in quotations(text))
    counted = {"words": total, "dialogue_share": dialogue_share(spoken, total)}
    return {"pace": pace(total, len(sentences(text))), **counted}


def _cast(persons: Sequence[Person], seen: Seen) -> dict[str, object]:
    """Return who is there and who is only spoken of, once each, and which of them have no file."""
    there = _once((one.name for one in persons if one.presence == "in_scene"), seen)
    mentioned = [name for name in _once((one.name for one in persons), seen) if name not in there]
    new = [name for name in (*there, *mentioned) if name not in seen.by_name]
    return {"in_scene": there, "mentioned": mentioned, **({"new": new} if new else {})}


def _once(names: Iterable[str], seen: Seen) -> list[str]:
    return list(dict.fromkeys(seen.owner_of(" ".join(name.split())) for name in names))


def _place(said: str, seen: Seen) -> str | None:
    owner = seen.handles.owner(said)
    return owner if owner is not None and seen.by_name[owner].kind == "location" else None


def _given(**values: object) -> dict[str, object]:
    """Return those of *values* that are told."""
    return {name: value for name, value in values.items() if value is not None and value != {}}
