"""Declared pipelines that are asked for as tasks and in words, while those who wait for them die."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from tasklore.runtime.servers import valkey
from tests.acceptance.external_program import Json, Outside, outside
from tests.acceptance.system import AGENTS, Served, System, running_system

COUNTED = str(AGENTS / "counted.py")
SQUARING = """
name = "squaring"
description = "Squares a number and tells what came out."
examples = ["square the number 7", "what is the square of 12"]
result = "square:results"

[inputs.number]
type = "number"
description = "the number"

[inputs.label]
type = "text"
default = "said"

[inputs.ms]
type = "number"
default = 1

[[phase]]
name = "square"
agent = "CountedAgent"
task = "square"
parameters = { label = "${input.label}", number = "${input.number}", ms = "${input.ms}" }
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run servers and a worker; a test starts the supervisors."""
    folder = tmp_path_factory.mktemp("pipeline-tasks")
    declared = folder / "declared"
    declared.mkdir()
    (declared / "squaring.toml").write_text(SQUARING)
    with running_system(folder) as system:
        system.worker(COUNTED, ack_wait_s=2, llm_base_url="", llm_api_key="").ready()
        yield system


def a_supervisor(system: System, **settings: str) -> Served:
    """Start a supervisor that knows the declared pipelines."""
    return system.supervisor(
        pipelines_dir=system.folder / "declared", ack_wait_s=2, **settings
    ).ready()


@pytest.fixture
def supervisor(system: System) -> Iterator[Served]:
    """Run one supervisor for a test."""
    with a_supervisor(system) as served:
        yield served


def said(system: System, *words: str) -> Json:
    """Run the command, and return what it prints as JSON."""
    ended = system.command(*words, "--json")
    assert ended.stdout, ended.stderr
    return dict(json.loads(ended.stdout))


async def until(look: Callable[[], list[str]], wanted: list[str]) -> bool:
    """Return whether *look* returns what is *wanted*, within a minute."""
    for _ in range(200):
        if await asyncio.to_thread(look) == wanted:
            return True
        await asyncio.sleep(0.1)
    return False


async def emptied(program: Outside) -> None:
    """Return once no task of a pipeline waits or runs."""

    async def is_empty() -> bool:
        return await program.counts("TASKS", "tasks.Pipeline.>") == {}

    await program.eventually(is_empty)


def running(system: System, api: str) -> list[str]:
    """Return the pipelines whose runs have not ended."""
    return [
        run["project"]
        for run in said(system, "pipelines", "list", "--api", api)["runs"]
        if run["state"] == "running"
    ]


def lines(system: System, label: str) -> list[str]:
    """Return the numbers that were squared under *label*, one for each time."""
    path = system.folder / "runs" / label
    return path.read_text().split() if path.exists() else []


@pytest.mark.usefixtures("supervisor")
def test_a_sentence_starts_a_pipeline(system: System) -> None:
    reply = said(system, "ask", "square the number 7")["reply"]
    assert (reply["kind"], reply["agent_id"], reply["task"]["name"]) == (
        "answer",
        "Pipeline",
        "squaring",
    )
    assert (reply["task"]["parameters"]["number"], reply["report"]["result"]) == (7, 49)
    assert lines(system, "said") == ["7"]


@pytest.mark.usefixtures("supervisor")
async def test_rubbish_costs_nobody_else_an_answer(system: System) -> None:
    """What is no task is set aside with its reason; a task of odd values is reported."""
    async with outside(system.servers.nats_url) as program:
        whole = program.assignment("Pipeline", "squaring", {"number": 4})
        nested = {
            "name": "squaring",
            "parameters": {"number": json.loads("[" * 90 + "]" * 90)},
        }
        odd: list[bytes] = [b"", b"{}", b"[" * 50_000]
        odd += [
            json.dumps({**whole, **told}).encode()
            for told in ({"task_id": "a.b"}, {"agent_id": "CountedAgent"})
        ]
        for body in [*odd, json.dumps({**whole, "task": nested}).encode()]:
            await program.publish(
                "tasks.Pipeline.squaring", body, {"Tasklore-Generation": "9" * 400}
            )
        assert (await program.report_of(whole["task_id"]))["status"] == "rejected"
        late = {"number": 4, "label": "late", "ms": 60_000}
        report = await program.ask(
            "Pipeline",
            "squaring",
            late,
            deadline=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}",
        )
        assert report["status"] == "expired"
        assert (
            await program.ask("Pipeline", "squaring", {"number": 4, "label": "rubbish"})
        )["result"] == 16
        await emptied(program)
        assert await program.counts("DEAD", "dead.tasks.Pipeline.>") == {
            "dead.tasks.Pipeline.squaring": len(odd)
        }
    assert lines(system, "late") == []


@pytest.mark.usefixtures("supervisor")
async def test_a_task_that_ended_is_answered_from_the_ledger(system: System) -> None:
    inputs = {"number": 6, "label": "ended"}
    async with outside(system.servers.nats_url) as program:
        first = await program.ask("Pipeline", "squaring", inputs)
        async with valkey.connect(system.servers.redis_url) as redis:
            for key in [key async for key in redis.scan_iter("tl:run:*")]:
                await redis.delete(key)
        # Under another message id: the stream takes it once more.
        again = json.dumps(
            program.assignment("Pipeline", "squaring", inputs, task_id=first["task_id"])
        ).encode()
        await program.publish(
            "tasks.Pipeline.squaring", again, {"Nats-Msg-Id": "again"}
        )
        await emptied(program)
        assert await program.report_of(first["task_id"]) == first
    assert lines(system, "ended") == ["6"]


@pytest.mark.usefixtures("supervisor")
async def test_who_chooses_the_id_of_another_task_learns_nothing(
    system: System,
) -> None:
    """The same task again is the same run; the report of it goes to its first sender alone."""
    inputs = {"number": 3, "label": "again"}
    async with (
        outside(system.servers.nats_url) as ana,
        outside(system.servers.nats_url) as bob,
    ):
        task = await ana.assign("Pipeline", "squaring", inputs, user_id="ana")
        first = await ana.report_of(task)
        await ana.assign("Pipeline", "squaring", inputs, user_id="ana", task_id=task)
        await bob.assign(
            "Pipeline",
            "squaring",
            {"number": 5, "label": "again"},
            user_id="bob",
            task_id=task,
        )
        await emptied(ana)
        assert await ana.report_of(task) == first
        assert bob.heard == []
        assert await bob.reports() == {}
    assert lines(system, "again") == ["3"]


async def test_a_cancelled_task_ends_its_run(
    system: System, supervisor: Served
) -> None:
    api = supervisor.api
    async with outside(system.servers.nats_url) as program:
        inputs = {"number": 3, "label": "cancelled", "ms": 60_000}
        task = await program.assign("Pipeline", "squaring", inputs)
        assert await until(lambda: running(system, api), ["squaring"])
        assert (
            await asyncio.to_thread(said, system, "cancel", task, "--reason", "no more")
        )["outcome"] == "cancelled"
        report = await program.report_of(task)
        assert await until(lambda: running(system, api), [])
    assert (report["status"], report["error"]["message"]) == ("cancelled", "no more")
    assert lines(system, "cancelled") == []


async def test_whoever_waits_for_a_run_may_die_or_leave(system: System) -> None:
    """Four supervisors, two killed and one sent away: each task has one report, and each number was squared once."""
    supervisor = await asyncio.to_thread(a_supervisor, system)
    async with outside(system.servers.nats_url) as program:
        tasks = [
            await program.assign(
                "Pipeline", "squaring", {"number": number, "label": "died", "ms": 3_000}
            )
            for number in range(20)
        ]
        for way in ("kill", "terminate", "kill"):
            await asyncio.sleep(1.0)
            getattr(supervisor, way)()
            await asyncio.to_thread(supervisor.wait)
            supervisor = await asyncio.to_thread(a_supervisor, system)
        reports = [await program.report_of(task) for task in tasks]
        assert set((await program.reports()).values()) == {1}
    await asyncio.to_thread(supervisor.kill)
    assert [one["result"] for one in reports] == [number**2 for number in range(20)]
    assert sorted(map(int, lines(system, "died"))) == list(range(20))
