"""Folding: what has arrived changes its own seat, once, and nothing else."""

from decimal import Decimal
from typing import Any

import pytest

from contracts.analysis.roster import ROSTER
from contracts.analysis.stories import StoryResponse, StorySettings
from contracts.messages import ErrorNote, Usage
from memory.stories.view import StandingStory
from supervisor.pipelines.analysis.document import exact_usd
from supervisor.pipelines.analysis.records import AnalysisRecord, SectionRecord
from supervisor.pipelines.analysis.reducer import AnalysisDraft, SectionReport
from tests.unit.supervisor.pipelines.analysis.house import report_on

SETTINGS = StorySettings(story_id="harbour")
STORY = StandingStory(SETTINGS)
SPENT = Usage(input_tokens=10, output_tokens=2, cost_usd=0.1)


def a_draft() -> AnalysisDraft:
    """Return an analysis in which everybody who waits for nobody was asked."""
    response = StoryResponse(number=1, text="Mara set the lamp down.")
    draft = AnalysisDraft(AnalysisRecord.open(SETTINGS, response, ROSTER, "digest", 1_000), {})
    draft.skip()
    draft.ask(1_000, lambda _seat: None)
    return draft


def report(
    draft: AnalysisDraft, section: str, status: Any = "completed", result: Any = None, **told: Any
) -> SectionReport:
    """Return the report of whoever was asked for *section*."""
    seat = draft.record.by_section[section]
    assignment = draft.record.assignment(seat, "S")
    found = report_on(assignment, status, result=result or {"by": "rules"}, usage=SPENT, **told)
    return SectionReport(section, assignment.task_id, 2_000, found)


def state(draft: AnalysisDraft, section: str) -> SectionRecord:
    """Return how far *section* is."""
    return draft.record.by_section[section]


def test_what_arrives_twice_is_folded_once() -> None:
    """Neither its cost nor its change is counted again, and a later word on it is not heard."""
    draft = a_draft()
    found = report(draft, "relationship", result={"interactions": [{"chars": ["Mara", "Tom"], "change": 5}]})
    draft.fold([found, found], STORY)
    once = draft.record, dict(draft.sections), dict(draft.changes)
    failed = report(draft, "relationship", "failed", error=ErrorNote(type="E", message="m"))
    draft.fold([found, failed, SectionReport("relationship", found.task_id, 3_000)], STORY)

    assert (draft.record, draft.sections, draft.changes) == once
    assert state(draft, "relationship").cost_usd == Decimal("0.1")


def test_what_is_of_another_run_or_of_nobody_changes_nothing() -> None:
    """A report of a run before this one, and of a section that nobody finds."""
    draft = a_draft()
    before = draft.record, dict(draft.sections)
    found = report(draft, "knowledge")
    strange = SectionReport("tone", found.task_id, 2_000, found.report)
    draft.fold([SectionReport("knowledge", "a-other", 2_000, found.report), strange], STORY)

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
def test_a_report_says_what_becomes_of_its_seat(status: str, was_late: bool, becomes: str) -> None:
    """With what it cost, whatever it is."""
    draft = a_draft()
    if was_late:
        draft.mark_late(61_000)
        assert state(draft, "knowledge").state == "late"
    draft.fold([report(draft, "knowledge", status, error=ErrorNote(type="E", message="x" * 400))], STORY)

    seat = state(draft, "knowledge")
    assert (seat.state, seat.cost_usd, seat.input_tokens, seat.output_tokens) == (becomes, Decimal("0.1"), 10, 2)
    assert len(str(draft.sections["knowledge"].get("error", ""))) <= 300


def test_what_fails_takes_back_what_the_same_section_changed_before() -> None:
    """A change stands for a finding of this text, and there is none."""
    draft = a_draft()
    failed = report(draft, "knowledge", "failed", error=ErrorNote(type="E", message="m"))
    draft.fold([failed, report(draft, "entity_analysis")], STORY)

    assert draft.changes == {"knowledge": None}


def test_whoever_waited_is_asked_when_the_last_of_those_has_ended() -> None:
    """However that ended."""
    draft = a_draft()
    draft.fold([report(draft, "memory_create")], STORY)
    draft.ask(2_000, lambda _seat: None)
    assert state(draft, "memory_extract").state == "waiting"
    draft.fold([report(draft, "plot_threads", "failed", error=ErrorNote(type="E", message="m"))], STORY)
    draft.ask(2_500, lambda _seat: None)

    assert (state(draft, "memory_extract").state, state(draft, "memory_extract").asked_ms) == ("asked", 2_500)
    assert state(draft, "fact_extract").state == "waiting"


@pytest.mark.parametrize(("said", "exact"), [(0.1, "0.1"), (1e-7, "1E-7"), (0.0, "0.0"), (float("nan"), "0")])
def test_an_amount_is_taken_as_it_was_written(said: float, exact: str) -> None:
    """Not as the binary fraction next to it."""
    assert exact_usd(said) == Decimal(exact)
    assert exact_usd(float("inf")) == 0
