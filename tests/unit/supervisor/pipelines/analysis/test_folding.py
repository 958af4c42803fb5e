"""Folding reports into an analysis: each once, and into its own section alone."""

from decimal import Decimal
from typing import Any

import pytest

from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import StoryResponse, StorySettings
from tasklore.contracts.messages import ErrorNote, Usage
from tasklore.memory.stories.view import StandingStory
from tasklore.supervisor.pipelines.analysis.document import exact_usd
from tasklore.supervisor.pipelines.analysis.records import AnalysisRecord, SectionRecord
from tasklore.supervisor.pipelines.analysis.reducer import AnalysisDraft, SectionReport
from tests.unit.supervisor.reports import report_on

SETTINGS = StorySettings(story_id="harbour")
STORY = StandingStory(settings=SETTINGS)
SPENT = Usage(input_tokens=10, output_tokens=2, cost_usd=0.1)


def a_draft() -> AnalysisDraft:
    """Return an analysis in which everybody who waits for nobody was asked."""
    response = StoryResponse(number=1, text="Mara set the lamp down.")
    draft = AnalysisDraft(
        AnalysisRecord.open(SETTINGS, response, SECTION_AGENTS, "digest", 1_000), {}
    )
    draft.skip()
    draft.ask(1_000, lambda _seat: None)
    return draft


def report(
    draft: AnalysisDraft,
    section: str,
    status: Any = "completed",
    result: Any = None,
    **told: Any,
) -> SectionReport:
    """Return the report of whoever was asked for *section*."""
    seat = draft.record.by_section[section]
    assignment = draft.record.assignment(seat, "S")
    found = report_on(
        assignment, status, result=result or {"by": "rules"}, usage=SPENT, **told
    )
    return SectionReport(
        section=section, task_id=assignment.task_id, at_ms=2_000, report=found
    )


def state(draft: AnalysisDraft, section: str) -> SectionRecord:
    return draft.record.by_section[section]


def test_a_repeated_report_is_folded_once() -> None:
    draft = a_draft()
    found = report(
        draft,
        "relationship",
        result={"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]},
    )
    draft.fold([found, found], STORY)
    once = draft.record, dict(draft.sections), dict(draft.changes)
    failed = report(
        draft, "relationship", "failed", error=ErrorNote(type="E", message="m")
    )
    draft.fold(
        [
            found,
            failed,
            SectionReport(section="relationship", task_id=found.task_id, at_ms=3_000),
        ],
        STORY,
    )
    assert (draft.record, draft.sections, draft.changes) == once
    assert state(draft, "relationship").cost_usd == Decimal("0.1")


def test_a_report_of_another_run_changes_nothing() -> None:
    draft = a_draft()
    before = draft.record, dict(draft.sections)
    found = report(draft, "knowledge")
    strange = SectionReport(
        section="tone", task_id=found.task_id, at_ms=2_000, report=found.report
    )
    draft.fold(
        [
            SectionReport(
                section="knowledge", task_id="a-other", at_ms=2_000, report=found.report
            ),
            strange,
        ],
        STORY,
    )
    assert (draft.record, draft.sections) == before


@pytest.mark.parametrize(
    ("status", "was_late", "becomes"),
    [
        ("failed", False, "failed"),
        ("rejected", False, "failed"),
        ("expired", False, "missed"),
        ("cancelled", False, "failed"),
        ("cancelled", True, "missed"),
        ("completed", True, "ok"),
        ("other", False, "failed"),
    ],
)
def test_the_status_of_a_report_becomes_the_sections_state(
    status: str, was_late: bool, becomes: str
) -> None:
    draft = a_draft()
    if was_late:
        draft.mark_late(61_000)
        assert state(draft, "knowledge").state == "late"
    draft.fold(
        [
            report(
                draft, "knowledge", status, error=ErrorNote(type="E", message="x" * 400)
            )
        ],
        STORY,
    )
    seat = state(draft, "knowledge")
    assert (seat.state, seat.cost_usd, seat.input_tokens, seat.output_tokens) == (
        becomes,
        Decimal("0.1"),
        10,
        2,
    )
    assert len(str(draft.sections["knowledge"].get("error", ""))) <= 300


def test_a_failed_section_takes_its_earlier_change_back() -> None:
    draft = a_draft()
    failed = report(
        draft, "knowledge", "failed", error=ErrorNote(type="E", message="m")
    )
    draft.fold([failed, report(draft, "entity_analysis")], STORY)
    assert draft.changes == {"knowledge": None}


def test_a_waiting_section_is_asked_once_all_before_it_ended() -> None:
    draft = a_draft()
    draft.fold([report(draft, "memory_create")], STORY)
    draft.ask(2_000, lambda _seat: None)
    assert state(draft, "memory_extract").state == "waiting"
    draft.fold(
        [
            report(
                draft, "plot_threads", "failed", error=ErrorNote(type="E", message="m")
            )
        ],
        STORY,
    )
    draft.ask(2_500, lambda _seat: None)
    assert (
        state(draft, "memory_extract").state,
        state(draft, "memory_extract").asked_ms,
    ) == ("asked", 2_500)
    assert state(draft, "fact_extract").state == "waiting"


@pytest.mark.parametrize(
    ("said", "exact"), [(0.1, "0.1"), (1e-7, "1E-7"), (0.0, "0.0"), (float("nan"), "0")]
)
def test_an_amount_is_taken_as_it_was_written(said: float, exact: str) -> None:
    assert exact_usd(said) == Decimal(exact)
    assert exact_usd(float("inf")) == 0
