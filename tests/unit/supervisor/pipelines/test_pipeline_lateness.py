"""Phases that are optional or late: the others stand, and what comes later still counts."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contracts.pipelines import Phase, Pipeline
from supervisor.pipelines.declaration.checks import problems_of
from tests.unit.supervisor.pipelines.house import PATIENCE_S, House, a_phase, a_pipeline, echo, until

SOON = timedelta(milliseconds=50)


def beside(*, slow: str = "slow", **told: Any) -> Pipeline:
    """Return a pipeline whose last phase reads of `weather`, which is as *told*."""
    letter = a_phase("letter", parameters={"x": "${weather:results?}"})
    return a_pipeline(a_phase("weather", slow, **told), letter)


def fail(_parameters: dict[str, Any]) -> Any:
    """Fail."""
    raise ValueError("no network")


class Slow:
    """A task that ends once it is released."""

    def __init__(self) -> None:
        self.release = asyncio.Event()

    async def __call__(self, _parameters: dict[str, Any]) -> dict[str, Any]:
        """Wait."""
        await self.release.wait()
        return {"sun": True}


async def ended(house: House) -> dict[str, Any]:
    """Return how the run ended, by the events and the session."""
    return {"statuses": await house.statuses(), "end": house.kinds("completed", "failed")}


async def test_the_others_stand_when_an_optional_phase_fails(tmp_path: Path) -> None:
    """Its entries read as null, and the run is completed; the failure is told."""
    house = House(tmp_path, slow=fail, echo=echo)
    await house.begin(beside(optional=True), keep=True)
    await house.drive()
    assert await ended(house) == {
        "statuses": {"weather": "failed", "letter": "done"},
        "end": [("completed", None)],
    }
    [letter] = await house.sessions.peek("s1", ["letter:results"])
    assert letter is not None
    assert letter.value == {"x": None}


async def test_without_the_option_a_failure_blocks_the_phases_after_it(tmp_path: Path) -> None:
    """The run has failed."""
    house = House(tmp_path, slow=fail, echo=echo)
    await house.begin(beside())
    await house.drive()
    assert (await ended(house))["end"] == [("failed", None)]
    assert house.office.runs["letter"] == 0


async def test_an_optional_phase_is_tried_again_by_a_resume(tmp_path: Path) -> None:
    """With what depends on it, in a run that was kept."""
    house = House(tmp_path, slow=fail, echo=echo)
    await house.begin(beside(optional=True), keep=True)
    await house.drive()
    house.office.works["slow"] = echo
    assert (await house.ask("resume")).kind == "accepted"
    await house.drive()
    assert await house.statuses() == {"weather": "done", "letter": "done"}
    assert house.office.runs == {"weather": 2, "letter": 2}


async def test_phases_after_a_late_one_begin_without_it_and_its_result_counts(tmp_path: Path) -> None:
    """The run does not end before it has come."""
    slow = Slow()
    house = House(tmp_path, slow=slow, echo=echo)
    await house.begin(beside(late_after=SOON), keep=True)
    driving = asyncio.create_task(house.drive())
    await until(lambda: ("phase_done", "letter") in house.kinds())
    assert not driving.done()
    slow.release.set()
    await driving
    assert await house.statuses() == {"weather": "done", "letter": "done"}
    found = await house.sessions.peek("s1", ["weather:results", "letter:results"])
    assert [entry.value for entry in found if entry is not None] == [{"sun": True}, {"x": None}]
    assert [one.text for one in house.told if one.kind == "phase_progress"] == [
        "late after 0.05 s: the phases after it go on without it"
    ]
    record = await house.runs.read("s1")
    assert record is not None
    assert [record.lateness(name) for name in record.phases] == ["late: letter began without it", ""]


@pytest.mark.parametrize(("optional", "end"), [(True, "completed"), (False, "failed")])
async def test_a_late_phase_is_cancelled_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optional: bool, end: str
) -> None:
    """Then it has failed, and the run with it unless it is optional."""
    monkeypatch.setattr("supervisor.pipelines.phase_task._OVERDUE_S", 0.0)
    monkeypatch.setattr("supervisor.pipelines.phase_task._LAST_LOOK_S", 0.0)
    house = House(tmp_path, slow=Slow(), echo=echo)
    await house.begin(beside(late_after=SOON, cancel_after=SOON, optional=optional), keep=True)
    await house.drive()
    assert await ended(house) == {"statuses": {"weather": "failed", "letter": "done"}, "end": [(end, None)]}
    assert len(house.office.cancelled) == 1


async def test_a_phase_is_late_by_when_it_began_whoever_drives_it(tmp_path: Path) -> None:
    """A driver that takes the run over does not begin to count anew."""
    slow = Slow()
    house = House(tmp_path, slow=slow, echo=echo)
    await house.begin(beside(late_after=timedelta(seconds=0.3)), keep=True)
    driving = asyncio.create_task(house.drive())
    await until(lambda: house.office.runs["weather"])
    driving.cancel()
    await asyncio.wait([driving])
    house.runs._runs["s1"].leased_until_ms = 0
    await asyncio.sleep(0.3)
    async with asyncio.timeout(PATIENCE_S):
        driving = asyncio.create_task(house.drive(holder="next"))
        await until(lambda: ("phase_done", "letter") in house.kinds())
    slow.release.set()
    await driving
    assert house.office.runs == {"weather": 1, "letter": 1}


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        ((a_phase("a", optional=True), a_phase("b", parameters={"x": "${a:results}"})), "being `optional`"),
        ((a_phase("a", late_after=SOON), a_phase("b", parameters={"x": "${a:results}"})), "by its `late_after`"),
        ((a_phase("a", cancel_after=SOON),), "give it a `late_after`"),
        ((a_phase("a", late_after=SOON, cancel_after=SOON, for_each="${input.x}"),), "only a phase of one task"),
        ((a_phase("a"), a_phase("b", corrects="a", late_after=SOON)), "would mix both"),
        ((a_phase("a", late_after=timedelta(days=5), cancel_after=timedelta(days=5)),), "cancel_after is 10 days"),
    ],
)
def test_what_cannot_be_meant_is_told(phases: tuple[Phase, ...], said: str) -> None:
    """Before the run, with the cure."""
    found = problems_of(a_pipeline(*phases, inputs={"x": {"default": []}}))
    assert [said in one.text for one in found] == [True]
