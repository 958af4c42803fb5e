"""`tasklore analyses run` as a person types it: the example story, a supervisor, and a worker with the ten agents."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.analysis.document import AnalysisDocument, read_document
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.runtime.servers.claims import free_port
from tests.acceptance.command import PATIENCE_S, Running
from tests.acceptance.system import Served, System, running_system

AGENTS = "tasklore.workers.agents.story"
STORY = "lighthouse"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[System, Served]]:
    """Return a system with the example story in its folder, and its worker."""
    folder = tmp_path_factory.mktemp("stories")
    with running_system(folder) as system:
        system.supervisor().ready()
        worker = system.worker(AGENTS).ready()
        assert system.command("stories", "example", STORY).returncode == 0
        yield system, worker


def run(
    place: tuple[System, Served], *words: str
) -> "subprocess.CompletedProcess[str]":
    """Run `tasklore analyses` where the story lies."""
    return place[0].command("analyses", *words)


def test_a_response_is_analysed_and_its_context_printed(
    place: tuple[System, Served],
) -> None:
    """Every agent is told with what it found; the file, what is kept and the context are of one document."""
    done = run(place, "run", STORY, "Ch1-R001.md")
    assert done.returncode == 0, done.stderr
    told = {
        line.split()[0]: line for line in done.stdout.splitlines() if line[:1].islower()
    }
    assert [seat.section for seat in SECTION_AGENTS if seat.section not in told] == []
    assert " rules " in told["knowledge"]
    context = done.stdout[done.stdout.index("<!-- AGENT CONTEXT -->") :]
    assert run(place, "context", STORY, "--response", "1").stdout == context
    assert run(place, "context", f"{STORY}/state/agent_analysis.json").stdout == context


def test_the_same_response_again_is_served(place: tuple[System, Served]) -> None:
    words = ("run", STORY, "Ch1-R002.md")
    first = run(place, *words, "--json")
    assert first.returncode == 0, first.stderr
    again = run(place, *words)
    assert again.stdout.splitlines()[0].endswith(", stored findings returned")
    anew = run(place, *words, "--refresh", "--json")
    assert anew.stdout != first.stdout
    assert _findings(anew.stdout) == _findings(first.stdout)


def _findings(told: str) -> dict[str, Any]:
    sections = read_document(json.loads(told)["document"]).sections()
    return {
        name: {**body, "dur": None} for name, body in sections if isinstance(body, dict)
    }


def test_several_responses_are_a_line_each(place: tuple[System, Served]) -> None:
    done = run(place, "run", STORY, "Ch1-R004.md", "Ch1-R003.md")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:2]] == [
        ["Ch1-R3", "whole"],
        ["Ch1-R4", "whole"],
    ]
    assert "tokens of files -> at most " in lines[-1]


def test_whoever_has_heard_enough_stops_it(
    place: tuple[System, Served], tmp_path: Path
) -> None:
    """As any command in a pipe, and not as one whose analysis failed; what was found lies in the folder."""
    system, _ = place
    words = ("analyses", "run", STORY, "--all")
    env = {**system.environment, "PYTHONUNBUFFERED": ""}
    with Running(
        *words, cwd=system.folder, env=env, errors=tmp_path / "errors"
    ) as command:
        assert command.line().startswith("Ch1-R1 ")
        assert command.process.stdout is not None
        command.process.stdout.close()
        assert command.process.wait(PATIENCE_S) == 128 + signal.SIGPIPE
        command.process.stdout = None
    assert (tmp_path / "errors").read_text() == ""
    left = read_document(
        (system.folder / STORY / "state" / "agent_analysis.json").read_bytes()
    )
    assert left.meta.response_number >= 2


async def test_ctrl_c_leaves_the_agents_at_work(
    place: tuple[System, Served], tmp_path: Path
) -> None:
    """It says how to look at what they find, and that is there once they are through."""
    system, worker = place
    words = ("analyses", "run", STORY, "Ch1-R005.md")
    async with Redis.from_url(system.servers.redis_url) as redis:
        analyses = AnalysisStore(redis, deadline_s=PATIENCE_S)
        worker.stop()
        try:
            with Running(
                *words,
                cwd=system.folder,
                env=system.environment,
                errors=tmp_path / "errors",
            ) as command:
                await _until(analyses, lambda document: document is not None)
                assert await asyncio.to_thread(command.end, signal.SIGINT) == 130
                assert command.rest() == ""
        finally:
            worker.go_on()
        told = (tmp_path / "errors").read_text()
        assert told.endswith(
            "tasklore: the agents continue; `tasklore analyses show lighthouse --response 5` shows what they found\n"
        )
        await _until(
            analyses,
            lambda document: document is not None and document.meta.status == "fresh",
        )


async def _until(
    analyses: AnalysisStore,
    holds: Callable[[AnalysisDocument | None], bool],
    number: int = 5,
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds(await analyses.read(STORY, number)):  # noqa: ASYNC110 - a store makes no event here
            await asyncio.sleep(0.02)


async def test_a_killed_supervisor_costs_seconds(own_system: System) -> None:
    """The next one goes on, and the command that waits prints the analysis well before its time is over."""
    errors = own_system.folder / "errors"
    assert own_system.command("stories", "example", STORY).returncode == 0
    # Its successor is asked where it was: behind one address.
    port = free_port()
    supervisor = own_system.supervisor(api_port=port).ready()
    assert own_system.command("stories", "load", STORY).returncode == 0
    worker = own_system.worker(AGENTS).ready()
    words = ("analyses", "run", STORY, "Ch1-R001.md", "--wait", "500", "--json")
    with Running(
        *words, cwd=own_system.folder, env=own_system.environment, errors=errors
    ) as command:
        worker.stop()
        async with Redis.from_url(own_system.servers.redis_url) as redis:
            analyses = AnalysisStore(redis, deadline_s=PATIENCE_S)
            await _until(analyses, lambda document: document is not None, 1)
        supervisor.kill()
        worker.go_on()
        own_system.supervisor(api_port=port).ready()
        code = await asyncio.to_thread(command.process.wait, PATIENCE_S)
        assert code == 0, errors.read_text()
        assert (
            read_document(json.loads(command.rest())["document"]).meta.status == "fresh"
        )


async def test_without_the_agents_it_says_how_to_start_them(own_system: System) -> None:
    """It says so in one line, and leaves nothing in the folder of the story."""
    own_system.command("stories", "example", STORY)
    own_system.supervisor().ready()
    done = own_system.command("analyses", "run", STORY)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"`tasklore worker {AGENTS}`" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (own_system.folder / STORY / "state").exists()
