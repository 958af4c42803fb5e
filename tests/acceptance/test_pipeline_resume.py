"""Pipelines that fail and go on, side by side and over changed files, as real processes run them."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import nats
import pytest

from contracts.pipelines import Input, Phase, Pipeline
from memory.sessions.pipeline_runs import PipelineRuns
from memory.sessions.session import SessionCache
from runtime.servers import valkey
from runtime.servers.embedded import EmbeddedServers
from tests.acceptance.command import environment, tasklore
from tests.acceptance.house import AGENTS, House
from tests.acceptance.pipelines import PATIENCE_S, Asker

PHASES = str(AGENTS / "phases.py")
LABEL, NEEDS = "${input.label}", "${input.needs}"
INPUTS = {"label": Input(type="text"), "needs": Input(type="text", default="")}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Run one worker and one supervisor for all of these tests."""
    folder = tmp_path_factory.mktemp("pipelines")
    servers = EmbeddedServers(folder / "servers")
    asyncio.run(servers.start())
    house = House(servers, folder)
    try:
        worker, supervisor = house.worker(PHASES), house.supervisor(evidence_dir=folder / "evidence")
        worker.ready()
        supervisor.ready()
        yield house
    finally:
        house.close()
        asyncio.run(servers.stop())


@pytest.fixture
async def asker(house: House) -> AsyncIterator[Asker]:
    """Connect somebody who asks for pipelines."""
    client = await nats.connect(house.servers.nats_url)
    try:
        async with valkey.connect(house.servers.redis_url, deadline_s=PATIENCE_S) as redis:
            runs, cache = PipelineRuns(redis, deadline_s=PATIENCE_S), SessionCache(redis, deadline_s=PATIENCE_S)
            yield Asker(client, runs, cache, house.folder)
    finally:
        await client.close()


def step(name: str, before: str | None, **more: object) -> Phase:
    """Return a phase that adds one step to those of the phase *before*."""
    given = {"label": LABEL, "before": [] if before is None else f"${{{before}:results.steps}}"}
    return Phase.model_validate(
        {"name": name, "agent": "PhasesAgent", "task": "step", "parameters": given, "retries": 0} | more
    )


def look(name: str, key: str, **more: object) -> Phase:
    """Return a phase that reads the entry *key* by itself."""
    given = {"label": LABEL, "entry": key}
    return Phase.model_validate(
        {"name": name, "agent": "PhasesAgent", "task": "look", "parameters": given, "reads": (key,)} | more
    )


def nine_phases() -> Pipeline:
    """Return nine phases in a row, the seventh and eighth side by side; the sixth fails while a file is missing."""
    chain = [step(f"phase_{number}", f"phase_{number - 1}" if number > 1 else None) for number in range(1, 6)]
    sixth = step("phase_6", "phase_5")
    sixth = sixth.model_copy(update={"parameters": {**sixth.parameters, "needs": NEEDS}})
    last = step("phase_9", "phase_7", after=("phase_8",))
    phases = (*chain, sixth, step("phase_7", "phase_6"), step("phase_8", "phase_6"), last)
    return Pipeline(name="nine", inputs=INPUTS, result="phase_9:results", phases=phases)


NAMES = [f"phase_{number}" for number in range(1, 10)]


async def test_a_resumed_run_computes_only_what_failed_and_what_follows(asker: Asker, house: House) -> None:
    """Five phases of nine are not run again, and what they would have taken is told as saved."""
    needed = house.folder / "needed-by-one"
    failed = await asker.run("one", nine_phases(), keep=False, label="one", needs=str(needed))
    assert failed["state"] == "failed"
    assert "phase_6 needs" in failed["error"]
    assert asker.ran("one") == Counter(NAMES[:6])
    file = house.folder / "evidence" / "one-failed.json"
    assert failed["evidence"] == str(file)
    evidence = json.loads(file.read_text("utf-8"))
    assert set(evidence["session"]["cache"]) == {f"{name}:results" for name in NAMES[:5]}
    assert evidence["phases"]["phase_6"]["error_type"] == "GiveUp"

    needed.touch()
    reply, resumed = await asker.resume("one")
    assert [note.phase for note in reply.reused] == NAMES[:5]
    assert sorted(note.phase for note in reply.stale) == NAMES[5:]
    assert resumed["state"] == "completed"
    assert resumed["result"] == {"steps": [1, 2, 3, 4, 5, 6, 7, 8]}
    assert asker.ran("one") == Counter(NAMES[:5]) + Counter(NAMES[5:]) + Counter(["phase_6"])
    assert await asker.cache.root("one") is None


async def test_a_run_goes_on_from_its_evidence_on_an_empty_store(asker: Asker, house: House) -> None:
    """By the command, and its result is that of a run that never failed."""
    needed = house.folder / "needed-by-two"
    failed = await asker.run("two", nine_phases(), label="two", needs=str(needed))
    assert failed["state"] == "failed"
    async with valkey.connect(house.servers.redis_url) as redis:
        await redis.flushall()
    assert await asker.runs.read("two") is None

    needed.touch()
    settings = environment(TASKLORE_NATS_URL=house.servers.nats_url, TASKLORE_REDIS_URL=house.servers.redis_url)
    command = ("pipeline", "resume", "--evidence", failed["evidence"])
    done = await asyncio.to_thread(lambda: tasklore(*command, cwd=house.folder, env=settings))
    assert done.returncode == 0, done.stderr
    resumed = await asker.outcome("two")
    undisturbed = await asker.run("three", nine_phases(), label="three")
    assert resumed["state"] == undisturbed["state"] == "completed"
    assert resumed["result"] == undisturbed["result"]
    assert asker.ran("two") == Counter(NAMES) + Counter(["phase_6"])


async def test_two_pipelines_at_once_never_see_the_entries_of_each_other(asker: Asker) -> None:
    """Not under the same keys, nor in what there is to be seen."""
    phases = (step("first", None), look("second", "first:results"), look("third", "second:results"))
    pipeline = Pipeline(name="alike", inputs=INPUTS, phases=phases)
    other = Pipeline(
        name="alike",
        inputs=INPUTS,
        phases=(step("zeroth", None), step("first", "zeroth"), *phases[1:]),
    )
    labels = [f"side-by-side-{number}" for number in range(8)]
    outcomes = await asyncio.gather(
        *(asker.run(label, (pipeline, other)[number % 2], label=label) for number, label in enumerate(labels))
    )
    for number, (label, outcome) in enumerate(zip(labels, outcomes, strict=True)):
        assert outcome["state"] == "completed", outcome
        expected = {"first:results"} | ({"zeroth:results"} if number % 2 else set())
        [second, third] = await asker.cache.peek(label, ["second:results", "third:results"])
        assert second is not None
        assert third is not None
        assert second.value == {"value": {"steps": [1, 2] if number % 2 else [1]}, "keys": sorted(expected)}
        assert third.value == {"value": second.value, "keys": sorted(expected | {"second:results"})}
        assert all(count == 1 for count in asker.ran(label).values())


async def test_a_touched_file_makes_only_its_readers_stale(asker: Asker, tmp_path: Path) -> None:
    """And what depends on these; the rest of the run is as it was."""
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
    pipeline = Pipeline(
        name="files",
        root="${input.folder}",
        inputs={**INPUTS, "folder": Input(type="text")},
        phases=(
            step("reads_a", None, reads_files=("a*.txt",)),
            step("reads_b", None, reads_files=("b*.txt",)),
            step("reads_none", None),
            step("after_a", "reads_a"),
            step("after_b", "reads_b"),
        ),
    )
    await asker.run("files", pipeline, label="files", folder=str(tmp_path))
    unchanged = await asker.ask("invalidate", "files")
    assert (unchanged.kind, unchanged.stale) == ("accepted", ())

    os.utime(tmp_path / "a.txt", ns=(1, 1))
    touched = await asker.ask("invalidate", "files")
    assert {note.phase for note in touched.stale} == {"reads_a", "after_a"}
    assert next(note.why for note in touched.stale if note.phase == "reads_a") == "file 'a.txt' was touched"

    (tmp_path / "a.txt").write_text("something else")
    reply, resumed = await asker.resume("files")
    assert {note.phase for note in reply.stale} == {"reads_a", "after_a"}
    assert "a.txt" in next(note.why for note in reply.stale if note.phase == "reads_a")
    assert {note.phase for note in reply.reused} == {"reads_b", "reads_none", "after_b"}
    assert resumed["state"] == "completed"
    assert asker.ran("files") == Counter({"reads_a": 2, "after_a": 2, "reads_b": 1, "reads_none": 1, "after_b": 1})

    (tmp_path / "b-new.txt").write_text("one more")
    reply, _ = await asker.resume("files")
    assert {note.phase for note in reply.stale} == {"reads_b", "after_b"}


async def test_a_corrective_pass_hides_pass_one_from_whoever_follows(asker: Asker) -> None:
    """Those who ask for pass 1 by its name get pass 2; once pass 2 is reset, pass 1 is there again for it."""
    pipeline = Pipeline(
        name="passes",
        inputs=INPUTS,
        phases=(
            step("pass_1", None),
            step("pass_2", "pass_1", corrects="pass_1"),
            step("review", "pass_1"),
            look("reader", "pass_1:results", after=("review",)),
        ),
    )
    await asker.run("passes", pipeline, label="passes")
    [one, two, reviewed, read] = await asker.cache.peek(
        "passes", ["pass_1:results", "pass_2:results", "review:results", "reader:results"]
    )
    assert [found and found.value for found in (one, two)] == [{"steps": [1, 2]}] * 2
    assert reviewed is not None
    assert reviewed.value == {"steps": [1, 2, 3]}
    assert read is not None
    assert read.value == {"value": {"steps": [1, 2]}, "keys": ["pass_2:results", "review:results"]}
    hidden = {entry.key: entry.hidden_by for entry in await asker.cache.entries("passes")}
    assert hidden["pass_1:results"] == "pass_2"

    reply = await asker.ask("rerun", "passes", phase="pass_2")
    assert {note.phase for note in reply.stale} == {"pass_2", "review", "reader"}
    again = await asker.outcome("passes")
    assert again["state"] == "completed"
    assert asker.ran("passes") == Counter({"pass_1": 1, "pass_2": 2, "review": 2, "reader": 2})
    [two] = await asker.cache.peek("passes", ["pass_2:results"])
    assert two is not None
    assert two.value == {"steps": [1, 2]}
