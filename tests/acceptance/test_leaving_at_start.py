"""Asked to end at any moment of its start, each role leaves at once with 0, and takes nothing from then on."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import pytest

from tests.acceptance.external_program import outside
from tests.acceptance.system import PROBE, ROOT, System, running_system

#: Seconds for what takes one or two; less than any grace period, and than what a watchdog gives.
PATIENCE_S = 60.0
#: Moments of each start that are tried, from the first line to a while after it says that it is ready.
SOME = 5
MANY = 50

#: Seconds for a test, which starts a process at each moment.
pytestmark = pytest.mark.timeout(300)

ROLES = {
    "supervisor": ("-m", "tasklore", "supervisor"),
    "worker": ("-m", "tasklore", "worker", PROBE),
    "memory worker": ("-m", "tasklore", "worker", "memory"),
    "worker that reloads": ("-m", "tasklore", "worker", PROBE, "--reload"),
    "worker of up": ("-m", "tasklore.commands.up", "worker", PROBE),
    "supervisor of up": ("-m", "tasklore.commands.up", "supervisor"),
    "up": ("-m", "tasklore", "up", PROBE),
    "bootstrap": ("-m", "tasklore", "bootstrap", "budget"),
}
#: Asked to end, it has not done what it is there for, and a Job must not count it as done.
STATUSES = {"bootstrap": 128 + signal.SIGTERM}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("leaving")) as system:
        yield system


class Starting:
    """A role that starts; signals that come before its first line are held back until it heeds them."""

    def __init__(
        self,
        system: System,
        role: str,
        folder: Path,
        *,
        before: Sequence[str] | None = None,
    ) -> None:
        servers = {} if role == "up" else system.environment
        environment = {
            **os.environ,
            **{k: v for k, v in servers.items() if k.startswith("TASKLORE_")},
            "PYTHONPATH": str(ROOT),
            "PROBE_RUNS": str(system.folder / "runs"),
            "TASKLORE_DATA_DIR": str(folder / "data"),
            "TASKLORE_HTTP_PORT": "0",
            "TASKLORE_API_PORT": "0",
        }
        self.log = folder / "log"
        held = {signal.SIGTERM} if before is None else set()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, held)
        try:
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    [*(before or ()), sys.executable, *ROLES[role]],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self.began = time.monotonic()

    def until_said(self, word: str) -> float:
        """Return the seconds from its start until it says *word*, or ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.decode().startswith(word):
                break
        return time.monotonic() - self.began

    def leave(self) -> int:
        """Ask it to end, and return the status with which it did."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Return its status once it has ended."""
        return self.process.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def moments(system: System, role: str, folder: Path, number: int) -> Sequence[float]:
    """Return so many seconds after a start, spread evenly until somewhat after it was ready this time."""
    with Starting(system, role, folder) as starting:
        if role == "bootstrap":
            # It ends by itself: asked to while it does, it says that it was asked to.
            took_s = starting.until_said("Everything")
            status = starting.wait()
        else:
            took_s = starting.until_said("ready")
            status = starting.leave()
        assert status == 0, starting.log.read_text()
    return [took_s * 1.1 * place / max(1, number - 1) for place in range(number)]


def try_each_moment(system: System, role: str, folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    expected = STATUSES.get(role, 0)
    for place, moment in enumerate(moments(system, role, folder, number)):
        with Starting(system, role, folder) as starting:
            # Nothing to wait for: what is tried is a moment, whatever it does then.
            try:
                starting.process.wait(moment)
            except subprocess.TimeoutExpired:
                status = starting.leave()
                told = f"{role} at {moment:.3f} s ({place})\n{starting.log.read_text()}"
                assert status == expected or (
                    # It had done all of it.
                    role == "bootstrap" and status == 0
                ), told
                assert "Traceback" not in told
            else:
                assert role == "bootstrap"


@pytest.mark.parametrize("role", ROLES)
def test_a_signal_at_some_moments_of_a_start(
    system: System, tmp_path: Path, role: str
) -> None:
    """It is neither lost nor an error."""
    try_each_moment(system, role, tmp_path / "role", SOME)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("role", ROLES)
def test_a_signal_at_many_moments_of_a_start(
    system: System, tmp_path: Path, role: str
) -> None:
    """The same, more finely."""
    try_each_moment(system, role, tmp_path / "role", MANY)


@pytest.mark.parametrize(
    "number",
    [SOME, pytest.param(MANY, marks=[pytest.mark.long, pytest.mark.timeout(1800)])],
)
async def test_a_worker_runs_no_task_that_comes_after_the_signal(
    system: System, tmp_path: Path, number: int
) -> None:
    """Whatever its start has come to: the task waits for another one, which runs it."""
    tried = await asyncio.to_thread(moments, system, "worker", tmp_path, number)
    async with outside(system.servers.nats_url) as program:
        tasks = {}
        for place, moment in enumerate(tried):
            label = f"after-{number}-{place}"
            with Starting(system, "worker", tmp_path) as starting:
                await asyncio.sleep(starting.began + moment - time.monotonic())
                starting.process.send_signal(signal.SIGTERM)
                tasks[label] = await program.assign(
                    "ProbeAgent", "fresh", {"label": label}
                )
                assert await asyncio.to_thread(starting.wait) == 0
                assert system.runs(label) == [], starting.log.read_text()
        worker = system.worker(PROBE)
        for label, task_id in tasks.items():
            assert (await program.report_of(task_id))["status"] == "completed"
            assert len(system.runs(label)) == 1
        worker.kill()


def entrypoint() -> list[str]:
    """Return what the image puts before the command."""
    lines = (ROOT / "deploy" / "Dockerfile").read_text("utf-8").splitlines()
    [told] = [line for line in lines if line.startswith("ENTRYPOINT ")]
    *before, command = json.loads(told.removeprefix("ENTRYPOINT "))
    assert command == "tasklore"
    return [str(word) for word in before]


def blocked(pid: int | str) -> set[int]:
    """Return the signals that are held back from a process."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if "SigBlk" in line)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def family(pid: int) -> list[int]:
    """Return a process with all that it started, directly or not."""
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return [pid, *(one for child in below for one in family(int(child)))]


ASKED = {int(signal.SIGTERM), int(signal.SIGINT)}


@pytest.mark.skipif(sys.platform != "linux", reason="an image is Linux")
def test_an_image_holds_signals_back_until_the_first_line() -> None:
    """As process 1 of a container Python would never hear of one that came before."""
    shown = subprocess.run(
        [
            *entrypoint(),
            sys.executable,
            "-c",
            "print(open('/proc/self/status').read())",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    mask = next(line for line in shown.stdout.splitlines() if "SigBlk" in line)
    for number in ASKED:
        assert int(mask.split()[1], 16) >> (number - 1) & 1


@pytest.mark.skipif(sys.platform != "linux", reason="an image is Linux")
@pytest.mark.parametrize("role", ["supervisor", "worker", "up"])
def test_nothing_that_an_image_starts_goes_on_holding_signals_back(
    system: System, tmp_path: Path, role: str
) -> None:
    """Neither the process nor its children; one that was asked to end before its first line ends as ever."""
    with Starting(system, role, tmp_path, before=entrypoint()) as starting:
        starting.until_said("ready")
        held = {pid: blocked(pid) & ASKED for pid in family(starting.process.pid)}
        assert len(held) >= (4 if role == "up" else 1)
        assert set(map(len, held.values())) == {0}, held
        assert starting.leave() == 0, starting.log.read_text()
    (again := tmp_path / "again").mkdir()
    with Starting(system, role, again, before=entrypoint()) as starting:
        while not blocked(starting.process.pid) >= ASKED:
            assert starting.process.poll() is None
        assert starting.leave() == 0, starting.log.read_text()
        assert "ready" not in starting.log.read_text()
