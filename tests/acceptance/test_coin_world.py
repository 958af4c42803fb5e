"""The example's world with real workers: every text arrives once, and the same seed makes the same world."""

import select
import signal
import subprocess
import sys
from pathlib import Path

from benchmarks.world_rows import SMALL, run_world
from tasklore.supervisor.program_client import asking
from tests.acceptance.command import PATIENCE_S, await_none_in, environment
from tests.acceptance.system import ROOT, System

DECISION = "tasklore.workers.agents.decision"


async def test_every_text_arrives_once_and_the_same_seed_makes_the_same_world(
    own_system: System,
) -> None:
    """Two runs: one with two workers of which one is killed while a step is decided, one with the worker that is left.

    What is killed is missed within its deadline, so that nobody is late; and no run depends on the other, since they
    talk in conversations of their own.
    """
    workers = [own_system.worker(DECISION) for _ in range(2)]
    for worker in workers:
        worker.ready()
    servers = own_system.servers
    async with asking(
        "CoinWorld", nats_url=servers.nats_url, redis_url=servers.redis_url
    ) as asker:
        first = await run_world(
            asker, servers.redis_url, "first", SMALL, halfway=workers[1].kill
        )
        second = await run_world(asker, servers.redis_url, "second", SMALL)

    assert not workers[1].is_running
    for run in (first, second):
        assert (run.lost, run.twice, run.strange, run.late) == (0, 0, 0, 0)
        assert run.texts
    assert len(set(first.worlds)) == SMALL[1]
    assert second.worlds == first.worlds


def test_a_run_that_is_interrupted_leaves_nothing_but_its_recording(
    tmp_path: Path,
) -> None:
    """It starts a system by itself; Ctrl-C ends all of it quietly, and what was recorded goes the same again."""
    (tmp_path / "tmp").mkdir()
    options = (
        "--agents",
        "4",
        "--coins",
        "400",
        "--size",
        "20",
        "--record",
        str(tmp_path / "run"),
    )
    with _coin_world(tmp_path, *options) as world:
        try:
            said = b"".join(_line(world) for _ in range(20))
            world.send_signal(signal.SIGINT)
            rest, errors = world.communicate(timeout=PATIENCE_S)
        finally:
            world.kill()
    assert (world.returncode, errors) == (130, b"")
    assert await_none_in(tmp_path) == {}
    assert list((tmp_path / "tmp").iterdir()) == []

    with _coin_world(tmp_path, "--replay", str(tmp_path / "run")) as again:
        repeated, errors = again.communicate(timeout=PATIENCE_S)
    assert (again.returncode, errors) == (0, b"")
    assert repeated == said + rest


def test_the_world_goes_the_same_over_http(own_system: System, tmp_path: Path) -> None:
    """By the address of a supervisor and nothing else; and it says so when nobody is at that address."""
    worker = own_system.worker(DECISION)
    supervisor = own_system.supervisor()
    worker.ready(), supervisor.ready()
    servers = own_system.servers
    options = ("--agents", "3", "--coins", "6", "--size", "6", "--steps", "5")
    over_nats = {
        "TASKLORE_NATS_URL": servers.nats_url,
        "TASKLORE_REDIS_URL": servers.redis_url,
    }

    said = [
        _told(_coin_world(tmp_path, *options, "--api", supervisor.api)),
        _told(_coin_world(tmp_path, *options, **over_nats)),
    ]
    assert said[0] == said[1]
    assert said[0][:2] == (0, b"")
    assert said[0][2].count(b"\n") >= 5

    code, errors, _ = _told(
        _coin_world(tmp_path, *options, "--api", "http://127.0.0.1:9")
    )
    assert (code, errors.count(b"\n"), b"cannot be asked" in errors) == (1, 1, True)


def _told(world: "subprocess.Popen[bytes]") -> tuple[int, bytes, bytes]:
    """Return how it ended, and what it said of faults and of itself."""
    said, errors = world.communicate(timeout=PATIENCE_S)
    return world.returncode, errors, said


def _coin_world(
    place: Path, *options: str, **variables: str
) -> "subprocess.Popen[bytes]":
    """Start the example as a person does, in a checkout, where no system is known."""
    return subprocess.Popen(
        [sys.executable, "-m", "examples.coin_world", "--no-page", *options],
        cwd=ROOT,
        env=environment(
            TMPDIR=str(place / "tmp"),
            TASKLORE_DATA_DIR=str(place / "nothing"),
            **variables,
        ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # What was read ahead would be missing in the rest.
        bufsize=0,
    )


def _line(world: "subprocess.Popen[bytes]") -> bytes:
    """Return the next line of what it says."""
    assert world.stdout is not None
    readable, _, _ = select.select([world.stdout], [], [], PATIENCE_S)
    assert readable, "it is silent"
    return world.stdout.readline()
