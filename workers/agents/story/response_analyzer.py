"""Analyse a response: its scene, who is in it, where and when, and the rhythm of the last responses.

A model judges scene, tension, presence, place and time; words, dialogue, pace and alerts are counted.
"""

from collections.abc import Iterable, Iterator

from tasklore import Agent
from tasklore.contracts.analysis.background import ResponseAnalysis
from tasklore.memory.stories.arithmetic import (
    dialogue_share,
    pace,
    pacing_alert,
    plain,
    variety_alert,
)
from tasklore.workers.agents.story.blocks import plain_prose
from tasklore.workers.agents.story.checks import (
    LONGEST_NAME,
    FindingFault,
    check_length,
    check_person,
    stands_in,
)
from tasklore.workers.agents.story.parts import (
    Count,
    Finding,
    Part,
    Text,
    one_of,
    without_none,
)
from tasklore.workers.agents.story.prose import quotations, sentences, words
from tasklore.workers.agents.story.question import serve
from tasklore.workers.agents.story.view import StoryView
from tasklore.workers.answers import AnswerSchema

SCENES = (
    "dialogue",
    "action",
    "description",
    "introspection",
    "romance",
    "conflict",
    "transition",
    "other",
)
#: The highest tension, and minutes that a response takes at most: a year.
_HIGHEST = 10
_LONGEST_STEP = 366 * 24 * 60


class Person(Finding):
    """A person in the scene, or only mentioned."""

    name: Text = ""
    presence: Text = one_of("in_scene", "mentioned")


class Place(Finding):
    """Where the response ends."""

    name: Text = ""


class SceneTime(Finding):
    """When it ends, in its own words."""

    words: Text = ""


class Elapsed(Finding):
    """A stretch of story time that passes."""

    minutes: Count = -1


class SceneReading(AnswerSchema):
    """All that a model finds in a response."""

    reasoning: Text
    scene_type: Text = one_of(*SCENES)
    tension: Count = -1
    characters: tuple[Person, ...] = ()
    places: tuple[Place, ...] = ()
    moments: tuple[SceneTime, ...] = ()
    elapsed: tuple[Elapsed, ...] = ()


class ScenePart(Part[SceneReading, ResponseAnalysis]):
    """Analyse the scene of the response."""

    section = "resp_analyzer"
    answer = SceneReading
    result = ResponseAnalysis
    needs = ("scenes",)
    blocks = ("names", "before", "response")

    def faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        """Yield faults of persons, places and times."""
        text = plain_prose(view.response.text)
        if isinstance(finding, Person):
            yield from check_person("name", finding.name, view)
        elif isinstance(finding, Place):
            yield from check_length("name", finding.name, LONGEST_NAME)
            if _find_place(finding.name, view) is None and not stands_in(
                finding.name, text
            ):
                yield FindingFault(
                    "name", "is no known place; use words of the response"
                )
        elif isinstance(finding, SceneTime):
            yield from check_length("words", finding.words, LONGEST_NAME)
            if not all(stands_in(word, text) for word in words(finding.words)):
                yield FindingFault("words", "must be words of the response alone")
        elif isinstance(finding, Elapsed) and not 0 <= finding.minutes <= _LONGEST_STEP:
            yield FindingFault(
                "minutes", f"must be a whole number from 0 to {_LONGEST_STEP}"
            )

    def reduce(self, view: StoryView, answer: SceneReading | None) -> ResponseAnalysis:
        """Count words, dialogue and alerts; without an answer, characters are only mentioned."""
        text = view.response.text
        total = len(words(text))
        spoken = sum(len(words(speech)) for speech in quotations(text))
        counts = {"words": total, "dialogue_share": dialogue_share(spoken, total)}
        scene: dict[str, object] = {"pace": pace(total, len(sentences(text))), **counts}
        if answer is None:
            return ResponseAnalysis.model_validate(
                {"scene": scene, "characters": {"mentioned": view.characters}}
            )
        kind = answer.scene_type if answer.scene_type in SCENES else "other"
        tension = min(max(answer.tension, 0), _HIGHEST) if answer.tension >= 0 else None
        scene = {
            "type": kind,
            "pace": scene["pace"],
            **without_none(tension=tension),
            **counts,
        }
        present = _full_names(
            (one.name for one in answer.characters if one.presence == "in_scene"), view
        )
        mentioned = [
            name
            for name in _full_names((one.name for one in answer.characters), view)
            if name not in present
        ]
        new = [name for name in (*present, *mentioned) if name not in view.by_name]
        rest = without_none(
            location=next(
                (_find_place(one.name, view) or one.name for one in answer.places), None
            ),
            time=without_none(
                elapsed=plain(sum(one.minutes for one in answer.elapsed))
                if answer.elapsed
                else None,
                timestamp=next((one.words for one in answer.moments), None),
            ),
            alerts=without_none(
                variety=variety_alert([kind, *(one.scene for one in view.scenes)]),
                pacing=pacing_alert([tension, *(one.tension for one in view.scenes)]),
            ),
        )
        people = {
            "in_scene": present,
            "mentioned": mentioned,
            **({"new": new} if new else {}),
        }
        return ResponseAnalysis.model_validate(
            {"scene": scene, "characters": people, **rest}
        )


agent = serve(
    ScenePart(),
    Agent(
        "StoryResponseAgent",
        description="Tells what a response is like: scene, characters, place and time.",
    ),
)


def _full_names(names: Iterable[str], view: StoryView) -> list[str]:
    return list(dict.fromkeys(view.owner_of(" ".join(name.split())) for name in names))


def _find_place(name: str, view: StoryView) -> str | None:
    owner = view.handles.owner(name)
    return (
        owner if owner is not None and view.by_name[owner].kind == "location" else None
    )
