"""Pipelines made to occupy whoever drives them: two supervisors go on serving, and leave when they are asked to."""

import asyncio
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasklore.contracts.pipelines import Phase, Pipeline
from tests.acceptance.pipelines import PATIENCE_S, asker_in
from tests.acceptance.system import AGENTS, Served, System
from tests.http_client import ask

PHASES = str(AGENTS / "phases.py")
#: For each of them a thread that held the interpreter's lock went on for hours.
BOMB = "**/" + "*?" * 18 + "*~"
#: Seconds that a look at files may take here.
LOOK_S = 4.0
#: The part of a look within which `/healthz` answers whatever is asked of pipelines: one
#: that occupied a supervisor would hold up an answer for the whole of it.
ANSWERS_WITHIN = 0.75


def reading(root: Path, *globs: str, name: str = "reading") -> Pipeline:
    """Return a pipeline of one phase that reads files."""
    given = {"label": name, "before": []}
    phase = Phase(
        name="one",
        agent="PhasesAgent",
        task="step",
        parameters=given,
        reads_files=globs,
    )
    return Pipeline(name=name, root=str(root), phases=(phase,))


def fill(allowed: Path) -> None:
    """Make a folder of files that long names make hard to match, and a great many of others."""
    for folder, names in (
        ("long", [f"{n:02}" + "x" * 58 for n in range(30)]),
        ("own", [f"{n}.py" for n in range(25)]),
    ):
        (allowed / folder).mkdir(parents=True)
        for name in names:
            (allowed / folder / name).write_text(name)
    with (allowed / "sparse").open("wb") as file:
        file.truncate(2**40)
    (allowed / "out").symlink_to("/etc")


@contextmanager
def watched(*supervisors: Served) -> Iterator[list[float]]:
    """Ask each for its health all the while; yield the seconds that each answer took."""
    took = list[float]()
    ended = threading.Event()

    def watch(url: str) -> None:
        while not ended.wait(0.05):
            asked_at = time.monotonic()
            with urllib.request.urlopen(f"{url}/healthz", timeout=PATIENCE_S) as reply:  # noqa: S310 - our own address
                reply.read()
            took.append(time.monotonic() - asked_at)

    watchers = [threading.Thread(target=watch, args=(one.http,)) for one in supervisors]
    for watcher in watchers:
        watcher.start()
    try:
        yield took
    finally:
        ended.set()
        for watcher in watchers:
            watcher.join()


async def test_no_pipeline_occupies_a_supervisor(own_system: System) -> None:
    """What is not allowed is refused with its field and cure, the rest ends within its budget; others are served."""
    system = own_system
    allowed = own_system.folder / "allowed"
    fill(allowed)
    settings: dict[str, Any] = {
        "pipeline_roots": allowed,
        "fingerprint_s": LOOK_S,
        "grace_s": 5,
    }
    worker = system.worker(PHASES)
    first = system.supervisor(**settings)
    second = system.supervisor(**settings)
    for process in (worker, first, second):
        process.ready()
    async with asker_in(system) as asker:
        own = reading(allowed / "own", "**/*.py", name="own")
        await asker.run("first-of-all", own)
        with watched(first, second) as took:
            many = ["**/" * 20 + "*"] * 9
            bombs = [
                reading(allowed / "long", BOMB),
                reading(allowed, "sparse"),
                reading(allowed, *many),
            ]
            for number, bomb in enumerate(bombs):
                declared = bomb.model_dump(mode="json")
                over_http = {
                    "pipeline": declared,
                    "session_id": f"http-{number}",
                    "user": "mallory",
                }
                answer = await ask(first.api, "POST", "/v1/pipelines", over_http)
                assert answer.status == 202, answer
                await asker.ask(
                    "run", f"nats-{number}", pipeline=declared, user_id="trudy"
                )
            began = time.monotonic()
            assert (await asker.run("others", own, keep=False))["state"] == "completed"
            others_s = time.monotonic() - began
            outside = (
                (Path("/"), "**/*", "ROOTS"),
                (allowed / "out", "*", "ROOTS"),
                (allowed, "*" * 2000, "shorter"),
            )
            for root, glob, cure in outside:
                body = {"pipeline": reading(root, glob).model_dump(mode="json")}
                refused = await ask(second.api, "POST", "/v1/pipelines", body)
                assert refused.status == 422
                assert cure in json.dumps(refused.body)
            ends = [
                await asker.outcome(f"{way}-{n}")
                for way in ("http", "nats")
                for n in range(len(bombs))
            ]
        assert {end["state"] for end in ends} == {"completed", "failed"}
        told = [
            phase["error"]
            for end in ends
            for phase in end["phases"]
            if phase["status"] == "failed"
        ]
        assert told
        assert all("TASKLORE_FINGERPRINT_" in error for error in told)
        print(  # noqa: T201 - the figures
            f"others took {others_s:.1f} s, an answer {max(took):.2f} s at most"
        )
        assert max(took) < ANSWERS_WITHIN * LOOK_S
        # And while files are looked at, both leave when they are asked to.
        for number in range(4):
            declared = reading(allowed, "sparse").model_dump(mode="json")
            await asker.ask(
                "run", f"last-{number}", pipeline=declared, user_id=f"user-{number}"
            )
        for supervisor in (first, second):
            supervisor.terminate()
        assert [await asyncio.to_thread(one.wait) for one in (first, second)] == [0, 0]
