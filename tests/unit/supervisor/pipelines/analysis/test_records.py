"""Records of analyses, and the ids of their tasks."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.analysis.document import AnalysisDocument
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import StoryResponse, StorySettings
from tasklore.contracts.errors import InvalidInput
from tasklore.supervisor.pipelines.analysis.document import (
    meta_of,
    sections_of,
    stats_of,
)
from tasklore.supervisor.pipelines.analysis.records import (
    AnalysisRecord,
    SectionRecord,
    SectionState,
    digest_of,
    read_record,
    roster_for,
)
from tasklore.supervisor.pipelines.analysis.reducer import AnalysisDraft

RESPONSE = StoryResponse(number=7, chapter=2, text="Mara set the lamp down.")
SETTINGS = StorySettings(story_id="harbour")
STATES: tuple[SectionState, ...] = (
    "waiting",
    "asked",
    "late",
    "missed",
    "ok",
    "failed",
    "skipped",
)


def a_record(now_ms: int = 1_000_000) -> AnalysisRecord:
    return AnalysisRecord.open(SETTINGS, RESPONSE, SECTION_AGENTS, "digest", now_ms)


def test_a_record_is_read_as_written() -> None:
    record = a_record()
    assert read_record(record.as_json()) == record
    assert read_record(b'{"story_id": "harbour"}') is None
    assert read_record(None) is None


def test_a_task_id_depends_on_section_text_opening_and_run() -> None:
    record = a_record()
    [seat, other, *_] = record.seats
    asked = seat.model_copy(update={"state": "asked", "asked_ms": 5})
    ids = [
        record.task_id(seat),
        record.task_id(other),
        record.task_id(seat.model_copy(update={"run": 2})),
        a_record(2_000_000).task_id(seat),
        record.model_copy(update={"digest": "x"}).task_id(seat),
        record.model_copy(update={"number": 8}).task_id(seat),
    ]

    assert record.task_id(asked) == ids[0]
    assert len(set(ids)) == len(ids)
    assert all(len(task_id) <= 64 for task_id in ids)


def test_an_assignment_is_the_same_whenever_it_is_sent() -> None:
    record = a_record()
    by_section = {
        section: seat.model_copy(update={"state": "asked", "asked_ms": 5_000})
        for section, seat in record.by_section.items()
    }
    slow = record.assignment(by_section["knowledge"], "S")
    quick = record.assignment(by_section["entity_analysis"], "S")
    assert slow == record.assignment(by_section["knowledge"], "S")
    assert slow.deadline is not None
    assert quick.deadline is not None
    assert slow.deadline - slow.created_at == timedelta(seconds=60 + SETTINGS.late_s)
    assert quick.deadline - quick.created_at == timedelta(seconds=20)
    assert (slow.story_id, slow.response_number, slow.memory) == (
        "harbour",
        7,
        "bypass",
    )


@pytest.mark.parametrize(
    ("seats", "late_s", "words"),
    [
        (
            {"knowledge": {"deadline_s": 1e-9}},
            1.0,
            "agents.knowledge.deadline_s of the story must be a span",
        ),
        (
            {"knowledge": {"after": ["plot_threads"] * 501}},
            1.0,
            "agents.knowledge.after of the story has 501 items",
        ),
        ({}, 1e-9, "late_s of the story must be a span of time above zero"),
        (
            {f"own_{n}": {"agent": "A", "task": "t"} for n in range(491)},
            1.0,
            "agents: 501 sections, at most 500",
        ),
    ],
)
def test_settings_beyond_the_limits_are_refused_by_their_names(
    seats: dict[str, dict[str, Any]], late_s: float, words: str
) -> None:
    settings = StorySettings.model_validate(
        {"story_id": "harbour", "agents": seats, "late_s": late_s}
    )
    with pytest.raises(InvalidInput, match=re.escape(words)):
        roster_for(settings)


def test_text_chapter_and_base_make_the_digest() -> None:
    digests = {
        digest_of("base", RESPONSE),
        digest_of("base", RESPONSE.model_copy(update={"text": "Other."})),
        digest_of("base", RESPONSE.model_copy(update={"chapter": 3})),
        digest_of("other", RESPONSE),
    }
    assert len(digests) == 4
    assert digest_of("base", RESPONSE.model_copy()) in digests


@given(
    states=st.lists(
        st.sampled_from(STATES),
        min_size=len(SECTION_AGENTS),
        max_size=len(SECTION_AGENTS),
    )
)
def test_counts_of_a_document_add_up(states: list[SectionState]) -> None:
    record = a_record()
    seats = [
        seat.model_copy(update={"state": state})
        for seat, state in zip(record.seats, states, strict=True)
    ]
    record = record.model_copy(update={"seats": tuple(seats)})
    found = {
        seat.section: {"status": "late"}
        for seat in seats
        if seat.state in ("late", "missed")
    }
    document = AnalysisDocument.model_validate(
        AnalysisDraft(record, dict(found)).body("2026-01-01T12:00:00+00:00")
    )
    meta = document.meta
    assert meta.agents_run == sum(state not in ("waiting", "asked") for state in states)
    assert (meta.agents_ok, meta.agents_skipped) == (
        states.count("ok"),
        states.count("skipped"),
    )
    assert (meta.status == "fresh") == all(
        state in ("ok", "skipped") for state in states
    )
    assert sections_of(document.minified()) == found


def test_savings_are_the_sum_of_their_parts() -> None:
    record = a_record()
    spent = {"asked_ms": 1, "reported_ms": 2, "cost_usd": Decimal("0.0016")}
    paid = SectionRecord.of(SECTION_AGENTS[0]).model_copy(update=spent)
    sections = {
        "fact_extract": {"reduction": {"before": 4000, "after": 110, "pct": 97}},
        "memory_extract": {"reduction": {"before": 14700, "after": 590, "pct": 96}},
        "thread_extract": {"reduction": {"before": 5500, "after": 815, "pct": 85}},
        "tone": {"reduction": "a little"},
    }
    stats = stats_of(record.with_section(paid), sections)  # type: ignore[arg-type] # JSON

    assert stats["total_reduction"] == {
        "before": 24200,
        "after": 1515,
        "pct": 94,
        "saved": 22685,
    }
    assert (stats["total_cost"], stats["roi"]) == (0.0016, 42.5)
    assert stats_of(record, sections)["roi"] is None  # type: ignore[arg-type] # JSON
    assert "total_reduction" not in stats_of(record, {})
    assert meta_of(record, "2026-01-01")["agents_run"] == 1


def test_an_unreadable_document_has_no_sections() -> None:
    assert (
        sections_of(None)
        == sections_of(b"[")
        == sections_of(b"[]")
        == sections_of(b'{"background": 1}')
        == {}
    )
