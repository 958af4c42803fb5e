"""A phase with `repeat_until`: rounds of one task until a condition holds, none of them computed twice."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from contracts.pipelines import Phase, Pipeline
from supervisor.pipelines.declaration.checks import problems_of
from supervisor.pipelines.driver import Drive
from tests.unit.supervisor.pipelines.house import House, a_phase, a_pipeline, until


class Writer:
    """Betters a draft by one a round; notes what each round was told, and refuses in round *bad*."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.bad: int | None = None

    async def better(self, told: dict[str, Any]) -> dict[str, Any]:
        """Return the next draft."""
        self.told.append(told)
        await asyncio.sleep(0)
        if told["round"] == self.bad:
            raise OSError("no ink")
        return {"draft": f"draft {told['round']}", "score": told["round"]}

    def house(self, folder: Path) -> House:
        """Return a house in which it works."""
        return House(folder, better=self.better, goal=lambda told: told, join=lambda told: told)


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


async def _result(house: House) -> Any:
    ended = json.loads(await house.runs.outcome("s1") or b"{}")
    return (ended.get("result") or {}).get("join:results", {}).get("a")


async def test_rounds_run_until_the_condition_holds(tmp_path: Path) -> None:
    """Each is told what the one before returned, null in the first; what it says stands between the two."""
    writer = Writer()
    house = writer.house(tmp_path)
    await house.begin(_pipeline())
    await house.drive()
    assert await _result(house) == "draft 3"
    assert [one["round"] for one in writer.told] == [0, 1, 2, 3]
    assert [one["before"] and one["before"]["score"] for one in writer.told] == [None, 0, 1, 2]
    assert next(one.text for one in house.told if (one.kind, one.phase) == ("phase_done", "write")) == "4 rounds"
    told = [one.text for one in house.told if one.kind == "phase_progress"]
    assert told == ["round 1 of at most 10", "round 2 of at most 10", "round 3 of at most 10"]


async def test_what_is_not_reached_fails_and_goes_on_with_more_rounds(tmp_path: Path) -> None:
    """Where it stood: no round is computed again."""
    writer = Writer()
    house = writer.house(tmp_path)
    await house.begin(_pipeline(at_most=2))
    await house.drive()
    record = await house.runs.read("s1")
    assert record is not None
    assert record.phases["write"].error_type == "NotReached"
    assert "does not hold after 2 rounds; raise `at_most`, then resume" in (record.phases["write"].error or "")

    more = _pipeline(at_most=5)
    assert (await house.ask("resume", pipeline=more)).kind == "accepted"
    await house.drive()
    assert await _result(house) == "draft 3"
    assert [one["round"] for one in writer.told] == [0, 1, 2, 3]


async def test_a_round_that_fails_ends_the_phase_and_a_resume_begins_with_it(tmp_path: Path) -> None:
    """What others returned is kept."""
    writer = Writer()
    writer.bad = 2
    house = writer.house(tmp_path)
    await house.begin(_pipeline())
    await house.drive()
    record = await house.runs.read("s1")
    assert record is not None
    assert record.phases["write"].error_type == "RoundFailed"
    assert record.phases["write"].error == "round 2 of 3: OSError: no ink"
    writer.bad = None
    assert (await house.ask("resume")).kind == "accepted"
    await house.drive()
    assert await _result(house) == "draft 3"
    assert [one["round"] for one in writer.told] == [0, 1, 2, 2, 3]


async def test_drivers_that_die_leave_no_round_to_be_computed_twice(tmp_path: Path) -> None:
    """Six die in turn, each in the middle."""
    writer = Writer()
    house = writer.house(tmp_path)
    await house.begin(_pipeline(repeat_until="${last.score} >= 20", at_most=50))
    for death in range(6):
        fence = await house.claim(holder=f"h{death}") if not death else await house.steal()
        driving = asyncio.create_task(Drive(house.parts, "s1", fence).run())
        await until(lambda: len(writer.told) >= 3 * (death + 1))  # noqa: B023 - it is awaited here
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
    await Drive(house.parts, "s1", await house.steal()).run()
    assert await _result(house) == "draft 20"
    assert [one["round"] for one in writer.told] == list(range(21))


async def test_asked_to_run_again_all_rounds_do(tmp_path: Path) -> None:
    """Its answers were not good enough."""
    writer = Writer()
    house = writer.house(tmp_path)
    await house.begin(_pipeline(), keep=True)
    await house.drive()
    assert (await house.ask("rerun", phase="write")).kind == "accepted"
    await house.drive()
    assert [one["round"] for one in writer.told] == [0, 1, 2, 3] * 2


async def test_a_condition_that_cannot_be_told_fails_the_phase(tmp_path: Path) -> None:
    """With the reason, and what was computed is kept."""
    writer = Writer()
    house = writer.house(tmp_path)
    await house.begin(_pipeline(repeat_until="${last.mark} >= 3"))
    await house.drive()
    record = await house.runs.read("s1")
    assert record is not None
    assert "without 'mark'" in (record.phases["write"].error or "")
    assert len(writer.told) == 1


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"repeat_until": "${last.score} >="}, "repeat_until: "),
        ({"repeat_until": "${nothing:results}"}, "there is no phase 'nothing'"),
        ({"repeat_until": "${write:results.score} > 1"}, "that is what it writes itself"),
        ({"for_each": "${goal:results}"}, "a phase with `for_each` has no rounds"),
        ({"writes": ("draft",)}, "writes `results` alone"),
        ({"corrects": "goal"}, "corrects none"),
        ({"repeat_until": None, "parameters": {"before": "${last}"}}, "the phase has no `repeat_until`"),
        ({"parameters": {"before": "${item}"}}, "the phase has no `for_each`"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(told: dict[str, Any], words: str) -> None:
    """With the field."""
    assert words in "; ".join(problem.text for problem in problems_of(_pipeline(**told)))
