"""A phase that is a pipeline: a run of its own that goes on where it failed, alone or for each item of a list."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from contracts.pipelines import Input, Phase, Pipeline
from supervisor.pipelines.declaration.checks import all_problems, problems_of
from supervisor.pipelines.declaration.files import read_pipeline
from tests.unit.supervisor.pipelines.house import House, a_phase, a_pipeline, at_work, the_end, until

INNER = Pipeline(
    name="review",
    inputs={"paper": Input(type="text"), "depth": Input(type="number", default=1)},
    result="judge:results",
    phases=(
        Phase(name="read", agent="A", task="read", parameters={"paper": "${input.paper}"}),
        Phase(name="judge", agent="A", task="judge", parameters={"of": "${read:results}", "depth": "${input.depth}"}),
    ),
)


class Office:
    """Reads and judges papers; counts both, and cannot judge those in *bad*."""

    def __init__(self) -> None:
        self.read_of: Counter[str] = Counter()
        self.judged: Counter[str] = Counter()
        self.bad: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()

    def read(self, told: dict[str, Any]) -> str:
        """Return what stands in it."""
        self.read_of[told["paper"]] += 1
        return f"text of {told['paper']}"

    async def judge(self, told: dict[str, Any]) -> dict[str, Any]:
        """Say how it is."""
        self.judged[told["of"]] += 1
        await self.gate.wait()
        if told["of"] in self.bad:
            raise OSError("it is torn")
        return {"said": f"{told['of']} is good", "depth": told["depth"]}

    def house(self, folder: Path) -> House:
        """Return a house in which it works."""
        return House(folder, read=self.read, judge=self.judge, plan=lambda told: told, join=lambda told: told)


def _pipeline(**told: Any) -> Pipeline:
    phase = {"pipeline": INNER, "parameters": {"paper": "a"}, **told}
    return a_pipeline(
        a_phase("plan", "plan", parameters={"papers": ["a", "b", "c"]}),
        Phase(name="review", **phase),
        a_phase("join", "join", parameters={"a": "${review:results}"}),
    )


def _each(**told: Any) -> Pipeline:
    return _pipeline(for_each="${plan:results.papers}", parameters={"paper": "${item}", "depth": "${index}"}, **told)


async def _result(house: House) -> Any:
    ended = json.loads(await house.runs.outcome("s1") or b"{}")
    return (ended.get("result") or {}).get("join:results", {}).get("a")


async def _nothing(*_told: Any) -> None:
    """Do nothing."""


async def _the(house: House) -> Any:
    record = await house.runs.read("s1")
    assert record is not None
    return record.phases["review"]


async def drive(house: House) -> None:
    """Have a desk drive the run to its end, and those inside with it."""
    async with at_work(house.desk()):
        await the_end(house)


async def test_its_result_is_that_of_the_phase(tmp_path: Path) -> None:
    """Inputs are the parameters, defaults included; its session is gone as that of any completed run."""
    office = Office()
    house = office.house(tmp_path)
    await house.begin(_pipeline())
    await drive(house)
    assert await _result(house) == {"said": "text of a is good", "depth": 1}
    assert house.kinds("phase_done")[:3] == [("phase_done", "plan"), ("phase_done", "read"), ("phase_done", "judge")]


@pytest.mark.parametrize("is_list", [False, True])
async def test_a_resume_goes_on_where_the_inner_run_failed(tmp_path: Path, is_list: bool) -> None:
    """What was read is not read again; other items stay as they are."""
    office = Office()
    office.bad = {"text of a"}
    house = office.house(tmp_path)
    await house.begin(_each(at_once=1, on_failure="fail") if is_list else _pipeline())
    await drive(house)
    failed = await _the(house)
    assert failed.status == "failed"
    assert "it is torn" in failed.error
    office.bad = set()
    assert (await house.ask("resume")).kind == "accepted"
    await drive(house)
    said = [f"text of {one} is good" for one in ("abc" if is_list else "a")]
    found = await _result(house)
    assert [one["said"] for one in (found if is_list else [found])] == said
    assert set(office.read_of.values()) == {1}
    assert office.judged["text of a"] == 2


async def test_drivers_that_die_leave_nothing_to_be_computed_twice(tmp_path: Path) -> None:
    """The next one takes the inner run over, too."""
    office = Office()
    house = office.house(tmp_path)
    office.gate.clear()
    await house.begin(_each(at_once=2))
    for number in range(2):
        working = asyncio.create_task(house.desk(f"h{number}").run())
        await until(lambda: sum(office.judged.values()) == 2)
        house.runs.give_back, give_back = _nothing, house.runs.give_back  # type: ignore[method-assign,assignment]
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        house.runs.give_back = give_back  # type: ignore[method-assign]
        for kept in house.runs._runs.values():
            kept.leased_until_ms = 0
    office.gate.set()
    await drive(house)
    assert [one["said"] for one in await _result(house)] == [f"text of {one} is good" for one in "abc"]
    assert set(office.read_of.values()) == {1}
    assert set(office.judged.values()) == {1}


async def test_a_wish_cancels_the_inner_run(tmp_path: Path) -> None:
    """And nothing more begins."""
    office = Office()
    house = office.house(tmp_path)
    office.gate.clear()
    await house.begin(_pipeline())
    async with at_work(house.desk(lease_s=3600)) as desk:
        await until(lambda: sum(office.judged.values()) == 1)
        desk.cancel("s1", "enough")
        await house.runs.request_cancel("s1", "enough")
        [inner] = [name for name in house.runs._runs if name != "s1"]
        assert [(await the_end(house, name))["state"] for name in ("s1", inner)] == ["cancelled", "cancelled"]


async def test_inner_runs_take_no_room_and_no_share_of_their_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else runs that wait for others would keep these from beginning; the one loop renews their leases, too."""
    monkeypatch.setattr("supervisor.pipelines.desk.RUNS_AT_ONCE", 1)
    monkeypatch.setattr("supervisor.pipelines.desk.RUNS_OF_ONE", 1)
    office = Office()
    office.gate.clear()
    house = office.house(tmp_path)
    await house.begin(_each(), user_id="ann")
    async with at_work(house.desk()) as desk:
        await until(lambda: sum(office.judged.values()) == 3)
        assert (len(desk.driven), desk.busy) == (4, 1)
        office.gate.set()
        assert (await the_end(house))["state"] == "completed"


@pytest.mark.parametrize("is_list", [False, True])
async def test_a_late_pipeline_holds_nothing_up_and_counts_whole(tmp_path: Path, is_list: bool) -> None:
    """With `late_after`, phases after it begin without it; each item comes once, and the run tells of both."""
    office = Office()
    office.gate.clear()
    house = office.house(tmp_path)
    late = (_each if is_list else _pipeline)(late_after=0.05)
    phases = (*late.phases[:2], a_phase("join", "join", parameters={"a": "${review:results?}"}))
    await house.begin(late.model_copy(update={"phases": phases, "result": "review:results"}), keep=True)
    async with at_work(house.desk()):
        await until(lambda: ("phase_done", "join") in house.kinds())
        record = await house.runs.read("s1")
        assert record is not None
        assert (record.phases["review"].status, record.lateness("review")) == ("running", "late: join began without it")
        office.gate.set()
        ended = await the_end(house)
    said = [{"said": f"text of {one} is good", "depth": n} for n, one in enumerate("abc")]
    assert ended["result"] == (said if is_list else {"said": "text of a is good", "depth": 1})
    assert [one["late"] for one in ended["phases"]] == ["", "late: join began without it", ""]
    [join] = await house.sessions.peek("s1", ["join:results"])
    assert join is not None
    assert join.value == {"a": None}
    assert set(office.judged.values()) == {1}


async def test_a_secret_stays_one_inside(tmp_path: Path) -> None:
    """The evidence of the inner run hides it as that of the outer one does."""
    office = Office()
    office.bad = {"text of hunter2-hunter2"}
    house = office.house(tmp_path)
    outer = _pipeline(parameters={"paper": "${input.key}"})
    await house.begin(
        outer.model_copy(update={"inputs": {"key": Input(type="text", secret=True)}}), inputs={"key": "hunter2-hunter2"}
    )
    await drive(house)
    files = list(house.evidence.iterdir())
    assert len(files) == 2
    assert not [one.name for one in files if "hunter2" in one.read_text()]


async def test_one_that_is_late_is_cancelled(tmp_path: Path) -> None:
    """And the phase says so."""
    office = Office()
    house = office.house(tmp_path)
    office.gate.clear()
    await house.begin(_pipeline(timeout=0.3))
    await drive(house)
    assert (await _the(house)).error_type == "TaskExpired"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"parameters": {}}, "parameters.paper is missing"),
        ({"parameters": {"paper": "a", "deep": 1}}, "parameters.deep is no parameter of 'review'"),
        ({"parameters": {"paper": ["a"]}}, "parameters.paper must be a text"),
    ],
)
def test_parameters_have_to_be_its_inputs(told: dict[str, Any], words: str) -> None:
    """As they have to be those of a task."""
    assert words in "; ".join(problem.text for problem in all_problems(_pipeline(**told), {}))


def test_what_is_wrong_inside_is_told(tmp_path: Path) -> None:
    """With the names of both; what lies too deep, before all."""
    torn = INNER.model_copy(update={"result": "nothing:results"})
    assert "pipeline 'review': result is 'nothing:results'" in problems_of(_pipeline(pipeline=torn))[0].text
    deep = INNER
    for _ in range(4):
        deep = Pipeline(name="deeper", phases=(Phase(name="a", pipeline=deep, parameters={"paper": "a"}),))
    assert "more than 4 pipelines inside each other" in problems_of(deep)[0].text


def test_a_file_names_the_file_of_the_other_beside_it(tmp_path: Path) -> None:
    """And none names itself for ever."""
    (tmp_path / "inner.toml").write_text(
        'name = "inner"\n[inputs.paper]\ntype = "text"\n[[phase]]\nname = "a"\nagent = "A"\ntask = "read"\n'
    )
    outer = tmp_path / "outer.toml"
    outer.write_text('name = "o"\n[[phase]]\nname = "x"\npipeline = "inner.toml"\nparameters = { paper = "a" }\n')
    [phase] = read_pipeline(outer).pipeline.phases
    assert (phase.pipeline is not None and phase.pipeline.name, phase.agent, phase.agents) == (
        "inner",
        "Pipeline",
        ("A",),
    )
    outer.write_text('name = "o"\n[[phase]]\nname = "x"\npipeline = "outer.toml"\n')
    with pytest.raises(Exception, match="more than 4 files name each other"):
        read_pipeline(outer)
