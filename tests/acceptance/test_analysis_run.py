"""`tasklore analysis run` as a person types it: the example story, a supervisor, and a worker with the ten agents."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from contracts.analysis.document import AnalysisDocument, read_document
from contracts.analysis.roster import ROSTER
from memory.stories.analyses import AnalysisStore
from runtime.servers.embedded import EmbeddedServers
from tests.acceptance.command import PATIENCE_S, Running, environment, tasklore
from tests.acceptance.house import House, Served

AGENTS = "workers.agents.story"
STORY = "lighthouse"
Place = tuple[Path, dict[str, str], Served]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Return a folder with the example story in it, an environment for commands there, and the worker."""
    folder = tmp_path_factory.mktemp("stories")
    servers = EmbeddedServers(folder / "servers")
    asyncio.run(servers.start())
    env = environment(TASKLORE_NATS_URL=servers.nats_url, TASKLORE_REDIS_URL=servers.redis_url)
    house = House(servers, folder)
    try:
        house.supervisor().ready()
        worker = house.worker(AGENTS).ready()
        assert tasklore("story", "example", STORY, cwd=folder, env=env).returncode == 0
        yield folder, env, worker
    finally:
        house.close()
        asyncio.run(servers.stop())


def run(place: Place, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run `tasklore analysis` where the story lies."""
    return tasklore("analysis", *words, cwd=place[0], env=place[1])


def test_a_response_is_analysed_and_its_context_printed(place: Place) -> None:
    """Every agent is told with what it found; the file, what is kept and the context are of one document."""
    done = run(place, "run", STORY, "Ch1-R001.md")
    assert done.returncode == 0, done.stderr
    told = {line.split()[0]: line for line in done.stdout.splitlines() if line[:1].islower()}
    assert [seat.section for seat in ROSTER if seat.section not in told] == []
    assert " rules " in told["knowledge"]
    context = done.stdout[done.stdout.index("<!-- AGENT CONTEXT -->") :]
    assert run(place, "context", STORY, "--response", "1").stdout == context
    assert run(place, "context", f"{STORY}/state/agent_analysis.json").stdout == context


def test_the_same_response_again_is_served(place: Place) -> None:
    """No agent is asked; with --refresh each is, and finds the same."""
    words = ("run", STORY, "Ch1-R002.md")
    first = run(place, *words, "--json")
    assert first.returncode == 0, first.stderr
    again = run(place, *words)
    assert again.stdout.splitlines()[0].endswith(", served from memory")
    anew = run(place, *words, "--refresh", "--json")
    assert anew.stdout != first.stdout
    assert _findings(anew.stdout) == _findings(first.stdout)


def _findings(told: str) -> dict[str, Any]:
    sections = read_document(json.loads(told)).sections()
    return {name: {**body, "dur": None} for name, body in sections if isinstance(body, dict)}


def test_several_responses_are_a_line_each(place: Place) -> None:
    """In the order of the story; on the last line what that saved."""
    done = run(place, "run", STORY, "Ch1-R004.md", "Ch1-R003.md")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:2]] == [["Ch1-R3", "whole"], ["Ch1-R4", "whole"]]
    assert "tokens of files -> at most " in lines[-1]


def test_whoever_has_heard_enough_stops_it(place: Place, tmp_path: Path) -> None:
    """As any command in a pipe, and not as one whose analysis failed; what was found lies in the folder."""
    folder, env, _ = place
    words = ("analysis", "run", STORY, "--all")
    env = {**env, "PYTHONUNBUFFERED": ""}
    with Running(*words, cwd=folder, env=env, errors=tmp_path / "errors") as command:
        assert command.line().startswith("Ch1-R1 ")
        assert command.process.stdout is not None
        command.process.stdout.close()
        assert command.process.wait(PATIENCE_S) == 128 + signal.SIGPIPE
        command.process.stdout = None
    assert (tmp_path / "errors").read_text() == ""
    left = read_document((folder / STORY / "state" / "agent_analysis.json").read_bytes())
    assert left.meta.response_number >= 2


async def test_ctrl_c_leaves_the_agents_at_work(place: Place, tmp_path: Path) -> None:
    """It says how to look at what they find, and that is there once they are through."""
    folder, env, worker = place
    words = ("analysis", "run", STORY, "Ch1-R005.md")
    async with Redis.from_url(env["TASKLORE_REDIS_URL"]) as redis:
        analyses = AnalysisStore(redis, deadline_s=PATIENCE_S)
        worker.stop()
        try:
            with Running(*words, cwd=folder, env=env, errors=tmp_path / "errors") as command:
                await _until(analyses, lambda document: document is not None)
                assert await asyncio.to_thread(command.end, signal.SIGINT) == 130
                assert command.rest() == ""
        finally:
            worker.go_on()
        told = (tmp_path / "errors").read_text()
        assert told.endswith(
            "tasklore: the agents go on; `tasklore analysis show lighthouse --response 5` looks at what they found\n"
        )
        await _until(analyses, lambda document: document is not None and document.meta.status == "fresh")


async def _until(analyses: AnalysisStore, holds: Callable[[AnalysisDocument | None], bool], number: int = 5) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds(await analyses.read(STORY, number)):  # noqa: ASYNC110 - a store makes no event here
            await asyncio.sleep(0.02)


async def test_a_killed_supervisor_costs_seconds(own_servers: EmbeddedServers, tmp_path: Path) -> None:
    """The next one goes on, and whoever waits is told well before the time is over."""
    env = environment(TASKLORE_NATS_URL=own_servers.nats_url, TASKLORE_REDIS_URL=own_servers.redis_url)
    for verb in ("example", "load"):
        assert tasklore("story", verb, STORY, cwd=tmp_path, env=env).returncode == 0
    house = House(own_servers, tmp_path)
    try:
        supervisor, worker = house.supervisor().ready(), house.worker(AGENTS).ready()
        words = ("analysis", "run", STORY, "Ch1-R001.md", "--wait", "500", "--json")
        with Running(*words, cwd=tmp_path, env=env, errors=tmp_path / "errors") as command:
            worker.stop()
            async with Redis.from_url(env["TASKLORE_REDIS_URL"]) as redis:
                analyses = AnalysisStore(redis, deadline_s=PATIENCE_S)
                await _until(analyses, lambda document: document is not None, 1)
            supervisor.kill()
            worker.go_on()
            house.supervisor().ready()
            code = await asyncio.to_thread(command.process.wait, PATIENCE_S)
            assert code == 0, (tmp_path / "errors").read_text()
            assert read_document(command.rest()).meta.status == "fresh"
    finally:
        house.close()


def test_without_the_agents_it_says_how_to_start_them(own_servers: EmbeddedServers, tmp_path: Path) -> None:
    """In one line, and nothing is left in the folder of the story."""
    env = environment(TASKLORE_NATS_URL=own_servers.nats_url, TASKLORE_REDIS_URL=own_servers.redis_url)
    tasklore("story", "example", STORY, cwd=tmp_path, env=env)
    house = House(own_servers, tmp_path)
    try:
        house.supervisor().ready()
        done = tasklore("analysis", "run", STORY, cwd=tmp_path, env=env)
    finally:
        house.close()
    assert (done.returncode, done.stdout) == (2, "")
    assert f"`tasklore worker {AGENTS}`" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / STORY / "state").exists()
