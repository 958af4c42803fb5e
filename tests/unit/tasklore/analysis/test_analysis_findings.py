"""Sections of an analysis in a few words."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from tasklore.commands.analyses.findings import DONE, WAITING, section_steps, step_of
from tasklore.commands.analyses.views import counts_text
from tasklore.contracts.analysis.document import read_document
from tasklore.contracts.analysis.pieces import UNJUDGED
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS

HERE = Path(__file__).parent
EXAMPLE = read_document((HERE / "example.json").read_bytes())
PAGE = HERE.parents[3] / "docs" / "reference" / "analysis.md"


def test_each_section_of_the_example_in_words() -> None:
    said = {one.name: one.text for one in section_steps(EXAMPLE)}

    assert said == {
        "resp_analyzer": "dialogue, tension 6/10; Marcus Thompson, Lily Chen; Last 4/5 dialogue-heavy; "
        "Tension steady at 6/10 for 3 responses",
        "memory_create": "2 memories; Marcus: Marcus revealed fear of commitment from parents' divorce",
        "relationship": "Marcus \u2194 Lily +10 (now 28, Acquaintance)",
        "plot_threads": "1 new, 2 mentioned (1 critical); Marcus's Commitment Issues",
        "knowledge": "3 facts; Coffee Corner Cafe, Marcus Thompson, Local Art Scene",
        "contradiction": "skipped: switched off",
        "entity_analysis": "1 in full, 2 condensed, 13 by name; Marcus Thompson",
        "fact_extract": "10 facts of 2 names; 4,000 -> 110 tokens",
        "memory_extract": "5 memories of 2 characters; 14,700 -> 590 tokens",
        "thread_extract": "3 loaded (1 critical); 22 monitored; 5,500 -> 785 tokens",
    }


@pytest.mark.parametrize(
    ("section", "body", "said"),
    [
        ("memory_create", {"memories": []}, "none"),
        (
            "relationship",
            {
                "interactions": [
                    {"chars": ["A", other], "change": -2} for other in "BCD"
                ]
            },
            "A \u2194 B -2; A \u2194 C -2; 1 more",
        ),
        ("knowledge", {}, "nothing new"),
        (
            "contradiction",
            {"found": [{"subj": "the lamp", "old": "a", "new": "b", "sev": "major"}]},
            "1 contradiction; 1 major; the lamp",
        ),
        ("fact_extract", {"facts": {}}, "none"),
        (
            "memory_extract",
            {"memories": {}, "reduction": {"before": 0, "after": 0, "pct": 0}},
            "none",
        ),
        (
            "knowledge",
            {"status": "failed", "error": "KeyError:\n 'x'"},
            "failed: KeyError: 'x'",
        ),
        ("knowledge", {"by": "rules", "note": UNJUDGED, "facts": []}, UNJUDGED),
        (
            "plot_threads",
            {"note": UNJUDGED, "mentioned": [{"id": "T"}]},
            f"1 mentioned ({UNJUDGED})",
        ),
        (
            "knowledge",
            {"note": f"{UNJUDGED}; own did not answer: 404", "facts": []},
            f"{UNJUDGED}; own did not answer: 404",
        ),
        ("thread_extract", {"status": "late"}, "late: it did not answer in time"),
        (
            "weather",
            {"sky": ["grey", "low"], "wind": {"from": "north"}, "note": "a\x1b[31m"},
            "sky: 2, wind: 1",
        ),
        ("weather", {"status": "unsure", "sky": ["low"]}, "unsure: sky: 1"),
        # As somebody else wrote it: nothing of it is as ours.
        ("knowledge", {"facts": [{"nonsense": 1}]}, "facts: 1"),
    ],
)
def test_empty_failed_and_foreign_sections_in_words(
    section: str, body: dict[str, JsonValue], said: str
) -> None:
    assert step_of(section, body).text == said


def test_an_awaited_section_is_at_work_whatever_it_left_before() -> None:
    """Its agent was asked again."""
    [one] = [
        step
        for step in section_steps(EXAMPLE, awaited=("knowledge",))
        if not step.is_found
    ]
    assert (one.name, one.status, one.text) == ("knowledge", WAITING, "at work")
    assert counts_text(EXAMPLE, ("knowledge",)) == (
        "fresh: 10 of 11 agents ok, 1 at work"
    )


def test_waiting_sections_come_first() -> None:
    document = read_document(
        EXAMPLE.body()
        | {
            "background": {"weather": {"by": "m-1", "dur": 7}},
            "immediate": {},
            "stats": {},
        }
    )
    found = section_steps(document, ["knowledge", "fact_extract"])
    assert [(one.name, one.status, one.by, one.took_ms) for one in found] == [
        ("knowledge", WAITING, "", None),
        ("fact_extract", WAITING, "", None),
        ("weather", DONE, "m-1", 7),
    ]
    assert [one.is_found for one in found] == [False, False, True]
    assert found[0].text == "at work"
    assert [one.name for one in section_steps(None, ["knowledge"])] == ["knowledge"]


def test_the_page_lists_the_agents() -> None:
    part = PAGE.read_text("utf-8").split("\n## The agents\n", 1)[1].split("\n## ", 1)[0]
    rows = [
        line.strip("|").split("|")
        for line in part.splitlines()
        if line.startswith("| `")
    ]
    listed = [(*(re.findall(r"\w+", cell) for cell in row[:4]),) for row in rows]
    assert listed == [
        ([seat.section], [seat.agent_id], [seat.group], list(seat.after))
        for seat in SECTION_AGENTS
    ]


def test_a_section_that_went_by_rules_for_want_of_an_answer_is_none_that_is_ok() -> (
    None
):
    """The line says how many, and why, in the provider's words; by choice it says nothing."""
    body: Any = EXAMPLE.body()
    assert counts_text(EXAMPLE) == "fresh: 10 of 10 agents ok"
    why = "own did not answer: LlmRejected: 'own': model 'own' not found"
    for section in ("knowledge", "plot_threads"):
        body["background"][section] |= {"by": "rules", "note": f"{UNJUDGED}; {why}"}
    body["background"]["relationship"] |= {"by": "rules", "note": UNJUDGED}
    line = counts_text(read_document(body))
    told = "fresh: 8 of 10 agents ok by a model, 2 by rules"
    assert line == f"{told} ({why})"
