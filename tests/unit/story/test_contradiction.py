"""What speaks against what was told: found by rules in files, facts and memories, and by a model only with proof."""

from typing import Any

import pytest

from contracts.analysis_background import KnownFact
from contracts.errors import LlmTimeout
from contracts.stories import StoryChange, StoryMemory
from tests.unit.story.crowded import BUDGET, question_tokens
from tests.unit.story.stage import BASE, CORWIN, INES, LANTERN, MARA, TOBIAS, analysed, story
from workers.agents.story.contradiction import MOST_FOUND, ProposedConflict, ProposedConflicts, agent

#: A response that says one thing against the file of Tobias, and nothing else that was told.
YOUNG = "Rain fell on Lantern House. Tobias was thirty years old, and the lamp was his. Nobody spoke."


def proposed(number: int = 1, **told: Any) -> ProposedConflict:
    """Return a contradiction that holds, but for what is *told*."""
    holds = {"quote": "Tobias was thirty years old", "severity": "critical", "reason": "He is nineteen."}
    return ProposedConflict(number=number, **{**holds, **told})


def answer(*conflicts: ProposedConflict) -> ProposedConflicts:
    """Return a model's answer."""
    return ProposedConflicts(reasoning="", contradictions=conflicts)


async def found(text: str, **fields: Any) -> list[tuple[str, str, str, str]]:
    """Return subject, old source, new statement and severity of everything that rules object to."""
    section, _ = await analysed(agent, told=story(text, **fields))
    assert section["by"] == "rules"
    assert section["enabled"] is True
    return [(one["subj"], one["old_src"], one["new"], one["sev"]) for one in section["found"]]


async def test_a_response_is_held_to_the_files() -> None:
    """The section has both statements, letter by letter, and where they stand."""
    section, _ = await analysed(agent, told=story(YOUNG))
    assert section == {
        "enabled": True,
        "by": "rules",
        "found": [
            {
                "subj": TOBIAS,
                "old": "19 years old, from the mainland",
                "old_src": "entities/Tobias.md",
                "new": "Tobias was thirty years old, and the lamp was his.",
                "new_src": "Ch1-R3",
                "sev": "major",
            }
        ],
    }


async def test_a_response_is_held_to_what_is_known() -> None:
    """A fact of an earlier response is named by its source."""
    facts = (KnownFact(subject=INES, fact="Has two sisters", source="Ch1-R2"),)
    known = {2: {"knowledge": StoryChange(facts=facts)}}
    said = "Ines had four sisters, and none of them wrote."
    assert await found(said, changes=known) == [(INES, "Ch1-R2", said, "major")]


async def test_a_response_is_held_to_what_is_remembered() -> None:
    """A memory is named by its id."""
    memory = StoryMemory(id="MEM-000-well", character=CORWIN, text="Corwin Ashdown never learned to read.")
    base = BASE.model_copy(update={"memories": (memory,)})
    said = "Corwin had learned to read from a priest."
    assert await found(said, base=base) == [(CORWIN, "MEM-000-well", said, "major")]


async def test_new_facts_are_held_to_what_was_told_too() -> None:
    """What the agent of knowledge found in other words than the response's counts like these."""
    left = {"knowledge": {"by": "scripted", "facts": [{"subj": TOBIAS, "fact": "Is 30 years old"}]}}
    assert await found("Rain fell on the boy.", sections=left) == [
        (TOBIAS, "entities/Tobias.md", "Is 30 years old", "major")
    ]


async def test_a_failed_section_of_knowledge_is_no_fact() -> None:
    """What is left of it is not read, and neither is what is none."""
    for left in ({"status": "failed", "error": "Boom: x", "facts": [{"subj": TOBIAS, "fact": "Is 30 years old"}]}, 7):
        assert await found("Rain fell on the boy.", sections={"knowledge": left}) == []


async def test_what_the_response_itself_left_the_last_time_is_not_held_against_it() -> None:
    """A response that is analysed again is held to what was told before it alone."""
    mine = {3: {"knowledge": StoryChange(facts=(KnownFact(subject=INES, fact="Has two sisters"),))}}
    assert await found("Ines had four sisters.", changes=mine) == []


async def test_the_gravest_come_first_and_each_sentence_once() -> None:
    """Whose kin somebody is matters more than a number; two files that say the same are one contradiction."""
    text = "Tobias was thirty years old. Hanne Brook was the mother of Tobias."
    assert [one[3] for one in await found(text)] == ["critical", "major"]


async def test_a_story_that_agrees_has_none() -> None:
    """The stage's own response contradicts nothing."""
    assert await found(story().response.text) == []


async def test_a_model_points_at_what_it_was_shown() -> None:
    """Number, quote and severity are its own; the statements are not."""
    section, kit = await analysed(agent, answer(proposed()), told=story(YOUNG))
    assert "1. Tobias Reed: 19 years old, from the mainland" in kit.asked[0].user
    assert section["by"] == "scripted"
    assert section["found"] == [
        {
            "subj": TOBIAS,
            "old": "19 years old, from the mainland",
            "old_src": "entities/Tobias.md",
            "new": "Tobias was thirty years old, and the lamp was his.",
            "new_src": "Ch1-R3",
            "sev": "critical",
        }
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        proposed(0),
        proposed(-1),
        proposed(10_000),
        proposed(1, quote="Tobias was thirty-one years old"),
        proposed(1, quote="Tobias"),
        proposed(1, quote=""),
    ],
)
async def test_what_a_model_cannot_prove_is_dropped(wrong: ProposedConflict) -> None:
    """A number of nothing and a quote that does not stand in the response: the other contradiction stays."""
    section, _ = await analysed(agent, answer(wrong, proposed()), told=story(YOUNG))
    assert [one["new"] for one in section["found"]] == ["Tobias was thirty years old, and the lamp was his."]
    assert section["by"] == "scripted"


async def test_a_model_that_proves_nothing_leaves_it_to_the_rules() -> None:
    """Nothing at all is an answer, though."""
    invented, _ = await analysed(agent, answer(proposed(0)), told=story(YOUNG))
    nothing, _ = await analysed(agent, answer(), told=story(YOUNG))
    assert invented["by"] == "rules"
    assert len(invented["found"]) == 1
    assert nothing == {"enabled": True, "by": "scripted", "found": []}


async def test_a_model_that_fails_leaves_it_to_the_rules() -> None:
    """The section says who found it."""
    section, _ = await analysed(agent, LlmTimeout("late"), told=story(YOUNG))
    assert (section["by"], len(section["found"])) == ("rules", 1)


async def test_each_statement_is_contradicted_once_and_eight_are_the_most() -> None:
    """A model that repeats itself is heard once."""
    lines = tuple(KnownFact(subject=TOBIAS, fact=f"Tobias trims lamp {n} of the thirty") for n in range(30))
    base = BASE.model_copy(update={"knowledge": lines})
    twice = [proposed(number) for number in (1, 1, *range(2, 30))]
    section, _ = await analysed(agent, answer(*twice), told=story(f"{YOUNG} Tobias trims lamp and lamp.", base))
    assert len({one["old"] for one in section["found"]}) == len(section["found"]) == MOST_FOUND


async def test_a_model_is_not_asked_when_nothing_was_told() -> None:
    """A response about nobody who is known cannot contradict anything."""
    section, kit = await analysed(agent, answer(proposed()), told=story("Rain fell. Nobody spoke."))
    assert kit.asked == []
    assert section == {"enabled": True, "by": "rules", "found": []}


async def test_a_question_stays_within_its_budget_and_shows_what_rules_object_to() -> None:
    """Of thousands of statements those come first that the response may contradict."""
    facts = tuple(KnownFact(subject=MARA, fact=f"Mara trims the {n}th lamp of Lantern House") for n in range(2_000))
    base = BASE.model_copy(update={"knowledge": facts})
    _, kit = await analysed(agent, answer(), told=story(f"{YOUNG} " + "Mara trims the lamp. " * 3_000, base))
    assert question_tokens(kit.asked[0]) <= BUDGET
    assert "1. Tobias Reed: 19 years old" in kit.asked[0].user


async def test_places_have_their_say_too() -> None:
    """The file of a house is held against a response like that of a person."""
    said = "Lantern House was built of red brick, on the north rock."
    assert await found(said) == []
    assert [one[0] for one in await found("Lantern House was a lighthouse on the south rock.")] == [LANTERN]
