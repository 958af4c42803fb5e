"""What a response tells about the world: a model's words are looked up, rules copy them, and nothing is news twice."""

from typing import Any

import pytest

from contracts.analysis_background import KnownFact
from contracts.errors import LlmTimeout
from contracts.stories import StoryChange
from tests.unit.story.crowded import BUDGET, crowded_story, question_tokens
from tests.unit.story.stage import BASE, CORWIN, INES, LANTERN, MARA, TAVERN, TOBIAS, analysed, story
from workers.agents.story.knowledge import ProposedFact, ProposedFacts, agent
from workers.agents.story.rules.tellings import MOST_FACTS


def proposed(**told: Any) -> ProposedFact:
    """Return a fact that holds, but for what is *told*."""
    holds = {"category": "event", "subject": "the bell", "fact": "Rang once, far below", "confidence": "high"}
    return ProposedFact(**{**holds, **told})


def answer(*facts: ProposedFact) -> ProposedFacts:
    """Return a model's answer."""
    return ProposedFacts(reasoning="", facts=facts)


async def told(text: str, **fields: Any) -> list[tuple[str, str, str, str]]:
    """Return category, subject, fact and confidence of everything that rules read in *text*."""
    found, _ = await analysed(agent, told=story(text, **fields))
    assert found["by"] == "rules"
    return [(fact["cat"], fact["subj"], fact["fact"], fact["conf"]) for fact in found["facts"]]


async def test_a_model_names_facts_and_python_their_source() -> None:
    """The section has the model's words, and where they come from."""
    found, _ = await analysed(agent, answer(proposed(subject="Ines", fact="Asked after the forty crowns")))
    assert found == {
        "by": "scripted",
        "facts": [
            {"cat": "event", "subj": INES, "fact": "Asked after the forty crowns", "conf": "high", "src": "Ch1-R3"}
        ],
    }


@pytest.mark.parametrize(
    "told_of",
    [
        {"subject": "the dragon"},
        {"fact": "Rang 17 times, far below"},
        {"fact": "Rang once below Castle Dread"},
        {"subject": LANTERN, "fact": "The lamp burns whale oil"},
        {"subject": TOBIAS, "fact": "Is 19 years old"},
    ],
)
async def test_what_does_not_stand_in_the_response_or_is_known_is_dropped(told_of: dict[str, str]) -> None:
    """A subject of nobody's, numbers and names that were not told, and what is known: the other fact stays."""
    found, _ = await analysed(agent, answer(proposed(**told_of), proposed()))
    assert [(fact["subj"], fact["fact"]) for fact in found["facts"]] == [("the bell", "Rang once, far below")]


async def test_a_model_that_says_nothing_that_holds_leaves_it_to_the_rules() -> None:
    """Invented facts alone are no answer; no facts at all are one."""
    invented, _ = await analysed(agent, answer(proposed(subject="the dragon")))
    nothing, _ = await analysed(agent, answer())
    assert invented["by"] == "rules"
    assert nothing == {"by": "scripted", "facts": []}


async def test_a_model_that_fails_leaves_it_to_the_rules() -> None:
    """The section says who found it."""
    text = "Mara was at the window. Corwin Ashdown was the owner of three boats."
    found, _ = await analysed(agent, LlmTimeout("late"), told=story(text))
    assert found["by"] == "rules"
    assert [fact["fact"] for fact in found["facts"]] == ["Was the owner of three boats"]


async def test_one_answer_has_at_most_eight_facts_and_each_once() -> None:
    """What a model says twice is said once, and no more than eight facts are taken."""
    ticks = "The " + ", ".join(f"tick{letter}" for letter in "abcdefghijklmn") + " echoed beneath the chapel."
    facts = [proposed(subject=f"tick{letter}", fact="Echoed beneath the chapel") for letter in "aabcdefghijklmn"]
    found, _ = await analysed(agent, answer(*facts), told=story(ticks))
    assert [fact["subj"] for fact in found["facts"]] == [f"tick{letter}" for letter in "abcdefgh"]
    assert len(found["facts"]) == MOST_FACTS


@pytest.mark.parametrize(
    ("text", "category", "subject", "fact"),
    [
        ("Corwin Ashdown owned three boats on the quay.", "character", CORWIN, "Owned three boats on the quay"),
        ("The Salt Quay Tavern was the oldest house of all.", "location", TAVERN, "Was the oldest house of all"),
        ("By the spring, Ines lived in Corrow, by the mill.", "character", INES, "Lived in Corrow, by the mill"),
        ("Ines died in the winter.", "character", INES, "Died in the winter"),
        ("Corwin was fifty years old, and it showed.", "character", CORWIN, "Was fifty years old"),
        ("Tobias had a scar across his chin.", "character", TOBIAS, "Had a scar across his chin"),
        ("Corwin always kept a gun under the bar.", "character", CORWIN, "Always kept a gun under the bar"),
        ('Corwin owned three boats. "Who says so?"', "character", CORWIN, "Owned three boats"),
        ("Corwin, who owned three boats, rose.", "character", CORWIN, "Owned three boats"),
        ("Corwin, who was fifty years old, rose.", "character", CORWIN, "Was fifty years old"),
        ("Ines was fifty.", "character", INES, "Was fifty"),
        ("Corwin was deaf.", "character", CORWIN, "Was deaf"),
        ("Ines had a house behind the mill.", "character", INES, "Had a house behind the mill"),
        ("Ines had two nephews.", "character", INES, "Had two nephews"),
        ("Tobias trusted no knot that another had tied.", "character", TOBIAS, "Trusted no knot that another had tied"),
    ],
)
async def test_rules_copy_what_is_told_of_somebody_who_is_named(
    text: str, category: str, subject: str, fact: str
) -> None:
    """The fact is the rest of the sentence, letter by letter but for its first."""
    assert await told(f"Rain fell. {text} Nobody spoke.") == [(category, subject, fact, "high")]


async def test_what_somebody_says_is_less_certain() -> None:
    """Speech is told of by somebody who may be wrong, and what they say of themselves is told of them."""
    assert await told('"Corwin owned three boats," said Ines.') == [
        ("character", CORWIN, "Owned three boats", "medium")
    ]
    has_a_brother = [("character", INES, "Has a brother", "medium")]
    assert await told('"I have a brother," said Ines.') == has_a_brother
    assert await told('Ines told Tobias, "I have a brother."') == has_a_brother
    assert await told('She told Tobias, "I have a brother."') == []


@pytest.mark.parametrize(
    "text",
    [
        "Did Corwin own three boats?",
        "If Corwin owned three boats, he hid them.",
        "Corwin would have owned three boats.",
        "Ines hoped that Corwin owned three boats.",
        "In the dream Corwin owned three boats.",
        "Corwin seemed the owner of three boats.",
        "It was as if Corwin owned three boats.",
        "Corwin was tired and stood by the door.",
        "Corwin had his hand on the latch.",
        "Corwin was looking at three boats.",
        "He owned three boats.",
        "The man behind Corwin, who owned three boats, rose.",
        "Corwin had a house to look at.",
        "Ines had a dog at her heels.",
        "Corwin was deaf to it.",
        "Corwin was broken.",
        "Ines owned the quay that day.",
        "Ines owned that quay.",
        '"Corwin owned three boats?" asked Ines.',
        "Tobias loved her.",
        "Tobias had always loved her, and it showed.",
        "Corwin worked beside him for twelve years.",
        "The mayor owned three boats.",
    ],
)
async def test_rules_leave_out_what_is_no_fact(text: str) -> None:
    """Questions, conditions, hopes, dreams, likenesses, moments, and what is told of nobody who is named."""
    assert await told(text) == []


async def test_what_is_known_is_no_news() -> None:
    """What files, base and earlier responses say is left out, in other forms of its words, too."""
    known = {1: {"knowledge": StoryChange(facts=(KnownFact(subject=CORWIN, fact="Owns three boats"),))}}
    text = "Corwin owned three boats. Corwin Ashdown was the owner of the Salt Quay Tavern. Ines owned a goat."
    assert await told(text, changes=known) == [("character", INES, "Owned a goat", "high")]


async def test_what_the_response_itself_left_the_last_time_is_news_again() -> None:
    """A response that is analysed again is told the story as it stood before it."""
    known = {3: {"knowledge": StoryChange(facts=(KnownFact(subject=INES, fact="Owned a goat"),))}}
    assert await told("Ines owned a goat.", changes=known) == [("character", INES, "Owned a goat", "high")]


async def test_facts_have_the_chapter_and_response_as_source() -> None:
    """Sources are written as everywhere: `Ch{chapter}-R{response}`."""
    kit_story = story("Ines owned a goat.", number=7)
    found, _ = await analysed(agent, told=kit_story)
    assert [fact["src"] for fact in found["facts"]] == ["Ch1-R7"]


async def test_a_question_stays_within_its_budget() -> None:
    """However much is known and told."""
    facts = tuple(
        KnownFact(subject=MARA, fact=f"Knows the {n}th bell by its sound and by its name") for n in range(500)
    )
    crowded = crowded_story()
    base = BASE.model_copy(update={"knowledge": facts})
    _, kit = await analysed(agent, answer(), told=story(crowded.response.text, base))
    assert question_tokens(kit.asked[0]) <= BUDGET
    assert "</response> and nobody" not in kit.asked[0].user


async def test_the_same_response_gives_the_same_facts() -> None:
    """Rules are deterministic."""
    text = "Corwin owned three boats. Ines lived in Corrow."
    assert await told(text) == await told(text)
