"""Count the files and functions that one warm question passes: `python -m benchmarks.ask_trace [--list] [--new-words]`.

A supervisor and a worker run with a profile hook on every thread. The question is asked over one HTTP connection, twice
before it counts, so that imports, connections, the reading of its words and the remembered result are there. It is then
asked some times more, and what counts is what each of these passed, and what is not passed all the time without it:
what a clock began meanwhile is not counted.
With `--new-words` each question says the same in words that were never read. With `--list` the modules of each process
follow, in the order in which the question reaches them.
"""

import argparse
import asyncio
import http.client
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.processes import ROOT, NotMeasuredError, Worker, running
from tasklore.runtime.servers.embedded import EmbeddedServers

#: A file of the project and a function in it.
Place = tuple[str, str]

#: Installed as `sitecustomize` of both processes: SIGUSR1 starts to record, SIGUSR2 writes what was passed since.
_HOOK = """
import json, os, signal, sys, threading

root, out, passed, is_on = {root!r}, {out!r}, {{}}, False

def record(frame, event, argument):
    code = frame.f_code
    if is_on and event == "call" and code.co_filename.startswith(root):
        name = code.co_filename[len(root) + 1 :]
        if name.startswith("tasklore/") and not code.co_name.startswith("<"):
            passed.setdefault((name, code.co_qualname), len(passed))

def write(text):
    place = os.path.join(out, f"{{os.getpid()}}.json")
    with open(place + ".part", "w") as file:
        file.write(text)
    os.replace(place + ".part", place)

def start(*_):
    global is_on
    passed.clear()
    is_on = True
    sys.setprofile(record)
    write("null")

def stop(*_):
    global is_on
    is_on = False
    sys.setprofile(None)
    write(json.dumps([list(one) for one in passed]))

threading.setprofile(record)
signal.signal(signal.SIGUSR1, start)
signal.signal(signal.SIGUSR2, stop)
"""
_WORDS = "Check my budget: the limit is 50000 and I have spent 42000."
#: The same question in other words, as many as are asked.
_NEW_WORDS = (
    "limit 50k, spent 42,000: how is my budget?",
    "How is my budget doing? $50,000.00 limit, forty-two thousand spent so far.",
    "My budget, please: limit fifty thousand, 42k spent.",
    "I have spent 42000 of a limit of 50,000. How is my budget?",
    "budget check: 42 thousand spent, limit 50 thousand",
)
#: Seconds that a process may take to be ready, and that one answer may take.
_READY_S = 30.0
_ANSWER_S = 10.0
#: Seconds in which what is left behind an answer is done: acknowledgements, and rows that are written a tenth later.
_TAIL_S = 0.2
#: Times of as much, without a question, that say what a clock does in each.
_QUIET = 8


async def trace(words: Sequence[str]) -> dict[str, list[Place]]:
    """Return what each of *words* passes in the supervisor and in the worker, in the order of the last one."""
    with tempfile.TemporaryDirectory(prefix="ask-trace-") as folder:
        (Path(folder) / "sitecustomize.py").write_text(
            _HOOK.format(root=str(ROOT), out=folder), "utf-8"
        )
        async with EmbeddedServers() as servers:
            return await _trace(Path(folder), servers, words)


async def _trace(
    folder: Path, servers: EmbeddedServers, words: Sequence[str]
) -> dict[str, list[Place]]:
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
        traced = {"supervisor": supervisor, "worker": worker}
        await asyncio.gather(*map(_ready, traced.values()))
        place = urlsplit(_find_api(supervisor))
        api = http.client.HTTPConnection(place.netloc, timeout=_ANSWER_S)
        for _ in range(2):
            await asyncio.to_thread(_ask, api, _WORDS)

        async def record(asked: str | None) -> list[list[Place]]:
            await _switch(signal.SIGUSR1, folder, traced.values())
            if asked is not None:
                await asyncio.to_thread(_ask, api, asked)
            await asyncio.sleep(_TAIL_S)
            return await _switch(signal.SIGUSR2, folder, traced.values())

        quiet = [await record(None) for _ in range(_QUIET)]
        every = [await record(asked) for asked in words]
        return {
            name: [
                place
                for place in _in_each([one[number] for one in every])
                if place not in _in_each([one[number] for one in quiet])
            ]
            for number, name in enumerate(traced)
        }


def _in_each(passed: Sequence[Sequence[Place]]) -> list[Place]:
    """Return what is in each of *passed*, in the order of the last one."""
    times = Counter(place for one in passed for place in one)
    return [place for place in passed[-1] if times[place] == len(passed)]


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


def _ask(api: http.client.HTTPConnection, words: str) -> None:
    head = {"Content-Type": "application/json"}
    api.request("POST", "/v1/requests", json.dumps({"text": words}), head)
    answer = api.getresponse()
    body = answer.read()
    if answer.status != http.client.OK or b"8000" not in body.replace(b",", b""):
        raise NotMeasuredError(f"{words!r} was answered {answer.status}: {body!r}")


async def _switch(
    number: signal.Signals, folder: Path, processes: Collection[Worker]
) -> list[list[Place]]:
    """Give *number* to each of *processes*, and return what each then wrote."""
    files = [folder / f"{one.process.pid}.json" for one in processes]
    for one, file in zip(processes, files, strict=True):
        file.unlink(missing_ok=True)
        one.process.send_signal(number)
    async with asyncio.timeout(_ANSWER_S):
        while not all(file.is_file() for file in files):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
    written = [json.loads(file.read_text("utf-8")) or [] for file in files]
    return [[(name, function) for name, function in one] for one in written]


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
    parser.add_argument(
        "--new-words", action="store_true", help="ask in words that were never read"
    )
    given = parser.parse_args()
    words = _NEW_WORDS if given.new_words else (_WORDS,) * len(_NEW_WORDS)
    passed = asyncio.run(trace(words))
    for name, found in passed.items():
        print(f"{name}: {_count(found)}")
        rooms = Counter(file.split("/")[1] for file, _ in found)
        print(f"  functions by room: {dict(rooms.most_common())}")
        if given.list:
            for file in dict.fromkeys(file for file, _ in found):
                functions = [function for other, function in found if other == file]
                print(f"  {file}: {', '.join(functions)}")
    both = [*{one for found in passed.values() for one in found}]
    print(f"together: {_count(both)} (asked <= 75, <= 340)")


def _count(found: Sequence[Place]) -> str:
    return f"{len({file for file, _ in found})} files, {len(found)} functions"


if __name__ == "__main__":
    main()
