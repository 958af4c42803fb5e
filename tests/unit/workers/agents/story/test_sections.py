"""The ten sections: as a model that is right finds them, and by names and counts alone."""

from typing import Any

import pytest

from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.pieces import UNJUDGED
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS, model_of
from tasklore.contracts.analysis.stories import (
    Bond,
    Relations,
    StoryChange,
    StoryMemory,
    StoryThread,
    Tastes,
    Tier,
    pair_of,
)
from tasklore.contracts.errors import LlmMalformed, LlmRefused, LlmTimeout
from tasklore.workers.agents.story.response_analyzer import Person
from tasklore.workers.loading import load_agents
from tests.unit.workers.agents.story.right_answers import (
    MEMORIES,
    RIGHT,
    SCENE,
    SHOWS,
    THREADS,
)
from tests.unit.workers.agents.story.sample_story import (
    BASE,
    CHANGES,
    CORWIN,
    HANNE,
    INES,
    LANTERN,
    MARA,
    RESPONSE,
    TAVERN,
    TOBIAS,
    analysed,
    entity,
    story,
)

AGENTS = {
    seat.section: agent
    for seat in SECTION_AGENTS
    for agent in load_agents("tasklore.workers.agents.story")
    if agent.agent_id == seat.agent_id
}
#: The tiers that `entity_analysis` found, for who waits for them.
TIERS = {
    "entity_analysis": {
        "by": "rules",
        "tier1": [{"name": MARA}],
        "tier2": [{"name": INES}, {"name": CORWIN}],
    }
}


async def found_by_model(section: str, **told: Any) -> dict[str, Any]:
    """Return a section as the model that is right finds it."""
    return (
        await analysed(
            AGENTS[section], RIGHT[section], told=story(**{"sections": TIERS, **told})
        )
    )[0]


async def found_by_rules(
    section: str, text: str | None = None, **told: Any
) -> dict[str, Any]:
    """Return a section without a model."""
    return (
        await analysed(AGENTS[section], told=story(text, **{"sections": TIERS, **told}))
    )[0]


@pytest.mark.parametrize("section", AGENTS)
async def test_a_right_answer_is_kept_whole(section: str) -> None:
    """Not one of its findings is vetoed, nothing is asked twice, and the section is one of the document."""
    found, kit = await analysed(
        AGENTS[section], RIGHT[section], told=story(sections=TIERS)
    )

    assert (found["by"], len(kit.asked)) == ("scripted", 1)
    assert "left_out" not in found
    assert "note" not in found
    model = model_of(section)
    assert model is not None
    assert model.model_validate(found).model_dump(mode="json") == found


@pytest.mark.parametrize("section", AGENTS)
async def test_what_no_model_judged_says_so(section: str) -> None:
    """Without one, and where it refuses, is late or talks nonsense: the same section each time, and then why."""
    alone = await found_by_rules(section)

    assert (alone["by"], alone["note"]) == ("rules", UNJUDGED)
    for error, why in (
        (LlmRefused("no"), "LlmRefused"),
        (LlmTimeout("late"), "LlmTimeout: late"),
        (LlmMalformed("what"), "LlmMalformed: what"),
    ):
        found, _ = await analysed(AGENTS[section], error, told=story(sections=TIERS))
        note = f"{UNJUDGED}; scripted did not answer: {why}"
        assert found == {**alone, "note": note}


async def test_a_scene_is_judged_and_counted() -> None:
    """Names are the files', time the response's, and words, dialogue and pace are counted."""
    assert await found_by_model("resp_analyzer") == {
        "by": "scripted",
        "scene": {
            "type": "dialogue",
            "pace": "fast",
            "tension": 6,
            "words": 134,
            "dlg": 0.46,
        },
        "chars": {"in_scene": [MARA, TOBIAS], "mentioned": [INES, CORWIN]},
        "loc": LANTERN,
        "time": {"elapsed": 5, "timestamp": "Monday 9:15 PM"},
    }


async def test_without_a_model_a_scene_is_counted_and_nobody_is_said_to_be_there() -> (
    None
):
    """Names are mentions; type, tension, place and time are left out."""
    found = await found_by_rules("resp_analyzer")

    assert found == {
        "by": "rules",
        "note": UNJUDGED,
        "scene": {"pace": "fast", "words": 134, "dlg": 0.46},
        "chars": {"mentioned": [MARA, INES, TOBIAS, CORWIN]},
    }


async def test_somebody_without_a_file_is_named_as_new() -> None:
    """In the scene or spoken of, by the name of the text."""
    stranger = Person(
        name="Dr Osei", presence="in_scene", quotation="Dr Osei took off his hat"
    )
    answer = SCENE.model_copy(update={"characters": (*SCENE.characters, stranger)})
    told = story(f"{RESPONSE.text} Dr Osei took off his hat.")

    found, _ = await analysed(AGENTS["resp_analyzer"], answer, told=told)

    assert found["chars"]["in_scene"] == [MARA, TOBIAS, "Dr Osei"]
    assert found["chars"]["new"] == ["Dr Osei"]


async def test_memories_get_ids_and_the_most_significant_stay() -> None:
    """Four at most, the first ones first; an id that is taken gets a number."""
    found = await found_by_model("memory_create")
    assert found["memories"][0] == {
        "id": "MEM-3-rope",
        "char": MARA,
        "loc": LANTERN,
        "type": "revelation",
        "sig": 9,
        "tone": "ashamed, relieved",
        "sum": "Mara confessed to Tobias that she had let go of the rope the night her father drowned.",
        "quote": "I let go of the rope. I have never told anyone.",
        "tags": ["the_rope", "confession"],
    }
    taken = StoryMemory(id="MEM-3-rope", character=INES, summary="x")
    base = BASE.model_copy(update={"memories": (*BASE.memories, taken)})
    assert (await found_by_model("memory_create", base=base))["memories"][0][
        "id"
    ] == "MEM-3-rope-2"
    first = MEMORIES.memories[0]
    many = [
        first.model_copy(
            update={
                "significance": at,
                "summary": f"Mara did it, {word}.",
                "slug": word,
            }
        )
        for at, word in enumerate(("one", "two", "three", "four", "five", "six"), 1)
    ]
    found, _ = await analysed(
        AGENTS["memory_create"], MEMORIES.model_copy(update={"memories": tuple(many)})
    )
    assert [one["sig"] for one in found["memories"]] == [6, 5, 4, 3]
    assert (await found_by_rules("memory_create"))["memories"] == []


async def test_points_come_of_tastes_or_else_of_how_much_it_is() -> None:
    """Mara likes honesty for 10; Tobias has no taste for being confided in, which is strong and up: 10."""
    found = await found_by_model("relationship")

    assert found["interactions"] == [
        {
            "chars": [MARA, TOBIAS],
            "tier": "Friend",
            "score": 38,
            "prev": 18,
            "change": 20,
            "trigger": f"{TOBIAS} plain truth ({MARA} likes: honesty +10); {MARA} confided in him ({TOBIAS} +10)",
            "next_tier": "Close Friend",
            "points_needed": 23,
        }
    ]
    assert (await found_by_rules("relationship"))["interactions"] == []


async def test_tiers_and_names_are_those_of_the_story_s_own_tables() -> None:
    """A bond of first names stays one pair, under those names; a dislike is subtracted whatever a model says of it."""
    relations = Relations(
        tiers=(Tier(name="Cold", threshold=-10), Tier(name="Warm", threshold=5)),
        tastes={"the keeper": Tastes(dislikes={"honesty": 2.5})},
        bonds=(Bond(characters=("Tobias", "Mara"), score=2),),
    )
    answer = SHOWS.model_copy(update={"shows": SHOWS.shows[:1] * 3})
    told = story(base=BASE.model_copy(update={"relations": relations}))

    found, _ = await analysed(AGENTS["relationship"], answer, told=told)

    assert found["interactions"] == [
        {
            "chars": ["Tobias", "Mara"],
            "tier": "Cold",
            "score": -0.5,
            "prev": 2,
            "change": -2.5,
            "trigger": "Tobias plain truth (Mara dislikes: honesty -2.5)",
            "next_tier": "Warm",
            "points_needed": 5.5,
        }
    ]


async def test_the_score_before_is_that_of_earlier_responses() -> None:
    """What this response changed when it was analysed before does not count, nor what later ones did."""
    pair = pair_of(MARA, TOBIAS)
    points = {
        number: {"relationship": StoryChange(points={pair: worth})}
        for number, worth in ((1, 4), (3, 100), (4, 1000))
    }

    found = await found_by_model("relationship", changes={**CHANGES, **points})

    assert (found["interactions"][0]["prev"], found["interactions"][0]["score"]) == (
        22,
        42,
    )


async def test_threads_are_opened_touched_and_counted_down() -> None:
    found = await found_by_model("plot_threads")

    assert found["new"] == [
        {
            "id": "THREAD-004",
            "title": "What happened in the boat",
            "status": "active",
            "priority": "high",
            "time_sensitive": False,
            "chars": [MARA, TOBIAS],
            "tags": ["secret"],
        }
    ]
    assert [(one["id"], one["status"]) for one in found["mentioned"]] == [
        ("THREAD-001", "critical"),
        ("THREAD-002", "active"),
    ]
    assert (
        found["mentioned"][0]["conseq_countdown"],
        found["mentioned"][0]["last_mention"],
    ) == (5, 3)
    assert found["resolved"] == []


async def test_a_resolved_thread_is_neither_shown_nor_found() -> None:
    gone = {2: {"plot_threads": StoryChange(resolved=("THREAD-001",))}}
    answer = THREADS.model_copy(update={"touched": THREADS.touched[1:]})

    found, kit = await analysed(
        AGENTS["plot_threads"], answer, told=story(changes=gone)
    )

    assert [one["id"] for one in found["mentioned"]] == ["THREAD-002"]
    assert "THREAD-001" not in kit.asked[0].user


async def test_knowledge_says_where_it_was_told_and_who_knows_it() -> None:
    found = await found_by_model("knowledge")
    assert found["facts"][0] == {
        "cat": "character",
        "subj": MARA,
        "fact": "Mara was in the boat the night her father drowned.",
        "conf": "medium",
        "src": "Ch1-R3",
        "known": [MARA, TOBIAS],
    }
    fact = KnownFact(
        subject=MARA, fact="mara was in the boat the night her father drowned"
    )
    known = story(changes={1: {"knowledge": StoryChange(facts=(fact,))}})
    again, _ = await analysed(AGENTS["knowledge"], RIGHT["knowledge"], told=known)
    assert [one["subj"] for one in again["facts"]] == ["crowns"]
    assert (await found_by_rules("knowledge"))["facts"] == []


async def test_a_contradiction_has_both_quotations_and_their_sources() -> None:
    """By rules there never is one."""
    found = await found_by_model("contradiction")

    assert found["found"] == [
        {
            "subj": MARA,
            "old": "Mara watched from the gallery as her father's boat went under",
            "old_src": "MEM-000-drowning",
            "new": "I was in the boat that night",
            "new_src": "Ch1-R3",
            "sev": "critical",
        }
    ]
    rules = await found_by_rules("contradiction")
    assert (rules["enabled"], rules["found"]) == (True, [])


async def test_a_model_is_not_asked_where_there_is_nothing_to_judge() -> None:
    """And the section does not say that it lacks anything."""
    bare = BASE.model_copy(
        update={"entities": (), "memories": (), "knowledge": (), "threads": ()}
    )
    for section in (
        "contradiction",
        "entity_analysis",
        "fact_extract",
        "memory_extract",
        "thread_extract",
    ):
        found, kit = await analysed(
            AGENTS[section], RIGHT[section], told=story(base=bare)
        )
        assert (kit.asked, found["by"], "note" in found) == ([], "rules", False), (
            section
        )


async def test_tiers_are_the_focus_the_mentioned_and_who_is_near() -> None:
    found = await found_by_model("entity_analysis")
    assert [one["name"] for one in found["tier1"]] == [MARA, TOBIAS]
    assert found["tier1"][0] == {
        "name": MARA,
        "file": entity(MARA).file,
        "tokens": entity(MARA).tokens,
    }
    assert [one["name"] for one in found["tier2"]] == [INES, CORWIN, LANTERN]
    assert (found["tier3"], found["locs"]) == ([HANNE, "[1 other]"], [LANTERN])
    rules = await found_by_rules("entity_analysis")
    assert [one["name"] for one in rules["tier1"]] == [MARA, TOBIAS, CORWIN]
    assert [one["name"] for one in rules["tier2"]] == [INES, LANTERN]
    assert TAVERN not in str(rules["tier2"])


async def test_facts_are_those_of_the_files_and_fewer_tokens() -> None:
    """Five a file; by rules the first lines, which say who it is."""
    found = await found_by_model("fact_extract")
    assert found["facts"] == {
        INES: ["Smuggles lamp oil", "Distrusts Corwin"],
        CORWIN: ["Owns the tavern"],
    }
    assert found["reduction"]["before"] == entity(INES).tokens + entity(CORWIN).tokens
    assert found["reduction"]["pct"] > 80
    rules = await found_by_rules("fact_extract")
    assert len(rules["facts"][INES]) == 5
    assert rules["facts"][CORWIN][0] == "Owner of the Salt Quay Tavern"
    for left in (
        None,
        "nonsense",
        {"by": "rules", "status": "failed", "tier2": [{"name": HANNE}]},
    ):
        alone = await found_by_rules("fact_extract", sections={"entity_analysis": left})
        assert set(alone["facts"]) == {MARA, TOBIAS, INES, CORWIN, LANTERN}


async def test_critical_threads_are_loaded_first_whatever_was_chosen() -> None:
    """Then those that were just opened, then the chosen; the rest is monitored."""
    found = await found_by_model("thread_extract")
    assert found["loaded"][0] == {
        "id": "THREAD-001",
        "title": "The debt to Ines",
        "priority": "high",
        "status": "critical",
        "countdown": 5,
        "why": "Ines asks for the crowns",
    }
    assert ([one["id"] for one in found["loaded"]], found["monitored"]) == (
        ["THREAD-001", "THREAD-002"],
        1,
    )
    nothing = RIGHT["thread_extract"].model_copy(update={"threads": ()})
    silent, _ = await analysed(AGENTS["thread_extract"], nothing)
    assert [(one["id"], one["why"]) for one in silent["loaded"]] == [
        ("THREAD-001", "Critical, 5 left")
    ]
    opened = StoryChange(
        threads=(StoryThread(id="THREAD-004", title="The boat", opened=3),)
    )
    found = await found_by_model(
        "thread_extract", changes={**CHANGES, 3: {"plot_threads": opened}}
    )
    assert [(one["id"], one.get("new")) for one in found["loaded"]] == [
        ("THREAD-001", None),
        ("THREAD-004", True),
        ("THREAD-002", None),
    ]
