"""Pipelines that fail and go on, side by side and over changed files, as real processes run them."""

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tests.acceptance.pipelines import Asker, asker_in
from tests.acceptance.system import AGENTS, System, running_system

PHASES = str(AGENTS / "phases.py")
LABEL = "${input.label}"
NEEDS = "${input.needs}"
INPUTS = {"label": Input(type="text"), "needs": Input(type="text", default="")}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Run one worker and one supervisor for all of these tests."""
    folder = tmp_path_factory.mktemp("pipelines")
    with running_system(folder) as system:
        worker = system.worker(PHASES)
        supervisor = system.supervisor(evidence_dir=folder / "evidence")
        worker.ready()
        supervisor.ready()
        yield system


@pytest.fixture
async def asker(system: System) -> AsyncIterator[Asker]:
    """Connect somebody who asks for pipelines."""
    async with asker_in(system) as asker:
        yield asker


def step(name: str, before: str | None, **more: object) -> Phase:
    """Return a phase that adds one step to those of the phase *before*."""
    given = {
        "label": LABEL,
        "before": [] if before is None else f"${{{before}:results.steps}}",
    }
    return Phase.model_validate(
        {
            "name": name,
            "agent": "PhasesAgent",
            "task": "step",
            "parameters": given,
            "retries": 0,
        }
        | more
    )


def nine_phases() -> Pipeline:
    """Return nine phases in a row, the seventh and eighth side by side; the sixth fails while a file is missing."""
    chain = [
        step(f"phase_{number}", f"phase_{number - 1}" if number > 1 else None)
        for number in range(1, 6)
    ]
    sixth = step("phase_6", "phase_5")
    sixth = sixth.model_copy(
        update={"parameters": {**sixth.parameters, "needs": NEEDS}}
    )
    last = step("phase_9", "phase_7", after=("phase_8",))
    phases = (
        *chain,
        sixth,
        step("phase_7", "phase_6"),
        step("phase_8", "phase_6"),
        last,
    )
    return Pipeline(name="nine", inputs=INPUTS, result="phase_9:results", phases=phases)


NAMES = [f"phase_{number}" for number in range(1, 10)]


async def test_a_resumed_run_computes_only_what_failed_and_what_follows(
    asker: Asker, system: System
) -> None:
    """Five phases of nine are not run again, and what they would have taken is told as saved."""
    needed = system.folder / "needed-by-one"
    failed = await asker.run(
        "one", nine_phases(), keep=False, label="one", needs=str(needed)
    )
    assert failed["state"] == "failed"
    assert "phase_6 needs" in failed["error"]
    assert asker.ran("one") == Counter(NAMES[:6])
    file = system.folder / "evidence" / "one-failed.json"
    assert failed["evidence"] == str(file)
    evidence = json.loads(file.read_text("utf-8"))
    assert set(evidence["session"]["cache"]) == {
        f"{name}:results" for name in NAMES[:5]
    }
    assert evidence["phases"]["phase_6"]["error_type"] == "GiveUp"

    needed.touch()
    reply, resumed = await asker.resume("one")
    assert [note.phase for note in reply.reused] == NAMES[:5]
    assert sorted(note.phase for note in reply.stale) == NAMES[5:]
    assert resumed["state"] == "completed"
    assert resumed["result"] == {"steps": [1, 2, 3, 4, 5, 6, 7, 8]}
    assert asker.ran("one") == Counter(NAMES[:5]) + Counter(NAMES[5:]) + Counter(
        ["phase_6"]
    )
    assert await asker.cache.root("one") is None


async def test_a_touched_file_makes_only_its_readers_stale(
    asker: Asker, tmp_path: Path
) -> None:
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
    assert (
        next(note.why for note in touched.stale if note.phase == "reads_a")
        == "file 'a.txt' was touched"
    )

    (tmp_path / "a.txt").write_text("something else")
    reply, resumed = await asker.resume("files")
    assert {note.phase for note in reply.stale} == {"reads_a", "after_a"}
    assert "a.txt" in next(note.why for note in reply.stale if note.phase == "reads_a")
    assert {note.phase for note in reply.reused} == {"reads_b", "reads_none", "after_b"}
    assert resumed["state"] == "completed"
    assert asker.ran("files") == Counter(
        {"reads_a": 2, "after_a": 2, "reads_b": 1, "reads_none": 1, "after_b": 1}
    )

    (tmp_path / "b-new.txt").write_text("one more")
    reply, _ = await asker.resume("files")
    assert {note.phase for note in reply.stale} == {"reads_b", "after_b"}
