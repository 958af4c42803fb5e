"""What a response is like: judged by a model or by rules, and counted in any case."""

from typing import Any

import pytest

from contracts.analysis_background import ResponseAnalysis
from contracts.errors import LlmTimeout
from contracts.stories import StoryChange
from tests.unit.story.stage import CHANGES, CORWIN, HANNE, INES, LANTERN, MARA, TAVERN, TOBIAS, analysed, story
from workers.agents.story.response_analyzer import SceneReading, agent
from workers.agents.story.rules.scenes import measured, scene_of, tension_of

#: A sentence that is longer than the name of any place.
WHOLE = "The wind had gone round to the north and blew the spray over the wall and far into the lane behind it."


def reading(**fields: Any) -> SceneReading:
    """Return what a model makes of the response."""
    usual: dict[str, Any] = {
        "scene_type": "dialogue",
        "tension": 6,
        "in_scene": (MARA, TOBIAS),
        "mentioned": (INES,),
        "location": LANTERN,
        "timestamp": "Monday, 9:15 PM",
    }
    return SceneReading(reasoning="so", **{**usual, **fields})


def past(*scenes: tuple[str, float]) -> dict[int, dict[str, StoryChange]]:
    """Return earlier scenes, the latest last, none of which tells its time."""
    return {
        number: {"resp_analyzer": StoryChange(scene=scene, tension=tension)}
        for number, (scene, tension) in enumerate(scenes, 1)
    }


async def test_rules_read_a_response_without_a_model() -> None:
    """They say so, and what they find is the document's section."""
    section, _ = await analysed(agent)

    assert section == {
        "by": "rules",
        "scene": {"type": "dialogue", "pace": "fast", "tension": 7, "words": 134, "dlg": 0.46},
        "chars": {"in_scene": [MARA, TOBIAS], "mentioned": [INES, CORWIN]},
        "loc": LANTERN,
        "time": {"elapsed": 45, "timestamp": "Monday, 9:15 PM"},
    }
    ResponseAnalysis.model_validate(section)


async def test_a_model_that_fails_leaves_it_to_the_rules() -> None:
    """The section is the same as without one."""
    assert (await analysed(agent, LlmTimeout("late")))[0] == (await analysed(agent))[0]


async def test_a_model_judges_and_python_counts() -> None:
    """Type, tension, persons and place are the model's; words, share, pace and minutes are not."""
    section, kit = await analysed(agent, reading(scene_type="conflict", tension=8, in_scene=("Mara",), mentioned=()))

    assert section["by"] == "scripted"
    assert section["scene"] == {"type": "conflict", "pace": "fast", "tension": 8, "words": 134, "dlg": 0.46}
    assert section["chars"] == {"in_scene": [MARA], "mentioned": []}
    assert section["time"]["elapsed"] == 45
    assert "dialogue, tension 3/10, Monday, 8:30 PM" in kit.asked[0].user


async def test_what_a_model_says_is_known_or_stands_in_the_response() -> None:
    """Somebody without a file is named as the text has it; what is invented or a place is nobody."""
    said = reading(
        in_scene=("the keeper", "Tobias", "Mara Voss", "Gandalf", "She", "somebody", "ledger", LANTERN),
        mentioned=("Tobias", "Hanne", "Ledger", "The Devil"),
        location="Atlantis",
        timestamp="Tuesday noon",
    )

    section, _ = await analysed(agent, said)

    assert section["chars"] == {"in_scene": [MARA, TOBIAS], "mentioned": [HANNE, "Ledger"]}
    assert section["loc"] == LANTERN
    assert section["time"]["timestamp"] == "Monday, 9:15 PM"


@pytest.mark.parametrize(
    ("said", "location"),
    [("salt quay tavern", TAVERN), ("the  drowned boat", "the drowned boat"), ("", None), (WHOLE, None)],
)
async def test_a_place_is_a_known_one_or_words_of_the_response(said: str, location: str | None) -> None:
    """By its full name, or as it stands there."""
    told = story(f"{WHOLE} Mara hid below the drowned boat.")

    section, _ = await analysed(agent, reading(location=said, timestamp="", mentioned=()), told=told)

    assert section.get("loc") == location


@pytest.mark.parametrize(("said", "tension"), [(12.0, 10), (-3.0, 0), (6.4, 6), (float("nan"), 7)])
async def test_tension_stays_on_its_scale(said: float, tension: int) -> None:
    """Whatever a model says."""
    section, _ = await analysed(agent, reading(tension=said))

    assert section["scene"]["tension"] == tension


def test_a_scene_of_an_unknown_type_is_another_one() -> None:
    """A model's own word costs no answer."""
    assert SceneReading.model_validate({**reading().model_dump(), "scene_type": "heist"}).scene_type == "other"


async def test_alerts_look_back_over_the_last_responses() -> None:
    """Four of five of one type, and as many responses as the tension has stood still."""
    scenes = past(("action", 2), ("dialogue", 6), ("dialogue", 6), ("dialogue", 6))

    section, _ = await analysed(agent, reading(tension=6), told=story(number=5, changes=scenes))
    assert section["alerts"] == {
        "variety": "Last 4/5 dialogue-heavy",
        "pacing": "Tension steady at 6/10 for 4 responses",
    }

    section, _ = await analysed(agent, reading(tension=5), told=story(number=4, changes=scenes))
    assert "alerts" not in section


async def test_an_alert_counts_as_far_back_as_the_tension_stands_still() -> None:
    """Not only to the window of another alert."""
    section, _ = await analysed(agent, reading(tension=6), told=story(number=13, changes=past(*[("action", 6)] * 12)))

    assert section["alerts"]["pacing"] == "Tension steady at 6/10 for 13 responses"


async def test_a_later_response_counts_for_nothing() -> None:
    """An old response that is analysed again sees the story as it stood."""
    later = {**CHANGES, 4: {"resp_analyzer": StoryChange(scene="dialogue", tension=7, timestamp="Friday noon")}}

    assert (await analysed(agent, told=story(changes=later)))[0] == (await analysed(agent))[0]


@pytest.mark.parametrize(
    ("text", "changes", "time"),
    [
        ("At 3 PM she left. She was home at 3:30 PM.", {}, {"elapsed": 30, "timestamp": "3:30 PM"}),
        ("She was home at 3:30 PM.", {}, {"timestamp": "3:30 PM"}),
        ("Tuesday, 8 a.m. It rained.", CHANGES, {"elapsed": 690, "timestamp": "Tuesday, 8 a.m."}),
        ('"Come at noon," she said.', CHANGES, None),
        ("It rained.", CHANGES, None),
        ("Monday, 8:00 PM. Elsewhere it rained.", CHANGES, {"timestamp": "Monday, 8:00 PM"}),
    ],
)
async def test_time_is_told_by_the_response_and_counted_in_minutes(text: str, changes: Any, time: Any) -> None:
    """Since the last response that told one, else within this one; what somebody says is no clock, and no step back."""
    section, _ = await analysed(agent, told=story(text, changes=changes))

    assert section.get("time") == time


@pytest.mark.parametrize(
    ("text", "scene"),
    [
        ('"No," she said. "I cannot stay here with you."', "dialogue"),
        ('"Liar!" She shouted and struck him. "How dare you!"', "conflict"),
        ("He ran, leapt over the wall, grabbed the rope and climbed.", "action"),
        ("She wondered and remembered; she felt nothing but regret.", "introspection"),
        ("They kissed, and she blushed with longing.", "romance"),
        ("The next day they set out, and hours passed before they arrived.", "transition"),
        ("The clerk counted eleven crowns into a box.", "description"),
        ("...", "other"),
    ],
)
def test_rules_tell_a_scene_by_its_words(text: str, scene: str) -> None:
    """And by how much of it is spoken."""
    assert scene_of(text, measured(text)) == scene


def test_rules_tell_tension_by_words_and_length() -> None:
    """More of them raise it, calm ones lower it, and it stays from 0 to 10."""
    calm, plain, tense = (
        "She smiled and hummed at breakfast.",
        "She sat.",
        "He screamed. Blood! The knife! They attacked!",
    )
    tensions = [tension_of(text, measured(text)) for text in (calm, plain, tense)]

    assert tensions == sorted(set(tensions))
    assert tension_of(tense * 50, measured(tense * 50)) == 10
    assert tension_of(calm * 50, measured(calm * 50)) == 0
    diluted = tense + " She sat down and looked." * 100
    assert tension_of(diluted, measured(diluted)) < tensions[-1]
