"""A phase with `for_each`: one task an item, results in order, and no item computed twice."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.pipelines import MOST_ITEMS, Phase, Pipeline
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.drive import Drive
from tests.unit.supervisor.pipelines.fake_system import (
    TOOK_MS,
    FakeSystem,
    a_phase,
    a_pipeline,
    until,
)


class Reader:
    """Reads papers; counts how often each was read, and refuses those in *bad*."""

    def __init__(self, *papers: Any) -> None:
        self.papers: list[Any] = list(papers)
        self.bad: set[Any] = set()
        self.read: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        self.gate = asyncio.Event()
        self.gate.set()

    def plan(self, _told: dict[str, Any]) -> dict[str, Any]:
        return {"papers": self.papers}

    async def summarise(self, told: dict[str, Any]) -> Any:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.read[str(told["paper"])] += 1
        await self.gate.wait()
        await asyncio.sleep(0)
        self.at_once -= 1
        if told["paper"] in self.bad:
            raise OSError(f"{told['paper']} is torn")
        return (
            {"of": told["paper"], "number": told["number"]}
            if "number" in told
            else f"about {told['paper']}"
        )

    def system(self, folder: Path) -> FakeSystem:
        return FakeSystem(
            folder, plan=self.plan, summarise=self.summarise, join=lambda told: told
        )


def _pipeline(**told: Any) -> Pipeline:
    fan = {
        "for_each": "${plan:results.papers}",
        "parameters": {"paper": "${item}"},
        **told,
    }
    return a_pipeline(
        a_phase("plan", "plan", writes=("results",)),
        Phase(name="read", agent="A", task="summarise", **fan),
        a_phase("join", "join", parameters={"a": "${read:results}"}),
    )


async def _result(system: FakeSystem) -> Any:
    ended = json.loads(await system.runs.outcome("s1") or b"{}")
    return ended.get("result", {}).get("join:results", {}).get("a")


async def test_results_come_in_the_order_of_the_items(tmp_path: Path) -> None:
    reader = Reader(*range(150))
    system = reader.system(tmp_path)
    await system.begin(_pipeline(at_once=7))
    await system.drive()
    assert await _result(system) == [f"about {number}" for number in range(150)]
    assert reader.most_at_once == 7
    assert set(reader.read.values()) == {1}
    assert system.kinds("phase_done") == [
        ("phase_done", "plan"),
        ("phase_done", "read"),
        ("phase_done", "join"),
    ]
    assert (
        next(
            one.text
            for one in system.events
            if (one.kind, one.phase) == ("phase_done", "read")
        )
        == "150 items"
    )


async def test_a_phase_takes_as_long_as_it_runs_and_computes_what_its_items_do(
    tmp_path: Path,
) -> None:
    """Items run side by side: what they computed together is no time that anybody waited."""
    system = Reader(*range(20)).system(tmp_path)
    await system.begin(_pipeline(at_once=20))
    await system.drive()
    ended = json.loads(await system.runs.outcome("s1") or b"{}")
    [phase] = [one for one in ended["phases"] if one["phase"] == "read"]
    assert phase["computed_ms"] == 20 * TOOK_MS
    assert phase["took_ms"] < TOOK_MS
    [told] = [
        one for one in system.events if (one.kind, one.phase) == ("phase_done", "read")
    ]
    assert told.run_ms == phase["took_ms"]


async def test_items_and_their_numbers_are_parameters(tmp_path: Path) -> None:
    reader = Reader({"title": "A"}, {"title": "B"}, {"title": "A"})
    system = reader.system(tmp_path)
    await system.begin(_pipeline(parameters={"paper": "${item.title}"}))
    await system.drive()
    assert await _result(system) == ["about A", "about B", "about A"]
    assert reader.read == {"A": 1, "B": 1}
    numbered = Reader("x", "y")
    system = numbered.system(tmp_path)
    await system.begin(_pipeline(parameters={"paper": "${item}", "number": "${index}"}))
    await system.drive()
    assert await _result(system) == [{"of": "x", "number": 0}, {"of": "y", "number": 1}]


async def test_no_items_give_an_empty_list(tmp_path: Path) -> None:
    system = Reader().system(tmp_path)
    await system.begin(_pipeline())
    await system.drive()
    assert await _result(system) == []


async def test_a_failed_item_fails_the_phase_and_a_resume_runs_it_alone(
    tmp_path: Path,
) -> None:
    reader = Reader(*range(10))
    reader.bad = {4}
    system = reader.system(tmp_path)
    await system.begin(_pipeline(at_once=3))
    await system.drive()
    record = await system.record()
    assert record.phases["read"].error_type == "ItemFailed"
    assert record.phases["read"].error == "item 4 of 10: OSError: 4 is torn"
    assert reader.read["9"] == 0, "nothing more begins"

    reader.bad = set()
    assert (await system.ask("resume")).kind == "accepted"
    await system.drive()
    assert await _result(system) == [f"about {number}" for number in range(10)]
    assert reader.read == {str(number): 2 if number == 4 else 1 for number in range(10)}


@pytest.mark.parametrize(
    ("on_failure", "found"),
    [
        ("skip", ["about 0", "about 2"]),
        (
            "collect",
            [
                {"item": 0, "result": "about 0"},
                {"item": 1, "error": {"type": "OSError", "message": "1 is torn"}},
                {"item": 2, "result": "about 2"},
            ],
        ),
    ],
)
async def test_a_phase_may_skip_or_collect_failed_items(
    tmp_path: Path, on_failure: str, found: Any
) -> None:
    reader = Reader(0, 1, 2)
    reader.bad = {1}
    system = reader.system(tmp_path)
    await system.begin(_pipeline(on_failure=on_failure))
    await system.drive()
    assert await _result(system) == found
    assert next(
        one.text
        for one in system.events
        if (one.kind, one.phase) == ("phase_done", "read")
    ) == ("3 items, 1 failed")


async def test_only_new_items_of_a_changed_list_run(tmp_path: Path) -> None:
    reader = Reader("a", "b")
    system = reader.system(tmp_path)
    await system.begin(_pipeline(), keep=True)
    await system.drive()
    reader.papers = ["b", "c"]
    assert (await system.ask("rerun", phase="plan")).kind == "accepted"
    await system.drive()
    assert await _result(system) == ["about b", "about c"]
    assert reader.read == {"a": 1, "b": 1, "c": 1}
    assert (await system.ask("rerun", phase="read")).kind == "accepted"
    await system.drive()
    assert reader.read == {"a": 1, "b": 2, "c": 2}


async def test_a_cancellation_cancels_running_items(tmp_path: Path) -> None:
    reader = Reader(*range(20))
    reader.gate.clear()
    system = reader.system(tmp_path)
    await system.begin(_pipeline(at_once=4))
    fence = await system.claim()
    drive = Drive(system.parts, "s1", fence)
    driving = asyncio.create_task(drive.run())
    await until(lambda: reader.at_once == 4)
    await system.runs.request_cancel("s1", "enough")
    drive.cancel("enough")
    await driving
    assert sum(reader.read.values()) == 4
    assert set(system.workers.cancelled.values()) == {"enough"}
    assert (await system.statuses())["read"] == "failed"


async def test_many_items_are_reported_in_few_events(tmp_path: Path) -> None:
    system = Reader(*range(400)).system(tmp_path)
    await system.begin(_pipeline(at_once=100))
    await system.drive()
    told = [one.text for one in system.events if one.kind == "phase_progress"]
    assert len(told) <= 21
    assert told[-1] == "400 of 400 items"


@pytest.mark.parametrize(
    ("papers", "words"),
    [
        ("many", "is a text; refer to a list"),
        ([0] * (MOST_ITEMS + 1), "has 10,001 items; keep to 10,000"),
    ],
)
async def test_a_value_that_is_no_list_or_too_long_fails_the_phase(
    tmp_path: Path, papers: Any, words: str
) -> None:
    reader = Reader()
    reader.papers = papers
    system = reader.system(tmp_path)
    await system.begin(_pipeline())
    await system.drive()
    record = await system.record()
    assert words in (record.phases["read"].error or "")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"for_each": "all of them"}, "write one reference to a list"),
        (
            {"for_each": "${plan:results.papers} ${plan:results.papers}"},
            "write one reference to a list",
        ),
        ({"for_each": "${plans:results}"}, "there is no phase 'plans'"),
        ({"writes": ("results", "pages")}, "writes `results` alone"),
        ({"corrects": "plan"}, "corrects none"),
        (
            {"for_each": None, "parameters": {"paper": "${item}"}},
            "the phase has no `for_each`",
        ),
    ],
)
def test_an_invalid_fan_out_is_refused(told: dict[str, Any], words: str) -> None:
    assert words in "; ".join(
        problem.text for problem in problems_of(_pipeline(**told))
    )


def test_a_phase_named_like_the_items_of_another_is_refused() -> None:
    pipeline = a_pipeline(*_pipeline().phases, a_phase("read-items"))
    assert "rename that phase" in "; ".join(
        problem.text for problem in problems_of(pipeline)
    )
