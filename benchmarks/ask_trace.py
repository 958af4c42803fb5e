"""Count the files and functions that one warm `ask` passes: `python -m benchmarks.ask_trace [--list]`.

A supervisor and a worker run with a profile hook that a signal switches on and off. The question is asked once in other
words before it counts, so that imports, connections and the remembered result are there. With `--list` the modules of
each process follow, in the order in which the question reaches them.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.processes import ROOT, NotMeasuredError, Worker, running
from tasklore.runtime.servers.embedded import EmbeddedServers

#: Installed as `sitecustomize` of both processes: SIGUSR1 starts recording, SIGUSR2 writes what was passed.
_HOOK = """
import json, os, signal, sys, threading

root, out, passed = {root!r}, {out!r}, {{}}

def record(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root):
        name = code.co_filename[len(root) + 1 :]
        if name.startswith("tasklore/") and not code.co_name.startswith("<"):
            passed.setdefault((name, code.co_qualname), len(passed))

def start(*_):
    passed.clear()
    sys.setprofile(record)
    threading.setprofile(record)

def stop(*_):
    sys.setprofile(None)
    threading.setprofile(None)
    with open(os.path.join(out, f"{{os.getpid()}}.json"), "w") as file:
        json.dump([list(one) for one in passed], file)

signal.signal(signal.SIGUSR1, start)
signal.signal(signal.SIGUSR2, stop)
"""
_WARM = (
    "Check my budget: the limit is 50000 and I have spent 42000.",
    "limit 50k, spent 42,000: how is my budget?",
)
_ASKED = "How is my budget doing? $50,000.00 limit, forty-two thousand spent so far."
#: Seconds that a process may take to be ready, and that one answer may take.
_READY_S = 30.0
_ANSWER_S = 10.0


async def trace() -> dict[str, list[tuple[str, str]]]:
    """Return what a warm question passes in the supervisor and in the worker: files with functions, in their order."""
    with tempfile.TemporaryDirectory(prefix="ask-trace-") as folder:
        _install_hook(Path(folder))
        async with EmbeddedServers() as servers:
            return await _trace(folder, servers)


async def _trace(
    folder: str, servers: EmbeddedServers
) -> dict[str, list[tuple[str, str]]]:
    environment = {
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "TASKLORE_NATS_URL": servers.nats_url,
        "TASKLORE_REDIS_URL": servers.redis_url,
    }
    command = (sys.executable, "-m", "tasklore")
    async with (
        running((*command, "supervisor"), environment) as supervisor,
        running((*command, "worker", "budget"), environment) as worker,
    ):
        await asyncio.gather(_ready(supervisor), _ready(worker))
        environment |= {"TASKLORE_API_URL": _find_api(supervisor)}
        for words in _WARM:
            await _ask(words, environment)
        _signal(signal.SIGUSR1, supervisor, worker)
        await _ask(_ASKED, environment)
        _signal(signal.SIGUSR2, supervisor, worker)
        return {
            name: await _passed(Path(folder, f"{one.process.pid}.json"))
            for name, one in (("supervisor", supervisor), ("worker", worker))
        }


def _install_hook(folder: Path) -> None:
    (folder / "sitecustomize.py").write_text(
        _HOOK.format(root=str(ROOT), out=str(folder)), "utf-8"
    )


async def _ready(process: Worker) -> None:
    async with asyncio.timeout(_READY_S):
        while "ready" not in _text(process.log):
            process.ensure_running()
            await asyncio.sleep(0.05)


def _find_api(supervisor: Worker) -> str:
    line = next(
        one for one in _text(supervisor.log).splitlines() if one.startswith("api http=")
    )
    return line.removeprefix("api http=")


async def _ask(words: str, environment: dict[str, str]) -> None:
    command = (sys.executable, "-m", "tasklore", "ask", words)
    async with asyncio.timeout(_ANSWER_S):
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdout=asyncio.subprocess.DEVNULL,
        )
        if await process.wait() != 0:
            raise NotMeasuredError(f"{words!r} was not answered")


def _signal(number: signal.Signals, *processes: Worker) -> None:
    for one in processes:
        one.process.send_signal(number)


async def _passed(file: Path) -> list[tuple[str, str]]:
    async with asyncio.timeout(_ANSWER_S):
        while not (text := _text(file)).endswith("]"):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.05)
    return [(name, function) for name, function in json.loads(text)]


def _text(file: Path) -> str:
    return file.read_text("utf-8", errors="replace") if file.is_file() else ""


def main() -> None:
    """Print the counts, and with `--list` what was passed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ask_trace", description=__doc__
    )
    parser.add_argument(
        "--list", action="store_true", help="name files and functions, too"
    )
    given = parser.parse_args()
    passed = asyncio.run(trace())
    for name, found in passed.items():
        print(
            f"{name}: {len({file for file, _ in found})} files, {len(found)} functions"
        )
        if given.list:
            for file in dict.fromkeys(file for file, _ in found):
                functions = [function for other, function in found if other == file]
                print(f"  {file}: {', '.join(functions)}")
    both = {one for found in passed.values() for one in found}
    print(
        f"together: {len({file for file, _ in both})} files, {len(both)} functions (asked <= 60, <= 300)"
    )


if __name__ == "__main__":
    main()
