"""A phase with `for_each`: a task for each item, results in order, and nothing that is right is computed again."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from contracts.pipelines import MOST_ITEMS, Phase, Pipeline
from supervisor.pipelines.declaration.checks import problems_of
from supervisor.pipelines.driver import Drive
from tests.unit.supervisor.pipelines.house import House, a_phase, a_pipeline, until


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
        """Return the papers."""
        return {"papers": self.papers}

    async def summarise(self, told: dict[str, Any]) -> Any:
        """Read one."""
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.read[str(told["paper"])] += 1
        await self.gate.wait()
        await asyncio.sleep(0)
        self.at_once -= 1
        if told["paper"] in self.bad:
            raise OSError(f"{told['paper']} is torn")
        return {"of": told["paper"], "number": told["number"]} if "number" in told else f"about {told['paper']}"

    def house(self, folder: Path) -> House:
        """Return a house in which it works."""
        return House(folder, plan=self.plan, summarise=self.summarise, join=lambda told: told)


def _pipeline(**told: Any) -> Pipeline:
    fan = {"for_each": "${plan:results.papers}", "parameters": {"paper": "${item}"}, **told}
    return a_pipeline(
        a_phase("plan", "plan", writes=("results",)),
        Phase(name="read", agent="A", task="summarise", **fan),
        a_phase("join", "join", parameters={"a": "${read:results}"}),
    )


async def _result(house: House) -> Any:
    ended = json.loads(await house.runs.outcome("s1") or b"{}")
    return ended.get("result", {}).get("join:results", {}).get("a")


async def test_results_come_in_the_order_of_the_items(tmp_path: Path) -> None:
    """Some at once, more than are read together, and what reads the phase is given the list."""
    reader = Reader(*range(150))
    house = reader.house(tmp_path)
    await house.begin(_pipeline(at_once=7))
    await house.drive()
    assert await _result(house) == [f"about {number}" for number in range(150)]
    assert reader.most_at_once == 7
    assert set(reader.read.values()) == {1}
    assert house.kinds("phase_done") == [("phase_done", "plan"), ("phase_done", "read"), ("phase_done", "join")]
    assert next(one.text for one in house.told if (one.kind, one.phase) == ("phase_done", "read")) == "150 items"


async def test_items_and_numbers_stand_in_parameters(tmp_path: Path) -> None:
    """A place inside of an item, too; the same parameters are one task."""
    reader = Reader({"title": "A"}, {"title": "B"}, {"title": "A"})
    house = reader.house(tmp_path)
    await house.begin(_pipeline(parameters={"paper": "${item.title}"}))
    await house.drive()
    assert await _result(house) == ["about A", "about B", "about A"]
    assert reader.read == {"A": 1, "B": 1}

    numbered = Reader("x", "y")
    house = numbered.house(tmp_path)
    await house.begin(_pipeline(parameters={"paper": "${item}", "number": "${index}"}))
    await house.drive()
    assert await _result(house) == [{"of": "x", "number": 0}, {"of": "y", "number": 1}]


async def test_no_items_are_an_empty_list(tmp_path: Path) -> None:
    """And no task."""
    house = Reader().house(tmp_path)
    await house.begin(_pipeline())
    await house.drive()
    assert await _result(house) == []


async def test_an_item_that_fails_ends_the_phase_and_a_resume_runs_it_alone(tmp_path: Path) -> None:
    """What others returned is kept."""
    reader = Reader(*range(10))
    reader.bad = {4}
    house = reader.house(tmp_path)
    await house.begin(_pipeline(at_once=3))
    await house.drive()
    record = await house.runs.read("s1")
    assert record is not None
    assert record.phases["read"].error_type == "ItemFailed"
    assert record.phases["read"].error == "item 4 of 10: OSError: 4 is torn"
    assert reader.read["9"] == 0, "nothing more begins"

    reader.bad = set()
    assert (await house.ask("resume")).kind == "accepted"
    await house.drive()
    assert await _result(house) == [f"about {number}" for number in range(10)]
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
async def test_the_others_stand_where_the_phase_says_so(tmp_path: Path, on_failure: str, found: Any) -> None:
    """Left out, or told with its error."""
    reader = Reader(0, 1, 2)
    reader.bad = {1}
    house = reader.house(tmp_path)
    await house.begin(_pipeline(on_failure=on_failure))
    await house.drive()
    assert await _result(house) == found
    assert next(one.text for one in house.told if (one.kind, one.phase) == ("phase_done", "read")) == (
        "3 items, 1 failed"
    )


async def test_of_a_changed_list_only_what_is_new_runs(tmp_path: Path) -> None:
    """A phase before it that runs again does not throw away what its items returned; asked to run again, all do."""
    reader = Reader("a", "b")
    house = reader.house(tmp_path)
    await house.begin(_pipeline(), keep=True)
    await house.drive()
    reader.papers = ["b", "c"]
    assert (await house.ask("rerun", phase="plan")).kind == "accepted"
    await house.drive()
    assert await _result(house) == ["about b", "about c"]
    assert reader.read == {"a": 1, "b": 1, "c": 1}

    assert (await house.ask("rerun", phase="read")).kind == "accepted"
    await house.drive()
    assert reader.read == {"a": 1, "b": 2, "c": 2}


async def test_a_driver_that_dies_leaves_nothing_to_do_twice(tmp_path: Path) -> None:
    """Ten die in turn, each in the middle; every item is computed once."""
    reader = Reader(*range(60))
    house = reader.house(tmp_path)
    await house.begin(_pipeline(at_once=5))
    for death in range(10):
        fence = await house.claim(holder=f"h{death}") if not death else await house.steal()
        driving = asyncio.create_task(Drive(house.parts, "s1", fence).run())
        least = min(60, 5 * (death + 1))
        await until(lambda: sum(reader.read.values()) >= least)  # noqa: B023 - it is awaited here
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
    await Drive(house.parts, "s1", await house.steal()).run()
    assert await _result(house) == [f"about {number}" for number in range(60)]
    assert set(reader.read.values()) == {1}


async def test_a_wish_cancels_what_is_under_way(tmp_path: Path) -> None:
    """And nothing more begins."""
    reader = Reader(*range(20))
    reader.gate.clear()
    house = reader.house(tmp_path)
    await house.begin(_pipeline(at_once=4))
    fence = await house.claim()
    drive = Drive(house.parts, "s1", fence)
    driving = asyncio.create_task(drive.run())
    await until(lambda: reader.at_once == 4)
    await house.runs.request_cancel("s1", "enough")
    drive.cancel("enough")
    await driving
    assert sum(reader.read.values()) == 4
    assert set(house.office.cancelled.values()) == {"enough"}
    assert (await house.statuses())["read"] == "failed"


async def test_thousands_of_items_are_told_in_few_events(tmp_path: Path) -> None:
    """Counts, not lines."""
    house = Reader(*range(2_000)).house(tmp_path)
    await house.begin(_pipeline(at_once=100))
    await house.drive()
    told = [one.text for one in house.told if one.kind == "phase_progress"]
    assert len(told) <= 21
    assert told[-1] == "2,000 of 2,000 items"


@pytest.mark.parametrize(
    ("papers", "words"),
    [("many", "is a text; refer to a list"), ([0] * (MOST_ITEMS + 1), "has 10,001 items; keep to 10,000")],
)
async def test_what_is_no_list_or_too_long_fails_the_phase(tmp_path: Path, papers: Any, words: str) -> None:
    """With the cure."""
    reader = Reader()
    reader.papers = papers
    house = reader.house(tmp_path)
    await house.begin(_pipeline())
    await house.drive()
    record = await house.runs.read("s1")
    assert record is not None
    assert words in (record.phases["read"].error or "")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"for_each": "all of them"}, "write one reference to a list"),
        ({"for_each": "${plan:results.papers} ${plan:results.papers}"}, "write one reference to a list"),
        ({"for_each": "${item}"}, "write one reference to a list"),
        ({"for_each": "${plans:results}"}, "there is no phase 'plans'"),
        ({"writes": ("results", "pages")}, "writes `results` alone"),
        ({"corrects": "plan"}, "corrects none"),
        ({"for_each": None, "parameters": {"paper": "${item}"}}, "the phase has no `for_each`"),
        ({"for_each": None, "parameters": {"paper": "${index}"}}, "the phase has no `for_each`"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(told: dict[str, Any], words: str) -> None:
    """With the field."""
    assert words in "; ".join(problem.text for problem in problems_of(_pipeline(**told)))


def test_a_phase_may_not_be_called_as_the_items_of_another() -> None:
    """They would lie in one place."""
    pipeline = a_pipeline(*_pipeline().phases, a_phase("read-items"))
    assert "rename that phase" in "; ".join(problem.text for problem in problems_of(pipeline))
