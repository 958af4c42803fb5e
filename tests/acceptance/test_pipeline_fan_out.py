"""A list of items through real processes that are killed in the middle: nothing is lost, and nothing comes twice."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tests.acceptance.pipelines import PATIENCE_S, asker_in
from tests.acceptance.system import AGENTS, Served, System

COUNTED = str(AGENTS / "counted.py")
#: Items under way when somebody is killed: each of them may be computed again, and no other.
AT_ONCE = 16


def squares(count: int, ms: int, *, inside: bool = False) -> Pipeline:
    """Return a pipeline that squares so many numbers, each in so many milliseconds, or each by a pipeline *inside*."""
    what: dict[str, Any] = {"agent": "CountedAgent", "task": "square"}
    if inside:
        names = ("label", "number", "ms")
        one = Phase(
            name="one",
            **what,
            parameters={name: f"${{input.{name}}}" for name in names},
        )
        what = {
            "pipeline": Pipeline(
                name="one",
                inputs=dict.fromkeys(names, Input()),
                result="one:results",
                phases=(one,),
            )
        }
    return Pipeline(
        name="squares",
        inputs={"label": Input(type="text")},
        result="square:results",
        phases=(
            Phase(
                name="numbers",
                agent="CountedAgent",
                task="count",
                parameters={"count": count},
            ),
            Phase(
                name="square",
                **what,
                for_each="${numbers:results.numbers}",
                at_once=AT_ONCE,
                parameters={"label": "${input.label}", "number": "${item}", "ms": ms},
            ),
        ),
    )


def _worker(system: System) -> Served:
    return system.worker(COUNTED, ack_wait_s=2, llm_base_url="", llm_api_key="").ready()


def _supervisor(system: System) -> Served:
    return system.supervisor(
        evidence_dir=system.folder / "evidence", ack_wait_s=2
    ).ready()


@pytest.mark.parametrize(
    ("count", "kills"), [(120, 4), pytest.param(400, 10, marks=pytest.mark.long)]
)
async def test_kills_lose_nothing_and_double_nothing(
    own_system: System, count: int, kills: int
) -> None:
    """Workers and supervisors in turn; only what was under way is computed again, and each result counts once."""
    await _killed(own_system, count=count, kills=kills)


@pytest.mark.parametrize(
    ("count", "kills"), [(48, 2), pytest.param(120, 6, marks=pytest.mark.long)]
)
async def test_nor_do_kills_over_pipelines_inside_of_a_pipeline(
    own_system: System, count: int, kills: int
) -> None:
    await _killed(own_system, count=count, kills=kills, inside=True)


async def _killed(
    system: System, *, count: int, kills: int, inside: bool = False
) -> None:
    worker = await asyncio.to_thread(_worker, system)
    supervisor = await asyncio.to_thread(_supervisor, system)
    path = system.folder / "runs" / "storm"
    async with asker_in(system) as asker:
        declared = squares(count, 20, inside=inside).model_dump(mode="json")
        reply = await asker.ask(
            "run", "storm", pipeline=declared, inputs={"label": "storm"}, keep=True
        )
        assert reply.kind == "accepted", reply
        for kill in range(kills):
            await _until_lines(path, (kill + 1) * count // (kills + 2))
            if kill % 2:
                await asyncio.to_thread(supervisor.kill)
                supervisor = await asyncio.to_thread(_supervisor, system)
            else:
                await asyncio.to_thread(worker.kill)
                worker = await asyncio.to_thread(_worker, system)
        outcome = await asker.outcome("storm")
    assert outcome["state"] == "completed", outcome
    assert outcome["result"] == [number**2 for number in range(count)]
    lines = path.read_text().split()
    assert set(map(int, lines)) == set(range(count))
    # A worker that is killed between its line and its report did it all the same.
    assert len(lines) - count <= AT_ONCE * kills // 2


async def _until_lines(path: Path, least: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not path.exists() or len(path.read_text().split()) < least:  # noqa: ASYNC110, ASYNC240 - other processes
            await asyncio.sleep(0.02)
