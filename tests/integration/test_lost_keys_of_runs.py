"""Runs of pipelines when the key they were made with is removed: none begins a phase until the key is back."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.callers import Caller
from tasklore.contracts.messages import PipelineReply, PipelineRequest
from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.memory.sessions.pipeline_records import RunRecord
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.makers import Makers
from tasklore.supervisor.pipelines.driver import PipelineDriver
from tests.integration.kept_keys import KeyFile
from tests.integration.test_pipeline_driver import PATIENCE_S, Scene, a_scene

SHOP = Caller(name="shop", roles=frozenset({"ask"}), tenant="acme")
TILL = Caller(name="till", roles=frozenset({"ask"}), tenant="acme")
OLGA = Caller(name="olga", roles=frozenset({"admin"}))
PIPELINE = Pipeline(
    name="two",
    project="p",
    phases=(
        Phase(name="first", agent="A", task="first"),
        Phase(name="second", agent="A", task="second", after=("first",)),
    ),
)


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    file = KeyFile(tmp_path / "keys.json")
    file.make("shop", "ask", tenant="acme")
    file.make("till", "ask", tenant="acme")
    file.make("olga", "admin")
    return file


class Gate:
    """Lets the first phase end."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()

    async def first(self, _parameters: dict[str, Any]) -> int:
        await self.is_open.wait()
        return 1


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def scene(
    servers: EmbeddedServers, tmp_path: Path, keys: KeyFile, gate: Gate
) -> AsyncIterator[Scene]:
    makers = Makers(keys.open())
    async with a_scene(
        servers, tmp_path, makers=makers, first=gate.first, second=lambda _: 2
    ) as found:
        yield found


async def ask(scene: Scene, action: str, caller: Caller, **told: Any) -> PipelineReply:
    request = PipelineRequest(action=action, session_id="s", caller=caller, **told)
    return await scene.requests.take_up(request)


async def begin(scene: Scene) -> None:
    declared = PIPELINE.model_dump(mode="json")
    reply = await ask(scene, "run", SHOP, pipeline=declared, keep=True)
    assert reply.kind == "accepted", reply
    await scene.until_run("first")


async def until(scene: Scene, holds: Callable[[RunRecord], bool]) -> RunRecord:
    async with asyncio.timeout(PATIENCE_S):
        while (record := await scene.parts.runs.read("s")) is None or not holds(record):  # noqa: ASYNC110 - a store tells nobody
            await asyncio.sleep(0.01)
    return record


async def rest(scene: Scene, keys: KeyFile, gate: Gate) -> dict[str, Any]:
    """Remove the key while the first phase runs, and let that end."""
    await begin(scene)
    entry = keys.remove("shop")
    gate.is_open.set()
    record = await until(scene, lambda one: bool(one.held) and one.holder is None)
    assert record.state == "running"
    assert (record.phases["first"].status, record.phases["second"].status) == (
        "done",
        "pending",
    )
    assert "the API key 'shop' that created it was removed" in record.held
    assert "`tasklore pipelines resume s`" in record.held
    return entry


async def test_what_runs_comes_to_its_end_and_no_phase_begins_until_the_key_is_back(
    scene: Scene, keys: KeyFile, gate: Gate
) -> None:
    async with scene.desk():
        entry = await rest(scene, keys, gate)
        keys.put_back(entry)
        told = await scene.outcome("s")
    assert (told["state"], scene.runs) == ("completed", {"first": 1, "second": 1})
    record = await scene.parts.runs.read("s")
    assert record is not None
    assert record.held == ""


@pytest.mark.parametrize("taker", [TILL, OLGA])
async def test_who_resumes_it_takes_it_over_for_its_tenant(
    scene: Scene, keys: KeyFile, gate: Gate, taker: Caller
) -> None:
    async with scene.desk():
        await rest(scene, keys, gate)
        reply = await ask(scene, "resume", taker)
        assert (reply.kind, "it continues as yours" in reply.text) == ("accepted", True)
        told = await scene.outcome("s")
    assert told["state"] == "completed"
    first, second = scene.callers["first"], scene.callers["second"]
    assert first is not None
    assert second is not None
    assert (first.name, second.name, second.tenant) == ("shop", taker.name, "acme")


async def test_it_can_be_cancelled_while_it_rests(
    scene: Scene, keys: KeyFile, gate: Gate
) -> None:
    async with scene.desk():
        await rest(scene, keys, gate)
        reply = await ask(scene, "cancel", OLGA, reason="not needed")
        assert reply.kind == "accepted"
        assert (await scene.outcome("s"))["state"] == "cancelled"


async def test_a_run_whose_key_is_there_is_taken_over_by_nobody(
    scene: Scene, gate: Gate
) -> None:
    async with scene.desk():
        await begin(scene)
        reply = await ask(scene, "resume", OLGA)
        assert (reply.kind, "is running" in reply.text) == ("refused", True)
        gate.is_open.set()
        assert (await scene.outcome("s"))["state"] == "completed"


async def test_another_supervisor_that_knows_the_key_goes_on(
    scene: Scene, servers: EmbeddedServers, keys: KeyFile, gate: Gate, tmp_path: Path
) -> None:
    """In a rolling update the one with the list of before leaves the run to the other."""
    known = KeyFile(tmp_path / "after.json")
    known.make("shop", "ask", tenant="acme")
    parts = replace(scene.parts, makers=Makers(known.open()))
    async with scene.desk():
        await rest(scene, keys, gate)
        other = PipelineDriver(parts, holder="other", lease_s=5.0)
        working = asyncio.create_task(other.run())
        try:
            told = await scene.outcome("s")
        finally:
            await other.drain()
            await working
    assert told["state"] == "completed"
