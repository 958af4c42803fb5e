"""What each of the ten agents makes of a model's answer, of what does not hold in one, and of none."""

from typing import Any

import pytest
from pydantic import BaseModel

from contracts.errors import LlmUnavailable
from contracts.stories import StoryMemory, StoryThread
from tests.unit.story.stage import BASE, CORWIN, ENTITIES, INES, LANTERN, MARA, TOBIAS, analysed, entity, story
from workers import Agent
from workers.agents.story import (
    contradiction_agent,
    entity_agent,
    fact_agent,
    knowledge_agent,
    memory_creation_agent,
    memory_recall_agent,
    relationship_agent,
    response_agent,
    thread_agent,
    thread_recall_agent,
)
from workers.agents.story.contradiction import ProposedConflict, ProposedConflicts
from workers.agents.story.entity_analysis import EntityChoice
from workers.agents.story.fact_extract import FactChoice
from workers.agents.story.knowledge import ProposedFact, ProposedFacts
from workers.agents.story.memory_create import ProposedMemories, ProposedMemory
from workers.agents.story.memory_extract import ProposedRecall, ProposedRecalls
from workers.agents.story.plot_threads import ProposedThread, ProposedThreads, ProposedTouch
from workers.agents.story.relationship import ProposedShow, ProposedShows
from workers.agents.story.response_analyzer import Person, SceneReading
from workers.agents.story.thread_extract import ProposedLoad, ProposedLoads

WHY = "it is so"


def _scene(**told: Any) -> SceneReading:
    usual: dict[str, Any] = {
        "reasoning": WHY,
        "scene_type": "dialogue",
        "tension": 6.0,
        "in_scene": (Person(name="Mara", quotation="said Mara"), Person(name="Tobias", quotation="Tobias admitted")),
        "mentioned": (Person(name="the captain", quotation="Ines asked"),),
        "location": "Lantern House",
        "location_quotation": "the windows of Lantern House",
        "timestamp": "Monday, 9:15 PM",
        "elapsed_minutes": 45.0,
        "time_quotation": "Monday, 9:15 PM",
    }
    return SceneReading.model_validate({**usual, **told})


def _memory(**told: Any) -> ProposedMemories:
    usual = {
        "character": "the keeper",
        "type": "revelation",
        "significance": 9,
        "tone": "ashamed",
        "summary": "Confessed that she let go of the rope",
        "quotation": "I let go of the rope",
        "location": "Lantern House",
        "tags": ("rope", "confession"),
        "slug": "rope",
    }
    return ProposedMemories(reasoning=WHY, memories=(ProposedMemory.model_validate({**usual, **told}),))


def _show(**told: Any) -> ProposedShows:
    usual = {
        "giver": "Tobias",
        "receiver": "Mara",
        "trait": "Honesty",
        "shown": "told the truth",
        "taken": "well",
        "weight": "clear",
        "quotation": "The truth. That we have eleven.",
    }
    return ProposedShows(reasoning=WHY, shows=(ProposedShow.model_validate({**usual, **told}),))


def _threads(
    mentioned: tuple[ProposedTouch, ...] = (),
    resolved: tuple[ProposedTouch, ...] = (),
    new: tuple[ProposedThread, ...] = (),
) -> ProposedThreads:
    return ProposedThreads(reasoning=WHY, mentioned=mentioned, resolved=resolved, new=new)


def _opened(title: str, quotation: str = "I have never told anyone") -> ProposedThread:
    return ProposedThread(
        title=title, priority="high", time_sensitive=False, characters=("Mara",), tags=("secret",), quotation=quotation
    )


def _fact(**told: Any) -> ProposedFacts:
    usual = {
        "category": "character",
        "subject": "Mara",
        "fact": "let go of the rope in the boat",
        "known_by": ("Mara", "Tobias", "Nobody Here"),
        "confidence": "medium",
        "quotation": "I let go of the rope",
    }
    return ProposedFacts(reasoning=WHY, facts=(ProposedFact.model_validate({**usual, **told}),))


def _conflict(**told: Any) -> ProposedConflicts:
    usual = {
        "number": 1,
        "told_quotation": "watched from the gallery",
        "quotation": "I was in the boat that night",
        "reason": "she cannot have been in both",
        "may_have_changed": False,
        "severity": "critical",
    }
    return ProposedConflicts(reasoning=WHY, contradictions=(ProposedConflict.model_validate({**usual, **told}),))


# -- what a model understands -----------------------------------------------------------------------------------------


async def test_a_scene_is_judged_by_a_model_and_counted_by_rule() -> None:
    """Persons by their full names, a new one as the text has them, words and dialogue as they stand there."""
    strange = Person(name="the smith", quotation="hammered the smith")
    text = 'It was dusk in Lantern House. "Wait," hammered the smith. Mara waited.'
    answer = _scene(
        in_scene=(Person(name="Mara", quotation="Mara waited"), strange),
        mentioned=(),
        timestamp="dusk",
        time_quotation="It was dusk",
        location_quotation="in Lantern House",
    )

    section, _ = await analysed(response_agent, answer, told=story(text))

    assert section["chars"]["in_scene"] == [MARA, "the smith"]
    assert section["loc"] == LANTERN
    assert section["time"] == {"elapsed": 45, "timestamp": "dusk"}
    assert (section["scene"]["type"], section["scene"]["tension"], section["scene"]["words"]) == ("dialogue", 6, 12)
    assert section["by"] == "scripted"


async def test_a_memory_is_kept_with_the_words_that_show_it() -> None:
    """Its id is made here."""
    section, _ = await analysed(memory_creation_agent, _memory())

    (memory,) = section["memories"]
    assert (memory["id"], memory["char"], memory["sig"]) == ("MEM-3-rope", MARA, 9)
    assert (memory["quote"], memory["loc"]) == ("I let go of the rope", LANTERN)


async def test_points_are_those_of_the_story_s_own_tastes() -> None:
    """Mara likes honesty with 10; a model is not asked for points."""
    section, _ = await analysed(relationship_agent, _show())

    (interaction,) = section["interactions"]
    assert interaction["chars"] == [MARA, TOBIAS]
    assert (interaction["prev"], interaction["change"], interaction["score"]) == (18, 10, 28)
    assert interaction["next_tier"] == "Friend"


@pytest.mark.parametrize(("taken", "weight", "change"), [("well", "slight", 1), ("badly", "strong", -6)])
async def test_where_no_tastes_are_declared_it_counts_how_it_is_taken(taken: str, weight: str, change: int) -> None:
    """By the weight of the show."""
    answer = _show(giver="Mara", receiver="Corwin", trait="mockery", taken=taken, weight=weight)
    section, _ = await analysed(relationship_agent, answer)
    assert section["interactions"][0]["change"] == change


async def test_threads_are_opened_touched_and_ended_by_number_with_a_quotation() -> None:
    """Two promises in one breath are two threads."""
    answer = _threads(
        mentioned=(ProposedTouch(number=1, quotation="the forty crowns"),),
        resolved=(ProposedTouch(number=2, quotation="the bell rang once"),),
        new=(_opened("Mara's secret of the rope"), _opened("Tobias keeps it to himself")),
    )
    section, kit = await analysed(thread_agent, answer)

    shown = kit.asked[0].user
    assert "1. The debt to Ines; about debt, crowns; ends with debt is paid" in shown
    assert "2. Hanne's visit; about visit, feast" in shown
    assert [one["id"] for one in section["mentioned"]] == ["THREAD-001"]
    assert [one["id"] for one in section["resolved"]] == ["THREAD-003"]
    assert [(one["id"], one["title"]) for one in section["new"]] == [
        ("THREAD-004", "Mara's secret of the rope"),
        ("THREAD-005", "Tobias keeps it to himself"),
    ]


async def test_a_fact_says_who_knows_it() -> None:
    """Of those whom the response has."""
    section, _ = await analysed(knowledge_agent, _fact())

    (fact,) = section["facts"]
    assert (fact["subj"], fact["fact"]) == (MARA, "let go of the rope in the boat")
    assert fact["known"] == [MARA, TOBIAS]


async def test_a_contradiction_has_words_of_both_sides() -> None:
    """With the source of each."""
    section, kit = await analysed(contradiction_agent, _conflict(number=_told_at("watched from the gallery")))

    (found,) = section["found"]
    assert found["old"].startswith("Mara watched from the gallery")
    assert (found["old_src"], found["new"], found["sev"]) == (
        "MEM-000-drowning",
        "I was in the boat that night",
        "critical",
    )
    assert len(kit.asked) == 1


def _told_at(words: str) -> int:
    """Return the number under which the agent shows the statement with *words*."""
    from workers.agents.story.contradiction import _told

    told = _told(story().response, ENTITIES, BASE.knowledge, BASE.memories)
    return next(number for number, one in enumerate(told, start=1) if words in one.line)


async def test_who_matters_is_picked_by_number() -> None:
    """Nobody who is named is left out for it."""
    section, kit = await analysed(entity_agent, EntityChoice(reasoning=WHY, focus=(2,), relevant=(1,)))

    listed = [line.partition(". ")[2] for line in kit.asked[0].user.splitlines() if line[:1].isdigit()]
    assert section["tier1"][0]["name"] == listed[1].removeprefix("character: ")
    assert {one["name"] for one in (*section["tier1"], *section["tier2"])} >= {MARA, TOBIAS, INES, CORWIN}
    assert section["locs"] == [LANTERN]


async def test_facts_are_lines_of_the_files_and_fewer_tokens_than_these() -> None:
    """A model picks them by number."""
    found = {"entity_analysis": {"tier2": [{"name": INES}]}}
    section, _ = await analysed(fact_agent, FactChoice(reasoning=WHY, facts=(2, 5)), told=story(sections=found))

    assert section["facts"] == {INES: ["Her ship is the Grey Heron", "Distrusts Corwin Ashdown since the fire"]}
    assert 0 < section["reduction"]["pct"] <= 100


async def test_memories_are_chosen_by_number_with_a_reason() -> None:
    """Of those whom the response names most."""
    answer = ProposedRecalls(reasoning=WHY, memories=(ProposedRecall(number=1, why="She tells what she kept"),))
    section, _ = await analysed(memory_recall_agent, answer)

    (name,) = section["memories"]
    (memory,) = section["memories"][name]
    assert memory["why"] == "She tells what she kept"
    assert section["reduction"]["pct"] >= 0


async def test_critical_threads_are_loaded_whatever_a_model_says() -> None:
    """Before what it chose."""
    answer = ProposedLoads(reasoning=WHY, threads=(ProposedLoad(number=2, why="The bell rang"),))
    section, _ = await analysed(thread_recall_agent, answer)

    assert section["loaded"][0]["id"] == "THREAD-001"
    assert section["loaded"][0]["status"] == "critical"
    assert section["monitored"] == 3 - len(section["loaded"])


# -- what does not hold -----------------------------------------------------------------------------------------------

_NOWHERE = "words that stand nowhere"

UNGROUNDED: list[tuple[Agent, BaseModel, str]] = [
    (memory_creation_agent, _memory(quotation=_NOWHERE), "memories"),
    (memory_creation_agent, _memory(summary="Let go of 17 ropes"), "memories"),
    (memory_creation_agent, _memory(character="Someone Else"), "memories"),
    (relationship_agent, _show(quotation=_NOWHERE), "interactions"),
    (relationship_agent, _show(trait="bravery"), "interactions"),
    (relationship_agent, _show(receiver="Tobias"), "interactions"),
    (thread_agent, _threads(new=(_opened("A secret", _NOWHERE),)), "new"),
    (thread_agent, _threads(new=(_opened("The 17 secrets"),)), "new"),
    (thread_agent, _threads(mentioned=(ProposedTouch(number=9, quotation="the bell rang"),)), "mentioned"),
    (thread_agent, _threads(resolved=(ProposedTouch(number=1, quotation=_NOWHERE),)), "resolved"),
    (knowledge_agent, _fact(quotation=_NOWHERE), "facts"),
    (knowledge_agent, _fact(fact="has 17 ropes"), "facts"),
    (knowledge_agent, _fact(subject="Someone Else"), "facts"),
    (contradiction_agent, _conflict(quotation=_NOWHERE), "found"),
    (contradiction_agent, _conflict(told_quotation=_NOWHERE), "found"),
    (contradiction_agent, _conflict(number=99), "found"),
    (contradiction_agent, _conflict(may_have_changed=True, number=_told_at("watched from the gallery")), "found"),
]


@pytest.mark.parametrize(("agent", "answer", "field"), UNGROUNDED)
async def test_what_a_model_makes_up_is_left_out(agent: Agent, answer: BaseModel, field: str) -> None:
    """Also when it says it twice."""
    section, kit = await analysed(agent, answer, answer)
    assert section[field] == []
    assert len(kit.asked) <= 2


async def test_persons_place_and_time_need_words_that_show_them() -> None:
    """What has none is left out, the rest stands."""
    answer = _scene(
        in_scene=(Person(name="Mara", quotation="said Mara"), Person(name="Corwin", quotation=_NOWHERE)),
        location_quotation=_NOWHERE,
        time_quotation=_NOWHERE,
    )
    section, kit = await analysed(response_agent, answer, answer)
    assert section["chars"]["in_scene"] == [MARA]
    assert "loc" not in section
    assert "time" not in section
    assert "Refused before" in kit.asked[1].user


async def test_a_mended_answer_counts() -> None:
    """The fault told field and cure."""
    section, kit = await analysed(knowledge_agent, _fact(quotation=_NOWHERE), _fact())
    assert len(section["facts"]) == 1
    assert "fact 1: its quotation" in kit.asked[1].user


async def test_what_is_known_already_is_no_news() -> None:
    """Said in the same words."""
    answer = _fact(subject="Tobias", fact="Tobias is 19 years old", quotation="Tobias admitted")
    assert (await analysed(knowledge_agent, answer, answer))[0]["facts"] == []


# -- without a model --------------------------------------------------------------------------------------------------


async def test_without_a_model_a_scene_is_names_and_counts() -> None:
    """Nobody can say then who is there."""
    section, _ = await analysed(response_agent)
    assert section["by"] == "rules"
    assert section["chars"] == {"mentioned": [MARA, INES, TOBIAS, CORWIN]}
    assert set(section["scene"]) == {"words", "dlg", "pace"}


@pytest.mark.parametrize(
    ("agent", "field"),
    [
        (memory_creation_agent, "memories"),
        (relationship_agent, "interactions"),
        (knowledge_agent, "facts"),
        (contradiction_agent, "found"),
    ],
)
async def test_without_a_model_nothing_is_guessed(agent: Agent, field: str) -> None:
    """Nor after a model that is away."""
    for llm in ((), (LlmUnavailable("away"),)):
        section, _ = await analysed(agent, *llm)
        assert (section["by"], section.get(field, [])) == ("rules", [])


async def test_without_a_model_threads_are_taken_up_by_their_keywords_and_counted_down() -> None:
    """None is opened or ended."""
    section, _ = await analysed(thread_agent)
    assert [one["id"] for one in section["mentioned"]] == ["THREAD-001", "THREAD-002"]
    assert section["mentioned"][0]["conseq_countdown"] == 5
    assert section.get("new", []) == section.get("resolved", []) == []


async def test_without_a_model_the_next_prompt_gets_what_is_named() -> None:
    """Files of those named most, lines and memories that share words, threads that press."""
    tiers, _ = await analysed(entity_agent)
    assert MARA in {one["name"] for one in tiers["tier1"]}
    facts, _ = await analysed(fact_agent)
    assert all(len(lines) <= 5 for lines in facts["facts"].values())
    memories, _ = await analysed(memory_recall_agent)
    assert memories["memories"][MARA][0]["id"] == "MEM-000-drowning"
    threads, _ = await analysed(thread_recall_agent)
    assert [one["id"] for one in threads["loaded"]][:2] == ["THREAD-001", "THREAD-002"]


# -- what goes into the next prompt -----------------------------------------------------------------------------------

_LONG = "\n".join(f"- Line {number} about the great lamp and the bell of the drowned chapel" for number in range(200))


async def test_what_is_loaded_is_less_than_it_was_made_of() -> None:
    """At most three tenths of what has more than 1,000 tokens, and never more than all of it."""
    base = BASE.model_copy(
        update={
            "entities": (entity(MARA), entity(TOBIAS), entity(INES, f"# Ines Calder\n\n{_LONG}")),
            "memories": tuple(
                StoryMemory(
                    id=f"M{number}", character=MARA, summary=f"The bell rang {number} times", text="Rain. " * 90
                )
                for number in range(30)
            ),
            "threads": tuple(
                StoryThread(id=f"THREAD-{number:03}", title=f"The bell, part {number}", text="It rings. " * 60)
                for number in range(1, 20)
            ),
        }
    )
    found = {"entity_analysis": {"tier2": [{"name": INES}]}}
    for agent in (fact_agent, memory_recall_agent, thread_recall_agent):
        section, _ = await analysed(agent, told=story(base=base, sections=found))
        assert section["reduction"]["before"] > 1_000
        assert section["reduction"]["pct"] >= 70


async def test_a_thread_without_a_text_costs_no_more_than_its_title() -> None:
    """A reason that would make it more is left out."""
    base = BASE.model_copy(update={"threads": (StoryThread(id="THREAD-001", title="The bell", keywords=("bell",)),)})
    section, _ = await analysed(thread_recall_agent, told=story(base=base))
    assert section["reduction"]["after"] <= section["reduction"]["before"]
