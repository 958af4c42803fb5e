"""The forge: a process that has imported all a worker needs, and forks one in milliseconds whenever it is told to.

A forked worker dies like any other; only its start costs nothing. Orders come as JSON lines over one pipe, answers go
out as JSON lines on stdout: `{"forked": pid, "ticket": n}`, `{"ready": pid}` by the worker itself, `{"died": pid,
"status": n}`. The forge has one thread and no event loop, so that nothing is forked halfway.
"""

import gc
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

import uvloop

from tasklore.contracts.errors import TaskloreError
from tasklore.runtime import logs
from tasklore.runtime.settings import Settings
from tasklore.supervisor.wiring import run_supervisor
from tasklore.workers.loading import load_agents
from tasklore.workers.wiring import run_worker
from tests.acceptance.chaos import sabotage

#: Serves until the end and returns the status of the process: takes the agents, and where answers go.
Serve = Callable[[list[str], int], int]

#: `supervisor` for what serves as one instead of as a worker.
ROLE_VARIABLE = "CHAOS_ROLE"

#: Status of a worker that could not be served, as `tasklore worker` has it.
_FAILED = 1


def main(orders: int, references: list[str], serve: Serve | None = None) -> None:
    """Fork what is ordered through the pipe *orders* until it closes; then nothing that was forked is left.

    What is forked does *serve*, `serve_agents` when None.
    """
    for reference in references:
        load_agents(reference)
    gc.collect()
    gc.freeze()
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    say({"forge": os.getpid()})
    alive: set[int] = set()
    unread = b""
    while True:
        readable, _, _ = select.select([orders, wake], [], [])
        if wake in readable:
            os.read(wake, 4096)
            _bury(alive)
        if orders in readable:
            chunk = os.read(orders, 65_536)
            if not chunk:
                break
            *lines, unread = (unread + chunk).split(b"\n")
            for line in lines:
                order = json.loads(line)
                pid = _fork(
                    order, references, (orders, wake, woken), serve or serve_agents
                )
                alive.add(pid)
                say({"forked": pid, "ticket": order["ticket"]})
    for pid in alive:
        os.kill(pid, signal.SIGKILL)


def _bury(alive: set[int]) -> None:
    """Tell of every child that has died."""
    while alive:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        alive.discard(pid)
        say({"died": pid, "status": os.waitstatus_to_exitcode(status)})


def _fork(
    order: dict[str, Any], references: list[str], ours: tuple[int, ...], serve: Serve
) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = _FAILED
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in ours:
            os.close(descriptor)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        answers = os.dup(sys.stdout.fileno())
        os.dup2(log, sys.stdout.fileno())
        os.dup2(log, sys.stderr.fileno())
        os.environ.update(order["environment"])
        sabotage.commit(order["sabotage"])
        status = serve(references, answers)
    except Exception:  # noqa: BLE001 - told in its log: nobody else would
        traceback.print_exc()
    finally:
        # What the parent would do at its end is not the child's business.
        sys.stderr.flush()
        os._exit(status)


def serve_agents(references: list[str], answers: int) -> int:
    """Serve as `tasklore worker` does, or `tasklore supervisor`, and say when work is taken."""
    agents = [agent for reference in references for agent in load_agents(reference)]
    try:
        settings = Settings.load()
        logs.configure(settings.log_level, settings.log_format)
        ready: Callable[[str], None] = lambda _address: say(  # noqa: E731
            {"ready": os.getpid()}, answers
        )
        is_supervisor = os.environ.get(ROLE_VARIABLE) == "supervisor"
        serving = (
            run_supervisor(settings, on_ready=ready)
            if is_supervisor
            else run_worker(agents, settings, on_ready=ready)
        )
        uvloop.run(serving)
    except TaskloreError as error:
        sys.stderr.write(f"{error}\n")
        return _FAILED
    return 0


def say(answer: dict[str, Any], to: int = 1) -> None:
    """Answer whoever gives the orders."""
    # A pipe takes a line of this size whole or not at all, whoever else writes to it.
    os.write(to, json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
