"""The forge and its workers: forked quickly, killed truly, and never left behind."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from runtime.servers.embedded import EmbeddedServers
from tests.acceptance.chaos.forged import PATIENCE_S
from tests.acceptance.chaos.history import History, read_history
from tests.acceptance.chaos.smith import Smith
from tests.acceptance.chaos.storm import AGENT
from tests.acceptance.house import ROOT


def _environment(servers: EmbeddedServers, folder: Path) -> dict[str, str]:
    return {
        "TASKLORE_NATS_URL": servers.nats_url,
        "TASKLORE_REDIS_URL": servers.redis_url,
        "CHAOS_HISTORY": str(folder / "history"),
    }


def _is_alive(pid: int) -> bool:
    """Return whether *pid* still does anything; a dead process that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


async def _lives_on(pids: list[int]) -> list[int]:
    """Return which of *pids* are alive; those that were just killed are given the time to die."""
    gives_up_at = time.monotonic() + PATIENCE_S
    while any(map(_is_alive, pids)) and time.monotonic() < gives_up_at:  # noqa: ASYNC110 - not our children
        await asyncio.sleep(0.02)
    return [pid for pid in pids if _is_alive(pid)]


async def test_a_forked_worker_takes_tasks_and_dies_like_any_other(servers: EmbeddedServers, tmp_path: Path) -> None:
    """Its whole life is in the history; the next one is another process."""
    with History(tmp_path / "history") as history:
        async with Smith([AGENT], tmp_path / "workers") as smith:
            first = await smith.fork(_environment(servers, tmp_path), history)
            await first.begun()
            first.kill()
            status = await first.gone()
            second = await smith.fork(_environment(servers, tmp_path), history)
            await second.begun()
            lives = _is_alive(second.pid)
        lives_on = await _lives_on([second.pid])

    kinds = [event.kind for event in read_history(tmp_path / "history") if event.pid == first.pid]
    assert kinds == ["forked", "ready", "kill", "died"]
    assert status == -9
    assert first.pid != second.pid
    assert (lives, lives_on) == (True, [])


async def test_a_worker_that_cannot_start_says_so_in_its_log(tmp_path: Path) -> None:
    """It has died by itself, with the status of the command."""
    with History(tmp_path / "history") as history:
        async with Smith([AGENT], tmp_path / "workers") as smith:
            worker = await smith.fork({"TASKLORE_SLOTS": "none"}, history)
            await worker.begun()
            status = await worker.gone()

    assert status == 1
    assert "TASKLORE_SLOTS" in (tmp_path / "workers" / "worker-0.log").read_text()


#: Lights a forge, has one worker forked and frozen, says so, and waits.
_PARENT = """
import asyncio, json, os, sys
from pathlib import Path
from tests.acceptance.chaos.history import History
from tests.acceptance.chaos.smith import Smith

async def main():
    folder = Path(sys.argv[1])
    async with Smith([sys.argv[2]], folder / "workers") as smith:
        worker = await smith.fork(dict(os.environ), History(folder / "history"))
        await worker.begun()
        worker.stop()
        print(worker.pid, smith.pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_nothing_is_left_when_whoever_lit_the_forge_is_killed(servers: EmbeddedServers, tmp_path: Path) -> None:
    """Not even a worker that is frozen."""
    with subprocess.Popen(  # noqa: ASYNC220 - returns as soon as it is forked
        [sys.executable, "-c", _PARENT, str(tmp_path), AGENT],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **_environment(servers, tmp_path)},
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in (await asyncio.to_thread(parent.stdout.readline)).split()]
        lived = [_is_alive(pid) for pid in pids]
        parent.kill()

    lives_on = await _lives_on(pids)
    assert lived == [True, True]
    assert lives_on == []
