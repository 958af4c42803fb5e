"""The score of recorded answers: each finding is right or not by a key, and each entry of a key is found or not."""

from typing import Any

import pytest

from contracts.analysis.roster import ROSTER, model_of
from tests.story_reading.recorded import base_of, run
from tests.story_reading.scores import Score
from tests.story_reading.stage import Telling
from tests.unit.workers.agents.story.stage import RESPONSE
from tests.unit.workers.agents.story.test_sharing import Oracle
from tests.unit.workers.agents.story.test_sharing import sections as found_by

KEY: dict[str, Any] = {
    "scene": {"type": "social", "also": ["dialogue"]},
    "characters": ["Mara", "Tobias Reed"],
    "mentioned": ["Ines Calder"],
    "place": ["lighthouse|lantern house"],
    "time": ["monday"],
    "elapsed": [],
    "memories": [{"who": "Mara", "must_mention": ["rope", "confess|admit"]}, {"must_mention": ["whale"]}],
    "relationships": [{"between": ["Tobias", "Mara"], "direction": "up"}],
    "threads": [{"state": "touched", "must_mention": ["debt"]}, {"state": "resolved", "must_mention": ["debt"]}],
    "knowledge": [{"must_mention": ["boat"], "known_by": ["Mara", "Ines"]}],
    "contradictions": [{"old_mentions": ["gallery"], "new_mentions": ["boat"]}],
    "optional": [{"section": "memories", "must_mention": ["comfort"]}],
}


async def sections() -> Any:
    """Return what a right model leaves of the response of the stage."""
    models = {seat.section: model_of(seat.section) for seat in ROSTER}
    told = await found_by("ten", Oracle())
    return {name: models[name].model_validate(body) for name, body in told.items()}  # type: ignore[union-attr]


async def test_what_is_found_is_held_to_the_key_and_the_key_to_what_is_found() -> None:
    """By section; what is optional is right and not wanted."""
    score = Score()
    score.add({"id": "c1", "key": KEY}, await sections())

    told = {
        name: (score.right[name], score.found[name], score.met[name], score.wanted[name])
        for name in score.wanted | score.found
    }
    assert told["scene type"] == (1, 1, 1, 1)
    assert told["characters"] == (2, 2, 2, 2)
    assert told["mentioned"] == (1, 2, 1, 1)
    assert (told["place"], told["time"], told["elapsed"]) == ((1, 1, 1, 1), (1, 1, 1, 1), (0, 1, 0, 0))
    assert told["memories"] == (2, 2, 1, 2)
    assert told["relationships"] == (1, 1, 1, 1)
    assert told["threads"] == (1, 3, 1, 2)
    assert told["knowledge"] == (1, 2, 1, 1)
    assert told["known by"] == (1, 2, 1, 2)
    assert told["contradictions"] == (1, 1, 1, 1)
    assert any("missed {'must_mention': ['whale']}" in miss for miss in score.misses)
    assert "memories           100 % (2/2)    50 % (1/2)" in "\n".join(score.lines())


async def test_a_contradiction_that_is_no_planted_one_is_false() -> None:
    """Also where the right statement is held against the wrong words."""
    key = {**KEY, "contradictions": [{"old_mentions": ["gallery"], "new_mentions": ["harbour"]}]}
    score = Score()
    score.add({"id": "c1", "key": key}, await sections())

    assert (score.right["contradictions"], score.found["contradictions"], score.met["contradictions"]) == (0, 1, 0)


@pytest.mark.parametrize("calls", ["ten", "one"])
async def test_what_agents_find_is_known_in_the_next_chapter(calls: str) -> None:
    """New memories and facts are shown, and a thread that was opened is open."""
    story = {
        "id": "quay",
        "characters": [
            {"name": "Mara Voss", "aliases": ["the keeper"]},
            {"name": "Tobias Reed"},
            {"name": "Corwin Ashdown"},
        ],
        "before": {
            "memories": [{"who": "Mara", "text": "Mara watched from the gallery"}],
            "threads": [{"title": "Debt"}],
        },
    }
    telling, llm = Telling(base_of(story), calls), Oracle()
    await telling.tell(RESPONSE, llm)
    llm.calls.clear()

    await telling.tell(RESPONSE.model_copy(update={"number": 4, "text": f"{RESPONSE.text} Then they slept."}), llm)

    shown = "\n".join(user for _, _, user in llm.calls)
    assert "MEM-3-rope (Mara Voss)" in shown
    assert "Mara Voss: Mara was in the boat the night her father drowned." in shown
    assert "THREAD-002: What happened in the boat" in shown


async def test_a_chapter_without_answers_is_written_and_not_scored(tmp_path: Any) -> None:
    """Its prompts lie in files by their digest, and the rest of the story waits for it."""
    chapter = {"id": "c1", "part": "held", "text": RESPONSE.text, "key": KEY}
    story = {"id": "quay", "characters": [{"name": "Mara Voss"}], "chapters": [chapter, {**chapter, "id": "c2"}]}

    score, _, unanswered = await run([story], tmp_path, None, "ten")

    names = sorted(path.name for path in tmp_path.iterdir())
    assert (score.chapters, unanswered) == (0, len(names))
    assert all(name.startswith("c1-") and name.endswith(".txt") for name in names)
    assert {name.split("-")[1] for name in names} >= {"knowledge", "memory_create", "resp_analyzer"}
    assert all(RESPONSE.text in (tmp_path / name).read_text("utf-8") for name in names)
