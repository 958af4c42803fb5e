"""Progress of an analysis that is looked up while its request is out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasklore.commands.analysis import watch as analysis_watch
from tasklore.commands.analysis.watch import OVER_S, STILL_S, Progress
from tasklore.contracts.analysis.document import AnalysisDocument, read_document

EXAMPLE = read_document((Path(__file__).parent / "example.json").read_bytes())
SECTIONS = [section for section, _ in EXAMPLE.sections()]
IMMEDIATE = [*EXAMPLE.body()["immediate"]]

Pass = Callable[[float], None]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Pass:
    """Return what lets seconds pass, on a clock that else stands still."""
    now = [1000.0]

    class Clock:
        monotonic = staticmethod(lambda: now[0])

    def pass_(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(analysis_watch, "time", Clock)
    return pass_


def _with(*sections: str, **changed: Any) -> AnalysisDocument:
    body = EXAMPLE.body()
    groups = {
        group: {
            name: changed.get(name, one)
            for name, one in body[group].items()
            if name in sections
        }
        for group in ("background", "immediate")
    }
    return read_document({**body, **groups})


def test_a_still_analysis_is_doubted_less_and_less_often(wait: Pass) -> None:
    progress = Progress(SECTIONS, SECTIONS, None)
    doubted = []
    for second in range(1, 40):
        wait(1)
        doubted += [second] if progress.is_doubtful() else []
    assert doubted == [3, 6, 12, 24, 36]
    progress.take(_with("knowledge"))
    assert not progress.is_doubtful()
    wait(STILL_S)
    assert progress.is_doubtful()
    assert not progress.is_doubtful()
    assert not progress.is_over


@pytest.mark.parametrize("waited", [SECTIONS, IMMEDIATE])
def test_a_complete_analysis_is_asked_for_and_then_over(
    waited: list[str], wait: Pass
) -> None:
    progress = Progress(SECTIONS, waited, None)
    progress.take(_with(*waited[1:]))
    wait(OVER_S)
    assert not progress.is_doubtful()
    progress.take(_with(*waited))
    assert not progress.is_doubtful()
    wait(OVER_S)
    assert progress.is_doubtful()
    assert not progress.is_over
    wait(STILL_S - OVER_S)
    assert progress.is_over


def test_a_failed_agent_is_not_asked_again(wait: Pass) -> None:
    failed = _with(*SECTIONS, knowledge={"status": "failed"})
    progress = Progress(SECTIONS, SECTIONS, failed)
    wait(STILL_S)
    assert progress.is_doubtful()
    progress.take(_with("plot_threads"))
    progress.take(failed)
    wait(60)
    assert not progress.is_doubtful()
    assert progress.is_over


def test_an_earlier_document_does_not_count(wait: Pass) -> None:
    progress = Progress(SECTIONS, SECTIONS, EXAMPLE)
    progress.take(EXAMPLE)
    wait(60)
    assert (progress.since_asked, progress.is_over, progress.has_moved) == (
        None,
        False,
        False,
    )
    progress.take(None)
    assert progress.since_asked is None
    progress.take(_with("knowledge"))
    assert progress.since_asked == _with("knowledge")
    begun = Progress(SECTIONS, SECTIONS, _with("knowledge"))
    assert begun.since_asked == _with("knowledge")
    assert Progress(SECTIONS, SECTIONS, None).since_asked is None
