"""Arithmetic and tables of the benchmarks."""

import io
import uuid

import pytest
from rich.console import Console

from benchmarks import nats_rows
from benchmarks.__main__ import compared_with_peers
from benchmarks.lanes import OURS, RAW, budget_assignment, new_task_id
from benchmarks.table import HEADINGS, Row, markdown, missing, percentile, ratio, show


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)]
)
def test_percentile_is_the_value_that_the_share_does_not_exceed(
    share: float, expected: int
) -> None:
    assert percentile(list(range(100, 0, -1)), share) == expected


def test_percentile_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_ratio_says_how_many_times_the_other_fits() -> None:
    assert ratio(15, 10) == "1.50x"
    assert ratio(15, 0) == "no ratio"


def test_what_could_not_be_measured_stays_in_the_table_with_its_reason() -> None:
    row = missing("celery", "cannot be installed")
    printed = io.StringIO()
    show([row], "caption", Console(file=printed, width=200))
    for text in (printed.getvalue(), markdown([row], "caption")):
        assert "celery" in text
        assert "not measured: cannot be installed" in text


def test_markdown_keeps_its_columns_when_a_cell_holds_a_bar() -> None:
    line = markdown([missing("x", "a|b\nc")], "caption").splitlines()[2]
    assert line.replace("\\|", "").count("|") == len(HEADINGS) + 1


def test_ours_is_compared_with_the_fastest_peer_that_ran() -> None:
    ours = Row(nats_rows.TITLES["ours"], tasks_per_s=9000, compared="tasks/s 1.20x raw")
    rows = [
        ours,
        Row("arq (1)", tasks_per_s=3000),
        Row("dramatiq (2)", tasks_per_s=2000),
        missing("celery", "away"),
    ]
    compared = compared_with_peers(rows)
    assert compared[0].compared == "tasks/s 1.20x raw; tasks/s 3.00x best peer"
    assert compared[1:] == rows[1:]


def test_task_ids_are_version_7_and_differ() -> None:
    ids = {new_task_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert {uuid.UUID(task_id).version for task_id in ids} == {7}


def test_both_lanes_are_given_the_same_question() -> None:
    sizes = {len(budget_assignment(lane, 5)[1]) for lane in (RAW, OURS)}
    assert len(sizes) == 1
