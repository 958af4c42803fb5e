"""A phase that is a pipeline: a run of its own that is resumed where it failed, alone or for each item."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tasklore.supervisor.pipelines.declaration.checks import all_problems, problems_of
from tasklore.supervisor.pipelines.declaration.files import read_pipeline
from tests.unit.supervisor.pipelines.fake_system import (
    FakeSystem,
    a_phase,
    a_pipeline,
    at_work,
    the_end,
    until,
)

INNER = Pipeline(
    name="review",
    inputs={"paper": Input(type="text"), "depth": Input(type="number", default=1)},
    result="judge:results",
    phases=(
        Phase(
            name="read", agent="A", task="read", parameters={"paper": "${input.paper}"}
        ),
        Phase(
            name="judge",
            agent="A",
            task="judge",
            parameters={"of": "${read:results}", "depth": "${input.depth}"},
        ),
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
        self.read_of[told["paper"]] += 1
        return f"text of {told['paper']}"

    async def judge(self, told: dict[str, Any]) -> dict[str, Any]:
        self.judged[told["of"]] += 1
        await self.gate.wait()
        if told["of"] in self.bad:
            raise OSError("it is torn")
        return {"said": f"{told['of']} is good", "depth": told["depth"]}

    def system(self, folder: Path) -> FakeSystem:
        return FakeSystem(
            folder,
            read=self.read,
            judge=self.judge,
            plan=lambda told: told,
            join=lambda told: told,
        )


def _pipeline(**told: Any) -> Pipeline:
    phase = {"pipeline": INNER, "parameters": {"paper": "a"}, **told}
    return a_pipeline(
        a_phase("plan", "plan", parameters={"papers": ["a", "b", "c"]}),
        Phase(name="review", **phase),
        a_phase("join", "join", parameters={"a": "${review:results}"}),
    )


def _each(**told: Any) -> Pipeline:
    return _pipeline(
        for_each="${plan:results.papers}",
        parameters={"paper": "${item}", "depth": "${index}"},
        **told,
    )


async def _result(system: FakeSystem) -> Any:
    ended = json.loads(await system.runs.outcome("s1") or b"{}")
    return (ended.get("result") or {}).get("join:results", {}).get("a")


async def _the(system: FakeSystem) -> Any:
    record = await system.record()
    return record.phases["review"]


async def drive(system: FakeSystem) -> None:
    """Have a desk drive the run to its end, and those inside with it."""
    async with at_work(system.driver()):
        await the_end(system)


async def test_the_inner_result_is_the_phases_result(tmp_path: Path) -> None:
    office = Office()
    system = office.system(tmp_path)
    await system.begin(_pipeline())
    await drive(system)
    assert await _result(system) == {"said": "text of a is good", "depth": 1}
    assert system.kinds("phase_done")[:3] == [
        ("phase_done", "plan"),
        ("phase_done", "read"),
        ("phase_done", "judge"),
    ]


@pytest.mark.parametrize("is_list", [False, True])
async def test_a_resume_goes_on_where_the_inner_run_failed(
    tmp_path: Path, is_list: bool
) -> None:
    office = Office()
    office.bad = {"text of a"}
    system = office.system(tmp_path)
    await system.begin(_each(at_once=1, on_failure="fail") if is_list else _pipeline())
    await drive(system)
    failed = await _the(system)
    assert failed.status == "failed"
    assert "it is torn" in failed.error
    office.bad = set()
    assert (await system.ask("resume")).kind == "accepted"
    await drive(system)
    said = [f"text of {one} is good" for one in ("abc" if is_list else "a")]
    found = await _result(system)
    assert [one["said"] for one in (found if is_list else [found])] == said
    assert set(office.read_of.values()) == {1}
    assert office.judged["text of a"] == 2


async def test_a_cancellation_cancels_the_inner_run(tmp_path: Path) -> None:
    office = Office()
    system = office.system(tmp_path)
    office.gate.clear()
    await system.begin(_pipeline())
    async with at_work(system.driver(lease_s=3600)) as driver:
        await until(lambda: sum(office.judged.values()) == 1)
        driver.cancel("s1", "enough")
        await system.runs.request_cancel("s1", "enough")
        [inner] = [name for name in system.runs._runs if name != "s1"]
        assert [(await the_end(system, name))["state"] for name in ("s1", inner)] == [
            "cancelled",
            "cancelled",
        ]


async def test_inner_runs_do_not_count_against_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasklore.supervisor.pipelines.driver.RUNS_AT_ONCE", 1)
    monkeypatch.setattr("tasklore.supervisor.pipelines.driver.RUNS_OF_ONE", 1)
    office = Office()
    office.gate.clear()
    system = office.system(tmp_path)
    await system.begin(_each(), user_id="ann")
    async with at_work(system.driver()) as driver:
        await until(lambda: sum(office.judged.values()) == 3)
        assert (len(driver.driven), driver.busy) == (4, 1)
        office.gate.set()
        assert (await the_end(system))["state"] == "completed"


@pytest.mark.parametrize("is_list", [False, True])
async def test_phases_go_on_without_a_late_inner_run(
    tmp_path: Path, is_list: bool
) -> None:
    office = Office()
    office.gate.clear()
    system = office.system(tmp_path)
    late = (_each if is_list else _pipeline)(late_after=0.05)
    phases = (
        *late.phases[:2],
        a_phase("join", "join", parameters={"a": "${review:results?}"}),
    )
    await system.begin(
        late.model_copy(update={"phases": phases, "result": "review:results"}),
        keep=True,
    )
    async with at_work(system.driver()):
        await until(lambda: ("phase_done", "join") in system.kinds())
        record = await system.record()
        assert (record.phases["review"].status, record.lateness("review")) == (
            "running",
            "late: join began without it",
        )
        office.gate.set()
        ended = await the_end(system)
    said = [
        {"said": f"text of {one} is good", "depth": n} for n, one in enumerate("abc")
    ]
    assert ended["result"] == (
        said if is_list else {"said": "text of a is good", "depth": 1}
    )
    assert [one["late"] for one in ended["phases"]] == [
        "",
        "late: join began without it",
        "",
    ]
    [join] = await system.sessions.peek("s1", ["join:results"])
    assert join is not None
    assert join.value == {"a": None}
    assert set(office.judged.values()) == {1}


async def test_evidence_of_the_inner_run_masks_secrets(tmp_path: Path) -> None:
    office = Office()
    office.bad = {"text of hunter2-hunter2"}
    system = office.system(tmp_path)
    outer = _pipeline(parameters={"paper": "${input.key}"})
    await system.begin(
        outer.model_copy(update={"inputs": {"key": Input(type="text", secret=True)}}),
        inputs={"key": "hunter2-hunter2"},
    )
    await drive(system)
    files = list(system.evidence.iterdir())
    assert len(files) == 2
    assert not [one.name for one in files if "hunter2" in one.read_text()]


async def test_an_inner_run_past_its_timeout_is_cancelled(tmp_path: Path) -> None:
    office = Office()
    system = office.system(tmp_path)
    office.gate.clear()
    await system.begin(_pipeline(timeout=0.3))
    await drive(system)
    assert (await _the(system)).error_type == "TaskExpired"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"parameters": {}}, "parameters.paper is missing"),
        (
            {"parameters": {"paper": "a", "deep": 1}},
            "parameters.deep is not a parameter of 'review'",
        ),
        ({"parameters": {"paper": ["a"]}}, "parameters.paper must be a text"),
    ],
)
def test_parameters_must_be_inputs_of_the_inner_pipeline(
    told: dict[str, Any], words: str
) -> None:
    assert words in "; ".join(
        problem.text for problem in all_problems(_pipeline(**told), {})
    )


def test_problems_inside_are_reported_with_both_names(tmp_path: Path) -> None:
    torn = INNER.model_copy(update={"result": "nothing:results"})
    assert (
        "pipeline 'review': result is 'nothing:results'"
        in problems_of(_pipeline(pipeline=torn))[0].text
    )
    deep = INNER
    for _ in range(4):
        deep = Pipeline(
            name="deeper",
            phases=(Phase(name="a", pipeline=deep, parameters={"paper": "a"}),),
        )
    assert "more than 4 pipelines inside each other" in problems_of(deep)[0].text


def test_a_file_may_name_another_and_not_itself(tmp_path: Path) -> None:
    (tmp_path / "inner.toml").write_text(
        'name = "inner"\n[inputs.paper]\ntype = "text"\n[[phase]]\nname = "a"\nagent = "A"\ntask = "read"\n'
    )
    outer = tmp_path / "outer.toml"
    outer.write_text(
        'name = "o"\n[[phase]]\nname = "x"\npipeline = "inner.toml"\nparameters = { paper = "a" }\n'
    )
    [phase] = read_pipeline(outer).pipeline.phases
    assert (
        phase.pipeline is not None and phase.pipeline.name,
        phase.agent,
        phase.agents,
    ) == (
        "inner",
        "Pipeline",
        ("A",),
    )
    outer.write_text('name = "o"\n[[phase]]\nname = "x"\npipeline = "outer.toml"\n')
    with pytest.raises(Exception, match="more than 4 files name each other"):
        read_pipeline(outer)
