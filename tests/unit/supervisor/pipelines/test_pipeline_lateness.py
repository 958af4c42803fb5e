"""Optional and late phases: the others go on, and a late result still counts."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tests.unit.supervisor.pipelines.fake_system import (
    PATIENCE_S,
    FakeSystem,
    Waiting,
    a_phase,
    a_pipeline,
    echo,
    fail,
    until,
)

SOON = timedelta(milliseconds=50)


def beside(*, slow: str = "slow", **told: Any) -> Pipeline:
    """Return a pipeline whose last phase reads of `weather`, which is as *told*."""
    letter = a_phase("letter", parameters={"x": "${weather:results?}"})
    return a_pipeline(a_phase("weather", slow, **told), letter)


async def ended(system: FakeSystem) -> dict[str, Any]:
    """Return how the run ended, by the events and the session."""
    return {
        "statuses": await system.statuses(),
        "end": system.kinds("completed", "failed"),
    }


async def test_a_run_completes_without_a_failed_optional_phase(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, slow=fail, echo=echo)
    await system.begin(beside(optional=True), keep=True)
    await system.drive()
    assert await ended(system) == {
        "statuses": {"weather": "failed", "letter": "done"},
        "end": [("completed", None)],
    }
    [letter] = await system.sessions.peek("s1", ["letter:results"])
    assert letter is not None
    assert letter.value == {"x": None}


async def test_a_resume_runs_a_failed_optional_phase_again(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, slow=fail, echo=echo)
    await system.begin(beside(optional=True), keep=True)
    await system.drive()
    system.workers.works["slow"] = echo
    assert (await system.ask("resume")).kind == "accepted"
    await system.drive()
    assert await system.statuses() == {"weather": "done", "letter": "done"}
    assert system.workers.runs == {"weather": 2, "letter": 2}


async def test_phases_begin_without_a_late_one_whose_result_counts(
    tmp_path: Path,
) -> None:
    slow = Waiting()
    system = FakeSystem(tmp_path, slow=slow, echo=echo)
    await system.begin(beside(late_after=SOON), keep=True)
    driving = asyncio.create_task(system.drive())
    await until(lambda: ("phase_done", "letter") in system.kinds())
    assert not driving.done()
    # What began in the millisecond of its end may have begun with it.
    began_ms = (await system.record()).phases["letter"].since_ms or 0
    await until(lambda: system.runs._now_ms() > began_ms)
    slow.release.set()
    await driving
    assert await system.statuses() == {"weather": "done", "letter": "done"}
    found = await system.sessions.peek("s1", ["weather:results", "letter:results"])
    assert [entry.value for entry in found if entry is not None] == [{}, {"x": None}]
    assert [one.text for one in system.events if one.kind == "phase_progress"] == [
        "late after 0.05 s: the phases after it continue without it"
    ]
    record = await system.record()
    assert [record.lateness(name) for name in record.phases] == [
        "late: letter began without it",
        "",
    ]


@pytest.mark.parametrize(("optional", "end"), [(True, "completed"), (False, "failed")])
async def test_a_late_phase_is_cancelled_after_cancel_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optional: bool, end: str
) -> None:
    monkeypatch.setattr("tasklore.supervisor.pipelines.phase_task._OVERDUE_S", 0.0)
    monkeypatch.setattr("tasklore.supervisor.pipelines.phase_task._LAST_LOOK_S", 0.0)
    system = FakeSystem(tmp_path, slow=Waiting(), echo=echo)
    await system.begin(
        beside(late_after=SOON, cancel_after=SOON, optional=optional), keep=True
    )
    await system.drive()
    assert await ended(system) == {
        "statuses": {"weather": "failed", "letter": "done"},
        "end": [(end, None)],
    }
    assert len(system.workers.cancelled) == 1


async def test_lateness_counts_from_the_first_driver(tmp_path: Path) -> None:
    slow = Waiting()
    system = FakeSystem(tmp_path, slow=slow, echo=echo)
    await system.begin(beside(late_after=timedelta(seconds=0.3)), keep=True)
    driving = asyncio.create_task(system.drive())
    await until(lambda: system.workers.runs["weather"])
    driving.cancel()
    await asyncio.wait([driving])
    system.runs._runs["s1"].leased_until_ms = 0
    await asyncio.sleep(0.3)
    async with asyncio.timeout(PATIENCE_S):
        driving = asyncio.create_task(system.drive(holder="next"))
        await until(lambda: ("phase_done", "letter") in system.kinds())
    slow.release.set()
    await driving
    assert system.workers.runs == {"weather": 1, "letter": 1}


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        (
            (
                a_phase("a", optional=True),
                a_phase("b", parameters={"x": "${a:results}"}),
            ),
            "being `optional`",
        ),
        (
            (
                a_phase("a", late_after=SOON),
                a_phase("b", parameters={"x": "${a:results}"}),
            ),
            "by its `late_after`",
        ),
        ((a_phase("a", cancel_after=SOON),), "give it a `late_after`"),
        (
            (a_phase("a", late_after=SOON, cancel_after=SOON, for_each="${input.x}"),),
            "only a phase of one task",
        ),
        ((a_phase("a"), a_phase("b", corrects="a", late_after=SOON)), "would mix both"),
        (
            (
                a_phase(
                    "a", late_after=timedelta(days=5), cancel_after=timedelta(days=5)
                ),
            ),
            "cancel_after is 10 days",
        ),
    ],
)
def test_invalid_lateness_is_refused(phases: tuple[Phase, ...], said: str) -> None:
    found = problems_of(a_pipeline(*phases, inputs={"x": {"default": []}}))
    assert [said in one.text for one in found] == [True]
