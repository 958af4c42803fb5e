"""Processes of ours that cost no import: forked, with arguments and environment of their own, from one that is warm.

Most of what a command costs is importing the same modules again, and the suite starts hundreds. A forked process has
its own process id, dies of the same signals and ends with the same statuses as one started from nothing; what is about
the start itself is tested with `python -m tasklore`.

Orders come over a Unix socket, one connection a process: a JSON line with the three standard files attached. The
answers are the process id at once, and the status when it has ended.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tasklore.runtime.servers.child import GUARDED

ROOT = Path(__file__).resolve().parents[2]

#: Seconds to import everything once on a busy machine; it takes three.
_WARM_WITHIN_S = 90.0
#: What `tasklore` imports when it serves, and what it puts off until something needs it: half a second of a processor
#: for `openai` alone. Whatever else a command needs is imported by its own process.
_WARM = (
    "tasklore.__main__",
    "tasklore.commands.app",
    "tasklore.commands.direct",
    "tasklore.commands.operations.run",
    "tasklore.commands.pictures.tasks",
    "tasklore.commands.render.views",
    "tasklore.commands.stores",
    "tasklore.commands.up.serve",
    "tasklore.workers.wiring",
    "tasklore.supervisor.wiring",
    "tasklore.supervisor.operator_process",
    "tasklore.supervisor.http.operations_app",
    "tasklore.supervisor.http.server",
    "tasklore.workers.pydantic_agents",
    "tasklore.commands.agents.check",
    "tasklore.commands.up.worker_setup",
    "anyio._backends._asyncio",
    "bpe_openai",
    "genai_prices.data",
    "jinja2.meta",
    "jinja2.sandbox",
    "openai",
    "pydantic.v1",
    "uvicorn.lifespan.off",
    "uvloop",
)
#: Variables that an interpreter heeds before it runs a line of ours.
_EARLY = ("PYTHON", "LC_", "LANG", "LD_", "TZ")
_PR_SET_PDEATHSIG = 1
_LARGEST_ORDER = 1 << 20


class Forked:
    """A process that was ordered, to be watched and signalled as one of `subprocess`."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self._line = line
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return its status, negative for a signal as `subprocess` has it; None while it runs."""
        if self._status is None and select.select([self._line], [], [], 0)[0]:
            self._read()
        return self._status

    def wait(self, timeout: float) -> int:
        """Return its status once it has ended; raises TimeoutExpired after *timeout* seconds."""
        if self._status is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(["tasklore"], timeout)
            self._read()
        assert self._status is not None
        return self._status

    def send_signal(self, number: int) -> None:
        """Send it a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _read(self) -> None:
        said = self._line.recv(64)
        self._line.close()
        # The warm process is gone, and with it all that it forked.
        self._status = int(said) if said else -signal.SIGKILL


def can_fork(environment: Mapping[str, str]) -> bool:
    """Tell whether *environment* asks nothing of the interpreter itself that it is not doing already."""
    return _early(environment) == _early({**os.environ, "PYTHONPATH": str(ROOT)})


def fork(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    files: tuple[int, int, int],
    *,
    leads: bool,
) -> Forked:
    """Run `tasklore` with *arguments*; *files* are its standard files, and it *leads* a session of its own or not."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(_WARM_WITHIN_S)
    line.connect(_warm_process(os.getpid()))
    order = {
        "arguments": list(arguments),
        "environment": dict(environment),
        "cwd": str(cwd),
        "leads": leads,
    }
    body = json.dumps(order).encode() + b"\n"
    assert len(body) < _LARGEST_ORDER
    socket.send_fds(line, [body[:1]], files)
    line.sendall(body[1:])
    pid = b""
    while not pid.endswith(b"\n"):
        pid += line.recv(1)
    return Forked(int(pid), line)


def _early(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in environment.items() if name.startswith(_EARLY)
    }


_lock = threading.Lock()


def _warm_process(us: int) -> str:
    """Return where the warm process of this one listens; it is started when it is first needed."""
    with _lock:
        return _started(us)


@cache
def _started(_us: int) -> str:
    folder = tempfile.mkdtemp(prefix="tasklore-warm-")
    where = f"{folder}/orders"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(where)
    listener.listen(64)
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TASKLORE_")
    }
    command = [
        sys.executable,
        "-P",
        "-m",
        "tests.acceptance.process_pool",
        str(listener.fileno()),
    ]
    # Never waited for: the end of this pipe, which is ours, makes the guard kill it.
    subprocess.Popen(
        ["/bin/sh", "-c", GUARDED, "sh", *command],
        cwd=ROOT,
        env={**kept, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=(listener.fileno(),),
        start_new_session=True,
    )
    listener.close()
    return where


def serve(listener: socket.socket) -> Callable[[], None]:
    """Fork what is ordered until the guard kills us; in a forked process, return what it is to run."""
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    lines: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([listener, wake], [], [])
        if wake in readable:
            os.read(wake, 4096)
            _tell_ends(lines)
        if listener not in readable:
            continue
        line, _ = listener.accept()
        order, files = _read_order(line)
        pid = os.fork()
        if pid == 0:
            for descriptor in (listener, line, *lines.values()):
                descriptor.close()
            os.close(wake)
            signal.set_wakeup_fd(-1)
            os.close(woken)
            return lambda: _become(order, files)
        for descriptor in files:
            os.close(descriptor)
        lines[pid] = line
        line.sendall(b"%d\n" % pid)


def _read_order(line: socket.socket) -> tuple[dict[str, Any], list[int]]:
    body, files, _, _ = socket.recv_fds(line, 1, 3)
    while not body.endswith(b"\n"):
        body += line.recv(_LARGEST_ORDER)
    return json.loads(body), list(files)


def _tell_ends(lines: dict[int, socket.socket]) -> None:
    while lines:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        line = lines.pop(pid)
        with contextlib.suppress(OSError):
            line.sendall(b"%d" % os.waitstatus_to_exitcode(status))
        line.close()


def _become(order: dict[str, Any], files: list[int]) -> None:
    """Be the process that was ordered, to its end."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if order["leads"]:
        os.setsid()
    for number, descriptor in enumerate(files):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["tasklore", *order["arguments"]]
    importlib.import_module("tasklore.__main__").main()


if __name__ == "__main__":
    for module in _WARM:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))()
