"""A phase with `repeat_until`: rounds of one task until a condition holds, none computed twice."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.drive import Drive
from tests.unit.supervisor.pipelines.fake_system import (
    FakeSystem,
    a_phase,
    a_pipeline,
    until,
)


class Writer:
    """Betters a draft by one a round; notes what each round was told, and refuses in round *bad*."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.bad: int | None = None

    async def better(self, told: dict[str, Any]) -> dict[str, Any]:
        self.told.append(told)
        await asyncio.sleep(0)
        if told["round"] == self.bad:
            raise OSError("no ink")
        return {"draft": f"draft {told['round']}", "score": told["round"]}

    def system(self, folder: Path) -> FakeSystem:
        return FakeSystem(
            folder, better=self.better, goal=lambda told: told, join=lambda told: told
        )


def _pipeline(**told: Any) -> Pipeline:
    rounds = {
        "repeat_until": "${last.score} >= ${goal:results.score}",
        "parameters": {"before": "${last}", "round": "${index}"},
        **told,
    }
    return a_pipeline(
        a_phase("goal", "goal", parameters={"score": 3}),
        Phase(name="write", agent="A", task="better", **rounds),
        a_phase("join", "join", parameters={"a": "${write:results.draft}"}),
    )


async def _result(system: FakeSystem) -> Any:
    ended = json.loads(await system.runs.outcome("s1") or b"{}")
    return (ended.get("result") or {}).get("join:results", {}).get("a")


async def test_rounds_run_until_the_condition_holds(tmp_path: Path) -> None:
    writer = Writer()
    system = writer.system(tmp_path)
    await system.begin(_pipeline())
    await system.drive()
    assert await _result(system) == "draft 3"
    assert [one["round"] for one in writer.told] == [0, 1, 2, 3]
    assert [one["before"] and one["before"]["score"] for one in writer.told] == [
        None,
        0,
        1,
        2,
    ]
    assert (
        next(
            one.text
            for one in system.events
            if (one.kind, one.phase) == ("phase_done", "write")
        )
        == "4 rounds"
    )
    told = [one.text for one in system.events if one.kind == "phase_progress"]
    assert told == [
        "round 1 of at most 10",
        "round 2 of at most 10",
        "round 3 of at most 10",
    ]


async def test_a_phase_that_ran_out_of_rounds_goes_on_with_more(tmp_path: Path) -> None:
    writer = Writer()
    system = writer.system(tmp_path)
    await system.begin(_pipeline(at_most=2))
    await system.drive()
    record = await system.record()
    assert record.phases["write"].error_type == "NotReached"
    assert "does not hold after 2 rounds; raise `at_most`, then resume" in (
        record.phases["write"].error or ""
    )
    more = _pipeline(at_most=5)
    assert (await system.ask("resume", pipeline=more)).kind == "accepted"
    await system.drive()
    assert await _result(system) == "draft 3"
    assert [one["round"] for one in writer.told] == [0, 1, 2, 3]


async def test_a_resume_begins_with_the_failed_round(tmp_path: Path) -> None:
    writer = Writer()
    writer.bad = 2
    system = writer.system(tmp_path)
    await system.begin(_pipeline())
    await system.drive()
    record = await system.record()
    assert record.phases["write"].error_type == "RoundFailed"
    assert record.phases["write"].error == "round 2 of 3: OSError: no ink"
    writer.bad = None
    assert (await system.ask("resume")).kind == "accepted"
    await system.drive()
    assert await _result(system) == "draft 3"
    assert [one["round"] for one in writer.told] == [0, 1, 2, 2, 3]


async def test_no_round_runs_twice_when_drivers_die(tmp_path: Path) -> None:
    writer = Writer()
    system = writer.system(tmp_path)
    await system.begin(_pipeline(repeat_until="${last.score} >= 20", at_most=50))
    for death in range(6):
        fence = (
            await system.claim(holder=f"h{death}")
            if not death
            else await system.steal()
        )
        driving = asyncio.create_task(Drive(system.parts, "s1", fence).run())
        await until(lambda: len(writer.told) >= 3 * (death + 1))  # noqa: B023 - it is awaited here
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
    await Drive(system.parts, "s1", await system.steal()).run()
    assert await _result(system) == "draft 20"
    assert [one["round"] for one in writer.told] == list(range(21))


async def test_a_rerun_runs_all_rounds_again(tmp_path: Path) -> None:
    writer = Writer()
    system = writer.system(tmp_path)
    await system.begin(_pipeline(), keep=True)
    await system.drive()
    assert (await system.ask("rerun", phase="write")).kind == "accepted"
    await system.drive()
    assert [one["round"] for one in writer.told] == [0, 1, 2, 3] * 2


async def test_a_condition_without_its_value_fails_the_phase(tmp_path: Path) -> None:
    writer = Writer()
    system = writer.system(tmp_path)
    await system.begin(_pipeline(repeat_until="${last.mark} >= 3"))
    await system.drive()
    record = await system.record()
    assert "without 'mark'" in (record.phases["write"].error or "")
    assert len(writer.told) == 1


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"repeat_until": "${last.score} >="}, "repeat_until: "),
        (
            {"repeat_until": "${write:results.score} > 1"},
            "that is what it writes itself",
        ),
        ({"for_each": "${goal:results}"}, "a phase with `for_each` has no rounds"),
        ({"writes": ("draft",)}, "writes `results` alone"),
        ({"corrects": "goal"}, "corrects none"),
        (
            {"repeat_until": None, "parameters": {"before": "${last}"}},
            "the phase has no `repeat_until`",
        ),
    ],
)
def test_invalid_rounds_are_refused(told: dict[str, Any], words: str) -> None:
    assert words in "; ".join(
        problem.text for problem in problems_of(_pipeline(**told))
    )
