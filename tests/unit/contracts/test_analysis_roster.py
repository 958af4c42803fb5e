"""The roster of an analysis: the ten as a story changes them, its own agents, and refused entries."""

import pytest

from tasklore.contracts.analysis.section_agents import (
    BACKGROUND_S,
    IMMEDIATE_S,
    SECTION_AGENTS,
    model_of,
    roster_of,
)
from tasklore.contracts.analysis.stories import SeatSettings
from tasklore.contracts.errors import InvalidInput


def test_a_story_that_says_nothing_has_the_ten() -> None:
    """In the order of the document, all but one switched on, and each section with its model."""
    assert roster_of({}) == SECTION_AGENTS
    assert len({seat.agent_id for seat in SECTION_AGENTS}) == len(SECTION_AGENTS) == 10
    assert [seat.section for seat in SECTION_AGENTS if not seat.enabled] == [
        "contradiction"
    ]
    assert all(model_of(seat.section) for seat in SECTION_AGENTS)
    assert model_of("tone") is None


def test_a_story_changes_what_it_names_and_no_more() -> None:
    """A switch, a deadline, another agent; the rest stays."""
    said = {
        "contradiction": SeatSettings(enabled=True, deadline_s=5),
        "knowledge": SeatSettings(agent="Other", after=()),
    }
    changed = {seat.section: seat for seat in roster_of(said)}

    assert (changed["contradiction"].enabled, changed["contradiction"].deadline_s) == (
        True,
        5,
    )
    assert changed["contradiction"].after == ("knowledge",)
    assert (changed["knowledge"].agent_id, changed["knowledge"].task) == (
        "Other",
        "analyse",
    )
    assert [seat for seat in roster_of(said) if seat.section not in said] == [
        seat for seat in SECTION_AGENTS if seat.section not in said
    ]


def test_a_storys_own_agent_comes_last_with_the_deadline_of_its_group() -> None:
    told = SeatSettings(agent="ToneAgent", task="hear")
    quick = SeatSettings(
        agent="MoodAgent", task="feel", group="immediate", after=("tone",)
    )
    tone, mood = roster_of({"tone": told, "mood": quick})[10:]

    assert (tone.group, tone.deadline_s, tone.after, tone.enabled) == (
        "background",
        BACKGROUND_S,
        (),
        True,
    )
    assert (mood.group, mood.deadline_s, mood.after) == (
        "immediate",
        IMMEDIATE_S,
        ("tone",),
    )


@pytest.mark.parametrize(
    ("said", "cure"),
    [
        ({"tone": SeatSettings(task="hear")}, "needs 'agent' and 'task'"),
        (
            {"knowledge": SeatSettings(after=("tone",))},
            "names 'tone', which is not a section; sections are resp_analyzer",
        ),
        (
            {"knowledge": SeatSettings(after=("knowledge",))},
            "in a circle: contradiction, knowledge",
        ),
        (
            {
                "knowledge": SeatSettings(after=("fact_extract",)),
                "entity_analysis": SeatSettings(after=("knowledge",)),
            },
            "in a circle: contradiction, entity_analysis, fact_extract, knowledge; change their 'after'",
        ),
        (
            {"relationships": SeatSettings(agent="A", task="t")},
            "would be read as our section 'relationship'",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_cure(
    said: dict[str, SeatSettings], cure: str
) -> None:
    """The message names the agent and the field."""
    with pytest.raises(InvalidInput, match=r"^agents") as refused:
        roster_of(said)

    assert cure in str(refused.value)
