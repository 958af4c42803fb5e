"""Real workers and supervisors on servers of their own: started, killed and read as an operator would."""

import asyncio
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

from tasklore.runtime.servers.child import GUARDED
from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.command import environment, tasklore
from tests.acceptance.process_pool import Forked, can_fork, fork

ROOT = Path(__file__).resolve().parents[2]
AGENTS = ROOT / "tests" / "acceptance" / "agents"
PROBE = str(AGENTS / "probe.py")
NAPPER = str(AGENTS / "napper.py")
BUDGET = "tasklore.workers.agents.budget"

#: Seconds a process may take to be ready, or to leave; it needs two, and ten on a slow machine that does other things.
PATIENCE_S = 90.0

#: What makes processes quick enough to be watched: the pauses are short, the promises are the same.
QUICK = {
    "TASKLORE_ACK_WAIT_S": "2",
    "TASKLORE_RETRY_BASE_S": "0.05",
    "TASKLORE_RETRY_CAP_S": "0.2",
    "TASKLORE_LOG_FORMAT": "json",
    "TASKLORE_GRACE_S": "20",
}

#: What a busy machine must not shorten: in the time that is shipped a look into a memory that works may be given up,
#: and then the answer is computed, or told as unfenced. Who asks what happens without a store says the time itself.
PATIENT = {
    "TASKLORE_MEMORY_BUDGET_MS": "10000",
    "TASKLORE_LEDGER_DEADLINE_MS": "10000",
}


class Served:
    """One `tasklore` process that serves; in a `with` it is killed at the end, and also when pytest dies."""

    def __init__(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        log: Path,
        python: Path | None = None,
    ) -> None:
        """Start it, with the packages of *python*'s environment in place of this checkout's if that is given."""
        self._log = log
        env = {**os.environ, "PYTHONPATH": str(ROOT), **QUICK, **PATIENT, **environment}
        if python is not None:
            del env["PYTHONPATH"]
            self._process, said = _started(
                arguments, env, log, python=python, cwd=log.parent
            )
        elif can_fork(env):
            self._process, said = _forked(arguments, env, log)
        else:
            self._process, said = _started(arguments, env, log)
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=(said,), daemon=True).start()
        self.http = ""
        self.api = ""

    def _listen(self, said: IO[bytes]) -> None:
        with said:
            for line in said:
                self._said.put(line.decode())
        self._said.put("")

    def ready(self) -> Self:
        """Return once the process takes work."""
        while line := self._said.get(timeout=PATIENCE_S):
            if line.startswith("api http="):
                self.api = line.removeprefix("api http=").strip()
            if line.startswith("ready http="):
                self.http = line.removeprefix("ready http=").strip()
                return self
        raise AssertionError(f"the process ended before it was ready:\n{self.log()}")

    def get(self, path: str) -> tuple[int, Any]:
        """Return status and body of a page; JSON is read."""
        try:
            with urllib.request.urlopen(self.http + path, timeout=PATIENCE_S) as reply:  # noqa: S310 - our own address
                status = reply.status
                body = reply.read()
        except urllib.error.HTTPError as error:
            status = error.code
            body = error.read()
        return status, json.loads(body) if body.startswith(b"{") else body.decode()

    def metric(self, name: str) -> float:
        """Return the sum of every series whose name and labels begin with *name*."""
        lines = [
            line
            for line in self.get("/metrics")[1].splitlines()
            if line.startswith(name)
        ]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def await_metric(self, name: str, value: float) -> None:
        """Return once the series that begin with *name* add up to *value*: they are counted after what they count."""
        _await(
            lambda: self.metric(name) == value,
            lambda: f"{name} is {self.metric(name):g}, not {value:g}",
        )

    def await_agents(self, number: int) -> None:
        """Return once this supervisor knows *number* agents or more."""

        def is_known() -> bool:
            detail = self.get("/readyz")[1]["checks"]["reports"]["detail"]
            return int(detail.removesuffix(" agents known")) >= number

        _await(is_known, lambda: f"fewer than {number} agents are known")

    def log(self) -> str:
        """Return what it wrote to stderr."""
        return self._log.read_text(errors="replace")

    def await_log(self, event: str) -> None:
        """Return once it has logged *event*."""
        _await(lambda: event in self.log(), lambda: f"no {event!r} in:\n{self.log()}")

    def kill(self) -> None:
        """Kill it with SIGKILL, as a crash would."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(PATIENCE_S)
        if (
            isinstance(self._process, subprocess.Popen)
            and self._process.stdin is not None
        ):
            self._process.stdin.close()

    def terminate(self) -> None:
        """Ask it to leave, and return at once."""
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Freeze it with SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def wait(self) -> int:
        """Return the status with which it left."""
        return self._process.wait(PATIENCE_S)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def _await(is_so: Callable[[], bool], complaint: Callable[[], str]) -> None:
    gives_up_at = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < gives_up_at, complaint()
        time.sleep(0.02)


def _forked(
    arguments: list[str], env: Mapping[str, str], log: Path
) -> tuple[Forked, IO[bytes]]:
    said, output = os.pipe()
    with (
        log.open("ab") as errors,
        Path(os.devnull).open("rb") as nothing,
        os.fdopen(output, "wb") as out,
    ):
        process = fork(
            arguments,
            env,
            ROOT,
            (nothing.fileno(), out.fileno(), errors.fileno()),
            leads=True,
        )
    return process, os.fdopen(said, "rb")


def _started(
    arguments: list[str],
    env: Mapping[str, str],
    log: Path,
    *,
    python: Path = Path(sys.executable),
    cwd: Path = ROOT,
) -> "tuple[subprocess.Popen[bytes], IO[bytes]]":
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [
                "/bin/sh",
                "-c",
                GUARDED,
                "sh",
                str(python),
                "-m",
                "tasklore",
                *arguments,
            ],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    assert process.stdout is not None
    return process, process.stdout


class System:
    """A pair of servers, and the processes that a test starts on it; at the end of a `with` these are killed."""

    def __init__(self, servers: EmbeddedServers, folder: Path) -> None:
        self.servers = servers
        self.folder = folder
        (folder / "runs").mkdir(exist_ok=True)
        self._processes: list[Served] = []

    def worker(
        self, *references: str, options: tuple[str, ...] = (), **settings: Any
    ) -> Served:
        """Start a worker for *references* (all that tests use when none) and return at once; see `Served.ready`."""
        return self._start(
            ["worker", *(references or (BUDGET, PROBE, NAPPER)), *options], settings
        )

    def supervisor(self, **settings: Any) -> Served:
        """Start a supervisor and return at once."""
        return self._start(["supervisor"], settings)

    def operations(self, **settings: Any) -> Served:
        """Start a process that serves operations and return at once; `Served.api` is their address."""
        return self._start(["supervisor", "--operations"], settings)

    def installed(self, python: Path, *arguments: str, **settings: Any) -> Served:
        """Start a process of what is installed for *python*, in the folder of the system, and return at once."""
        return self._start(list(arguments), settings, python=python)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a command that is given on these servers, and to the last process that serves the API."""
        served = [one.api for one in self._processes if one.api]
        return environment(
            TASKLORE_NATS_URL=self.servers.nats_url,
            TASKLORE_REDIS_URL=self.servers.redis_url,
            **({"TASKLORE_API_URL": served[-1]} if served else {}),
        )

    def command(
        self, *words: str, cwd: Path | None = None, stdin: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run `tasklore` on these servers to its end."""
        return tasklore(
            *words, cwd=cwd or self.folder, env=self.environment, stdin=stdin
        )

    def runs(self, label: str) -> list[float]:
        """Return when each run of *label* began, in seconds since 1970."""
        path = self.folder / "runs" / label
        return (
            [float(line) for line in path.read_text().split()] if path.exists() else []
        )

    def close(self) -> None:
        """Kill every process."""
        for process in self._processes:
            process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(
        self,
        arguments: list[str],
        settings: Mapping[str, Any],
        python: Path | None = None,
    ) -> Served:
        environment = {
            "TASKLORE_NATS_URL": self.servers.nats_url,
            "TASKLORE_REDIS_URL": self.servers.redis_url,
            "PROBE_RUNS": str(self.folder / "runs"),
            "TASKLORE_PIPELINE_ROOTS": f"{tempfile.gettempdir()}{os.pathsep}{ROOT}",
        } | {f"TASKLORE_{name.upper()}": str(value) for name, value in settings.items()}
        log = self.folder / f"{len(self._processes)}-{arguments[0]}.log"
        process = Served(arguments, environment, log, python)
        self._processes.append(process)
        return process


@contextmanager
def running_system(folder: Path) -> Iterator[System]:
    """Run a pair of servers with their data below *folder*; at the end nothing of the system is left."""
    servers = EmbeddedServers(folder / "servers")
    asyncio.run(servers.start())
    try:
        with System(servers, folder) as system:
            yield system
    finally:
        asyncio.run(servers.stop())
