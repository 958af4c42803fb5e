"""What characters show each other: seen by a model or by cues, counted by tastes and tiers, and never by a model."""

from typing import Any

import pytest

from contracts.analysis_background import Relationships
from contracts.errors import LlmRefused
from contracts.stories import Bond, Relations, StoryChange, StorySettings, Tastes, Tier, pair_of
from memory.stories.settling import settled
from memory.stories.view import StandingStory
from tests.unit.story.crowded import BUDGET, crowded_story, question_tokens
from tests.unit.story.stage import BASE, CHANGES, CORWIN, INES, MARA, TOBIAS, analysed, story
from workers.agents.story.relationship import ProposedShow, ProposedShows, agent


def show(**told: str) -> ProposedShow:
    """Return what holds, but for what is *told*."""
    holds = {
        "giver": "Tobias",
        "receiver": "Mara",
        "trait": "honesty",
        "shown": "plain truth",
        "quote": "The truth. That we have eleven.",
    }
    return ProposedShow(**{**holds, **told})


def answer(*shows: ProposedShow) -> ProposedShows:
    """Return a model's answer."""
    return ProposedShows(reasoning="", shows=shows)


def told_of(*traits: str, text: str, **tastes: Tastes) -> Any:
    """Return a story whose traits are known by their names, and whose characters have *tastes*."""
    names = {"mara": MARA, "tobias": TOBIAS, "ines": INES, "corwin": CORWIN}
    settings = BASE.settings.model_copy(update={"traits": {trait: (trait,) for trait in traits}})
    relations = Relations(tastes={names[name]: taste for name, taste in tastes.items()})
    return story(text, BASE.model_copy(update={"settings": settings, "relations": relations}))


async def test_points_and_tiers_are_worked_out() -> None:
    """18 and 10 are 28: an acquaintance, three points from a friend."""
    found, kit = await analysed(agent, answer(show()))
    assert found == {
        "by": "scripted",
        "interactions": [
            {
                "chars": [MARA, TOBIAS],
                "tier": "Acquaintance",
                "score": 28,
                "prev": 18,
                "change": 10,
                "trigger": "Tobias Reed plain truth (Mara Voss likes: honesty +10)",
                "next_tier": "Friend",
                "points_needed": 3,
            }
        ],
    }
    assert "10" not in kit.asked[0].user.split("<response>")[0]


async def test_a_dislike_is_subtracted() -> None:
    """And the trigger says so."""
    found, _ = await analysed(agent, answer(show(trait="Recklessness", shown="dare", quote="Tobias admitted")))
    assert [(one["change"], one["score"], one["trigger"]) for one in found["interactions"]] == [
        (-6, 12, "Tobias Reed dare (Mara Voss dislikes: recklessness -6)")
    ]


async def test_one_interaction_a_pair_tells_of_both_directions() -> None:
    """What each of the two was shown counts once, however often it was."""
    back = show(giver="Mara", receiver="Tobias", trait="recklessness", shown="dare", quote="I let go of the rope.")
    found, _ = await analysed(agent, answer(show(), back, show(shown="again")))
    (one,) = found["interactions"]
    assert one["change"] == 14
    assert one["trigger"] == (
        "Tobias Reed plain truth (Mara Voss likes: honesty +10); Mara Voss dare (Tobias Reed likes: recklessness +4)"
    )


@pytest.mark.parametrize("order", [1, -1])
async def test_each_of_a_pair_counts_the_same_trait_by_their_own_taste(order: int) -> None:
    """Both are honest: ten points by what Mara likes and four by what Tobias does, whoever is named first."""
    likes = {MARA: Tastes(likes={"honesty": 10}), TOBIAS: Tastes(likes={"honesty": 4})}
    told = story(base=BASE.model_copy(update={"relations": Relations(tastes=likes)}))
    back = show(giver="Mara", receiver="Tobias", shown="confession", quote="I let go of the rope.")
    found, _ = await analysed(agent, answer(*[show(), back][::order]), told=told)
    assert [one["change"] for one in found["interactions"]] == [14]
    both = "Tobias admitted it. Mara confessed it."
    for text in (both, ". ".join(both.strip(".").split(". ")[::-1]) + "."):
        found, _ = await analysed(agent, told=story(text, told.base))
        assert [one["change"] for one in found["interactions"]] == [14]


@pytest.mark.parametrize(
    "told",
    [
        {"giver": "Zorblax"},
        {"giver": "Corwin"},
        {"receiver": "Ines"},
        {"receiver": "Tobias"},
        {"trait": "wealth"},
        {"trait": ""},
        {"quote": "I have always been honest with you, Mara."},
        {"quote": ""},
    ],
)
async def test_what_does_not_hold_gives_no_points(told: dict[str, str]) -> None:
    """Strangers, those who are not there, traits that nobody has a taste for, invented quotes; the rest stands."""
    kept = show(giver="Mara", receiver="Tobias", trait="recklessness", shown="dare", quote="I let go of the rope.")
    found, _ = await analysed(agent, answer(show(**told), kept))
    assert [one["change"] for one in found["interactions"]] == [4]


async def test_what_a_model_calls_it_is_a_plain_word_or_two() -> None:
    """Else the trait's own name stands in the trigger."""
    found, _ = await analysed(agent, answer(show(shown="honesty +900); Mara loves me (Mara likes: everything")))
    assert found["interactions"][0]["trigger"] == "Tobias Reed honesty (Mara Voss likes: honesty +10)"


async def test_fifty_times_the_same_are_one_and_an_answer_of_nothing_that_holds_none() -> None:
    """Then the rules look."""
    found, _ = await analysed(agent, answer(*[show()] * 50))
    assert [one["change"] for one in found["interactions"]] == [10]
    by_rules, _ = await analysed(agent)
    for told in ({"trait": "wealth"}, {"giver": "Corwin"}, {"giver": "Mara"}):
        invented, _ = await analysed(agent, answer(*[show(**told)] * 50))
        assert invented == by_rules


async def test_rules_take_the_words_of_a_trait() -> None:
    """Tobias admits something, and Mara likes honesty."""
    found, _ = await analysed(agent, LlmRefused("no"))
    assert found["by"] == "rules"
    assert [(one["change"], one["trigger"]) for one in found["interactions"]] == [
        (10, "Tobias Reed admitted (Mara Voss likes: honesty +10)")
    ]


async def test_rules_count_a_trait_of_a_pair_once_a_response() -> None:
    """However often it is shown."""
    text = "Tobias admitted it. Mara looked up. Tobias confessed more, and Tobias told the truth."
    found, _ = await analysed(agent, told=story(text))
    assert [one["change"] for one in found["interactions"]] == [10]


@pytest.mark.parametrize(
    "text",
    [
        "Tobias never admitted it to Mara.",
        '"Have you confessed?" asked Tobias. Mara nodded.',
        "Tobias admitted it to himself.",
        '"You confessed it," said Tobias. Mara nodded.',
        "Tobias knew that Mara admitted it.",
        "Mara admitted it. Tobias yawned.",
        "Rain fell on the quay.",
    ],
)
async def test_rules_give_no_points_where_nothing_was_shown(text: str) -> None:
    """Denied, asked, said of somebody else, shown to nobody or to somebody who does not care: no interaction."""
    found, _ = await analysed(agent, told=story(text))
    assert found == {"by": "rules", "interactions": []}


async def test_a_trait_without_words_of_its_own_is_known_by_its_name() -> None:
    """Joined with a blank, as people write it."""
    tastes = Tastes(likes={"quiet_courage": 5})
    kit_story = told_of(text="Ines stood there with a quiet courage. Tobias saw it.", tobias=tastes)
    found, _ = await analysed(agent, told=kit_story)
    assert [one["trigger"] for one in found["interactions"]] == [
        "Ines Calder quiet courage (Tobias Reed likes: quiet_courage +5)"
    ]


async def test_everybody_who_is_there_is_shown_it() -> None:
    """Three in the scene, two who like it: two pairs."""
    taste = Tastes(likes={"courage": 2})
    kit_story = told_of("courage", text="Ines showed courage. Mara and Tobias stared.", mara=taste, tobias=taste)
    found, _ = await analysed(agent, told=kit_story)
    assert sorted(one["chars"] for one in found["interactions"]) == [[INES, MARA], [INES, TOBIAS]]


async def test_names_are_those_of_the_story_s_own_tables() -> None:
    """A bond of first names stays one pair, under those names, with its score."""
    relations = Relations(
        tiers=(Tier(name="Cold", threshold=-10), Tier(name="Warm", threshold=5)),
        tastes={"the keeper": Tastes(likes={"honesty": 2.5})},
        bonds=(Bond(characters=("Tobias", "Mara"), score=2),),
    )
    found, _ = await analysed(agent, told=story(base=BASE.model_copy(update={"relations": relations})))
    assert found["interactions"] == [
        {
            "chars": ["Tobias", "Mara"],
            "tier": "Cold",
            "score": 4.5,
            "prev": 2,
            "change": 2.5,
            "trigger": "Tobias admitted (Mara likes: honesty +2.5)",
            "next_tier": "Warm",
            "points_needed": 0.5,
        }
    ]


async def test_the_score_before_is_that_of_earlier_responses() -> None:
    """What this response changed when it was analysed before does not count, nor what later ones did."""
    pair = pair_of(MARA, TOBIAS)
    changes = {
        1: {"relationship": StoryChange(points={pair: 4})},
        3: {"relationship": StoryChange(points={pair: 100})},
        4: {"relationship": StoryChange(points={pair: 1000})},
    }
    found, _ = await analysed(agent, answer(show()), told=story(changes={**CHANGES, **changes}))
    assert (found["interactions"][0]["prev"], found["interactions"][0]["score"]) == (22, 32)
    assert found["interactions"][0]["tier"] == "Friend"


async def test_the_section_is_settled_already() -> None:
    """Settling it once more when it is written changes nothing."""
    found, _ = await analysed(agent, answer(show()))
    standing = StandingStory(StorySettings(story_id="lantern"), BASE.relations, scores={pair_of(MARA, TOBIAS): 18})
    again, change = settled("relationship", 3, 1, Relationships.model_validate(found), standing)
    assert again.model_dump(mode="json") == found
    assert change == StoryChange(points={pair_of(MARA, TOBIAS): 10})


@pytest.mark.parametrize("text", ["Mara lit the lamp.", "Rain fell.", "Ines bowed to Corwin. Corwin bowed."])
async def test_nobody_is_asked_where_nothing_can_count(text: str) -> None:
    """One alone, nobody, or two without tastes."""
    found, kit = await analysed(agent, answer(show()), told=story(text))
    assert found == {"by": "rules", "interactions": []}
    assert kit.asked == []


async def test_the_question_stays_within_its_budget() -> None:
    """With hundreds of tastes and a response of twenty thousand words."""
    _, kit = await analysed(agent, answer(), told=crowded_story())
    assert question_tokens(kit.asked[0]) <= BUDGET
    assert "virtue_of_the_0th_kind" in kit.asked[0].user
