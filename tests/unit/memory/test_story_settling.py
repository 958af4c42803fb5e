"""What agents found is settled: ids, scores, countdowns and sources are worked out, what cannot be kept is left out."""

import json
from typing import Any

import pytest

from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.pieces import Section
from tasklore.contracts.analysis.section_agents import model_of
from tasklore.contracts.analysis.stories import (
    Bond,
    Relations,
    StoryBase,
    StoryChange,
    StoryMemory,
    StorySettings,
    StoryThread,
    pair_of,
)
from tasklore.memory.stories.settlement import settle_section
from tasklore.memory.stories.view import StandingStory, standing

NUMBER = 120
CHAPTER = 5
MARCUS_LILY = pair_of("Marcus", "Lily")
BASE = StoryBase(
    settings=StorySettings(story_id="example"),
    memories=(StoryMemory(id="MEM-012-divorce", character="Marcus"),),
    relations=Relations(bonds=(Bond(characters=("Lily", "Marcus"), score=18),)),
    threads=(
        StoryThread(id="THREAD-001", title="Marcus Job Interview", consequence_at=125),
        StoryThread(id="THREAD-018", title="Lily's Photography Exhibition", due_at=135),
        StoryThread(id="THREAD-024", title="The lost key"),
        StoryThread(id="T-900", title="An id of another form"),
    ),
    knowledge=(
        KnownFact(subject="Cafe", fact="Espresso machine broken.", source="Ch1-R3"),
    ),
)
STORY = standing(BASE, {}, NUMBER)


def found(section: str, **values: Any) -> Section:
    """Return what an agent found."""
    model = model_of(section)
    assert model is not None
    return model.model_validate(values)


def settle(
    section: str, story: StandingStory = STORY, **values: Any
) -> tuple[dict[str, Any], StoryChange | None]:
    """Return the section as its document has it, and what it changes."""
    result, change = settle_section(
        section, NUMBER, CHAPTER, found(section, **values), story
    )
    return result.model_dump(mode="json"), change


def test_an_interaction_has_its_score_worked_out() -> None:
    """As in the example: whatever the agent says of sums is not believed; its trigger is."""
    trigger = "Lily empathy (Marcus likes: emotional_intelligence +10)"
    section, change = settle(
        "relationship",
        by="rules",
        interactions=[
            {
                "chars": ["Marcus", "Lily"],
                "change": 10,
                "trigger": trigger,
                "score": 99,
                "tier": "Family",
            }
        ],
    )

    assert json.dumps(section) == json.dumps(
        {
            "by": "rules",
            "interactions": [
                {
                    "chars": ["Marcus", "Lily"],
                    "tier": "Acquaintance",
                    "score": 28,
                    "prev": 18,
                    "change": 10,
                    "trigger": trigger,
                    "next_tier": "Friend",
                    "points_needed": 3,
                }
            ],
        }
    )
    assert change == StoryChange(points={MARCUS_LILY: 10})


def test_a_pair_has_one_interaction() -> None:
    section, change = settle(
        "relationship",
        interactions=[
            {"chars": ["Marcus", "Lily"], "change": 10, "trigger": "empathy"},
            {"chars": ["Lily", " Marcus"], "change": -2.5, "trigger": "joke"},
            {"chars": ["Marcus", "Lily"], "change": 10, "trigger": "empathy"},
            {"chars": ["Marcus", "David"], "change": 0, "own": 1},
            {"chars": ["Marcus", "Marcus"], "change": 3},
            {"chars": ["Marcus"], "change": 3},
            {"chars": ["Marcus", " "], "change": 3},
            {"chars": ["Marcus", "Lily", "David"], "change": 3},
            {"change": 3},
        ],
    )
    interactions = section["interactions"]

    assert [
        (one["chars"], one["change"], one["score"], one.get("trigger"))
        for one in interactions
    ] == [
        (["Marcus", "Lily"], 7.5, 25.5, "empathy; joke"),
        (["Marcus", "David"], 0, 0, None),
    ]
    assert interactions[1]["own"] == 1
    assert change == StoryChange(points={MARCUS_LILY: 7.5})


@pytest.mark.parametrize(
    ("told", "memory_id", "title"),
    [
        ({"id": "vulnerability"}, "MEM-120-vulnerability", "Vulnerability"),
        ({"id": "MEM-87-First Coffee!"}, "MEM-120-first-coffee", "First Coffee"),
        (
            {"id": "", "tags": ["back_story", "lily"]},
            "MEM-120-back-story",
            "Back Story",
        ),
        ({"id": "§", "sum": "…"}, "MEM-120-memory", "Memory"),
        ({"id": "x" * 60}, "MEM-120-" + "x" * 40, "X" + "x" * 39),
    ],
)
def test_a_memory_is_named_by_response_and_slug(
    told: dict[str, Any], memory_id: str, title: str
) -> None:
    """Out of what the agent said, its tags or its summary; numbers of other responses do not count."""
    section, change = settle(
        "memory_create", memories=[{"char": "Marcus", "sum": "said", **told}]
    )

    assert section["memories"][0]["id"] == memory_id
    assert change is not None
    assert [(one.id, one.title) for one in change.memories] == [(memory_id, title)]


def test_threads_are_numbered_and_counted_down() -> None:
    """The new one gets the next number, the others say how many responses are left."""
    section, change = settle(
        "plot_threads",
        new=[
            {
                "id": "new",
                "title": "Commitment Issues",
                "chars": ["Marcus", "Lily"],
                "tags": ["romance"],
            }
        ],
        mentioned=[
            {"id": "THREAD-001", "status": "resolved"},
            {"id": "THREAD-018", "title": "wrong"},
        ],
    )
    interview, exhibition = section["mentioned"]

    assert [(one["id"], one["status"]) for one in section["new"]] == [
        ("THREAD-025", "active")
    ]
    assert (interview["title"], interview["conseq_countdown"], interview["status"]) == (
        "Marcus Job Interview",
        5,
        "critical",
    )
    assert (exhibition["title"], exhibition["time_until"], exhibition["status"]) == (
        "Lily's Photography Exhibition",
        15,
        "on_track",
    )
    opened = StoryThread(
        id="THREAD-025",
        title="Commitment Issues",
        characters=("Marcus", "Lily"),
        tags=("romance",),
        opened=120,
    )
    assert change == StoryChange(
        threads=(opened,), mentioned=("THREAD-001", "THREAD-018")
    )


def test_a_thread_is_taken_for_what_it_is() -> None:
    """One that is open already is mentioned, one that is resolved is not mentioned too, one that is unknown is none."""
    section, change = settle(
        "plot_threads",
        new=[
            {"id": "", "title": "the LOST key."},
            {"id": "", "title": ""},
            {"id": "a", "title": "Fog"},
            {"id": "b", "title": "fog "},
        ],
        mentioned=[
            {"id": "THREAD-001"},
            {"id": "THREAD-777"},
            {"id": "?", "title": "An ID of another form"},
        ],
        resolved=[{"id": "THREAD-001"}, {"id": "THREAD-001"}, {"id": "THREAD-778"}],
    )
    ids = {
        part: [one["id"] for one in section[part]]
        for part in ("new", "mentioned", "resolved")
    }

    assert ids == {
        "new": ["THREAD-025"],
        "mentioned": ["T-900", "THREAD-024"],
        "resolved": ["THREAD-001"],
    }
    assert change is not None
    assert (change.mentioned, change.resolved) == (
        ("T-900", "THREAD-024"),
        ("THREAD-001",),
    )
    assert [thread.title for thread in change.threads] == ["Fog"]
    assert section["resolved"] == [
        {
            "id": "THREAD-001",
            "title": "Marcus Job Interview",
            "last_mention": 120,
            "status": "resolved",
        }
    ]


def test_a_resolved_thread_may_come_up_again() -> None:
    """Mentioning it opens it, resolving it once more says nothing, and a new one may have its title."""
    story = standing(
        BASE, {90: {"plot_threads": StoryChange(resolved=("THREAD-024",))}}, NUMBER
    )
    _, mentioned = settle("plot_threads", story, mentioned=[{"id": "THREAD-024"}])
    _, resolved = settle("plot_threads", story, resolved=[{"id": "THREAD-024"}])
    _, new = settle("plot_threads", story, new=[{"id": "", "title": "The lost key"}])

    assert mentioned == StoryChange(mentioned=("THREAD-024",))
    assert resolved is None
    assert new is not None
    assert new.threads[0].id == "THREAD-025"


def test_a_thread_keeps_its_id_when_its_response_is_analysed_again() -> None:
    """Although later responses opened others, which keep theirs."""
    changes = {
        NUMBER: {
            "plot_threads": StoryChange(
                threads=(StoryThread(id="THREAD-025", title="Fog"),)
            )
        },
        121: {
            "plot_threads": StoryChange(
                threads=(StoryThread(id="THREAD-026", title="Storm"),)
            )
        },
    }
    story = standing(BASE, changes, NUMBER)
    _, change = settle(
        "plot_threads",
        story,
        new=[
            {"id": "", "title": "Rain"},
            {"id": "", "title": "FOG"},
            {"id": "", "title": "Storm"},
        ],
    )

    assert change is not None
    assert {one.title: one.id for one in change.threads} == {
        "Rain": "THREAD-027",
        "FOG": "THREAD-025",
        "Storm": "THREAD-028",
    }


def test_what_is_known_already_is_not_learnt_again() -> None:
    section, change = settle(
        "knowledge",
        facts=[
            {
                "cat": "location",
                "subj": "Cafe",
                "fact": "espresso machine broken",
                "src": "Ch9-R9",
            },
            {
                "cat": "location",
                "subj": "Cafe",
                "fact": "Closed on Mondays",
                "conf": "high",
                "src": "Ch9-R9",
            },
            {"subj": "CAFE", "fact": "Closed  on mondays."},
            {"subj": "", "fact": "x"},
            {"subj": "x", "fact": " "},
        ],
    )

    assert section["facts"] == [
        {
            "cat": "location",
            "subj": "Cafe",
            "fact": "Closed on Mondays",
            "conf": "high",
            "src": "Ch5-R120",
        }
    ]
    assert change is not None
    assert [one.model_dump(mode="json") for one in change.facts] == section["facts"]
