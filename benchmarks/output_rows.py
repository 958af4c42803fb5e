"""Output of running tasks over HTTP: the first word after a pause, many streams at once, and reconnects at any place.

Client, supervisors, workers and servers share this machine, so that the figures of the crowd are those of its cores.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import urlsplit

from benchmarks.processes import NotMeasuredError, Worker, running
from benchmarks.profiles import SHORT, Profile
from benchmarks.table import Row, missing, percentile

#: Words a second of each stream.
RATE = 50
_FIRST = "output, first word after a pause"
_TOGETHER = "output, {} streams of 50 words a second"
_AGAIN = "reconnects"
_READY_S = 60.0
_STREAM_S = 300.0
#: Streams that are opened at once, and how often each is tried.
_OPENING = asyncio.Semaphore(16)
_TRIES = 10


@dataclass
class _Served:
    apis: list[str]
    processes: dict[str, Worker] = field(default_factory=dict)

    def cpu_s(self) -> dict[str, float]:
        return {name: process.cpu_s() for name, process in self.processes.items()}


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, or one that says why there is no figure."""
    is_short = profile is SHORT
    streams, seconds, reconnects = (200, 10, 500) if is_short else (1000, 60, 10_000)
    try:
        async with _serve(nats_url, redis_url) as served:
            first = await _measure_first(served, 50 if is_short else 300)
            again = await _measure_reconnects(served, reconnects)
            together = await _measure_together(served, streams, seconds)
    except (NotMeasuredError, TimeoutError, OSError) as error:
        return [missing(_FIRST, str(error) or "no answer in time")]
    return [first, again, together]


async def _measure_first(served: _Served, words: int) -> Row:
    """Measure from `emit` to the client, for words that come 100 ms apart."""
    task_id = await _send(served.apis[0], words=words, pause_ms=100, times=True)
    took_ms: list[float] = []
    async for kind, data, _ in _events(served.apis[0], task_id):
        if kind == "text":
            took_ms += [
                (time.time_ns() - int(word)) / 1e6 for word in data["text"].split()
            ]
    return Row(
        _FIRST,
        p50_ms=percentile(took_ms, 0.5),
        p99_ms=percentile(took_ms, 0.99),
        compared=f"p95 {percentile(took_ms, 0.95):.2f} ms; asked 10 ms at most",
        how=f"emit to SSE client, {len(took_ms)} of {words} words",
    )


async def _measure_together(served: _Served, streams: int, seconds: int) -> Row:
    """Measure *streams* at once; every word of each is looked at."""
    words = RATE * seconds
    begin_at = time.time() + 5 + streams / 25
    pace = {"words": words, "pause_ms": 1000 / RATE, "begin_at": round(begin_at, 3)}
    ids = [await _send(served.apis[0], **pace) for _ in range(streams)]
    expected = "".join(f"{number} " for number in range(words))

    async def read(task_id: str) -> bool:
        text = ""
        seen = ""
        last = ""
        while seen != "done":
            async for kind, data, name in _events(served.apis[0], task_id, last):
                seen = kind
                last = name
                text += data["text"] if kind == "text" else ""
        return text == expected

    reading = [asyncio.create_task(read(task_id)) for task_id in ids]
    await asyncio.sleep(max(0.0, begin_at - time.time()))
    before = served.cpu_s()
    started = time.perf_counter()
    own = time.process_time()
    whole = sum(await asyncio.gather(*reading))
    took_s = time.perf_counter() - started
    used = {name: (cpu - before[name]) / took_s for name, cpu in served.cpu_s().items()}
    used["client"] = (time.process_time() - own) / took_s
    cores = ", ".join(f"{name} {share:.2f}" for name, share in used.items())
    return Row(
        _TOGETHER.format(streams),
        tasks_per_s=whole * words / took_s,
        seconds=took_s,
        compared=f"{streams - whole} of {streams} not whole; asked 0",
        how=f"{seconds} s of words; words/s under tasks/s; cores: {cores}",
    )


async def _measure_reconnects(served: _Served, count: int) -> Row:
    """Read one text again and again from random places, a third of them at the other supervisor."""
    rng = random.Random(1)
    words = 500
    task_id = await _send(served.apis[0], words=words, pause_ms=5)
    pieces: list[tuple[str, str]] = [("0.0.0", "")]
    async for kind, data, name in _events(served.apis[0], task_id):
        if kind == "text":
            pieces.append((name, data["text"]))
    whole = "".join(text for _, text in pieces)
    wrong = 0
    took_ms = []
    left = count
    parts = {
        name: "".join(text for _, text in pieces[place + 1 :])
        for place, (name, _) in enumerate(pieces)
    }
    # A place inside of an event is any word.
    ends = [f"1.1.{number}" for number in range(1, words)]
    parts |= {
        name: "".join(f"{number} " for number in range(place, words))
        for place, name in enumerate(ends, 1)
    }
    names = sorted(parts)

    async def come_back() -> None:
        nonlocal wrong, left
        while left > 0:
            left -= 1
            api = served.apis[rng.randrange(3) == 0]
            after = rng.choice(names)
            started = time.perf_counter()
            text = ""
            async for kind, data, _ in _events(api, task_id, after):
                text += data["text"] if kind == "text" else ""
            took_ms.append((time.perf_counter() - started) * 1000)
            wrong += text != parts[after]

    started = time.perf_counter()
    await asyncio.gather(*(come_back() for _ in range(16)))
    return Row(
        f"output, {_AGAIN}",
        tasks_per_s=count / (time.perf_counter() - started),
        p50_ms=percentile(took_ms, 0.5),
        p99_ms=percentile(took_ms, 0.99),
        compared=f"{wrong} of {count} not byte for byte; asked 0",
        how=f"a text of {len(whole):,} bytes, from random places to its end, a third at another supervisor",
    )


@asynccontextmanager
async def _serve(nats_url: str, redis_url: str) -> AsyncIterator[_Served]:
    servers = {
        "TASKLORE_NATS_URL": nats_url,
        "TASKLORE_REDIS_URL": redis_url,
        "TASKLORE_LOG_LEVEL": "error",
    }
    servers |= {
        "TASKLORE_API_RATE": "1000000",
        "TASKLORE_API_BURST": "100000",
        "TASKLORE_SLOTS": "1024",
    }
    servers |= {"TASKLORE_SUPERVISOR_ID": "bench-output"}
    house = (sys.executable, "-m", "tasklore")
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(
            running((*house, "worker", "benchmarks.agents.teller"), servers)
        )
        await _line(worker, "ready http=")
        found = _Served([], {"worker": worker})
        for number in (1, 2):
            supervisor = await stack.enter_async_context(
                running((*house, "supervisor"), servers)
            )
            await _line(supervisor, "ready http=")
            found.apis.append(await _line(supervisor, "api http="))
            found.processes[f"supervisor {number}"] = supervisor
        yield found


async def _line(process: Worker, mark: str) -> str:
    """Return the rest of the line that begins with *mark*, once *process* has printed it."""
    async with asyncio.timeout(_READY_S):
        while True:
            for one, _ in pairwise(
                [*process.log.read_text(errors="replace").splitlines(), ""]
            ):
                if one.startswith(mark):
                    return one.removeprefix(mark)
            process.ensure_running()
            await asyncio.sleep(0.05)


async def _send(api: str, **parameters: object) -> str:
    """Send a task and return its id."""
    body = json.dumps(
        {
            "agent_id": "TellerAgent",
            "task": "tell",
            "parameters": parameters,
            "wait_seconds": 0,
        }
    )
    reader, writer = await _request(api, "POST", "/v1/tasks", body)
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
    answer = json.loads(await reader.readexactly(length))
    writer.close()
    if "task_id" not in answer:
        raise NotMeasuredError(str(answer))
    return str(answer["task_id"])


async def _events(
    api: str, task_id: str, after: str = ""
) -> AsyncIterator[tuple[str, dict[str, str], str]]:
    """Yield kind, data and id of each event of a task."""
    async with asyncio.timeout(_STREAM_S):
        reader, writer = await _open(
            api, task_id, f"Last-Event-ID: {after}\r\n" if after else ""
        )
        try:
            while size := int(await reader.readline(), 16):
                for block in (
                    (await reader.readexactly(size + 2))[:-2].decode().split("\n\n")
                ):
                    fields = dict(
                        line.split(": ", 1)
                        for line in block.split("\n")
                        if ": " in line
                    )
                    if "data" in fields:
                        yield fields["event"], json.loads(fields["data"]), fields["id"]
        finally:
            writer.close()


async def _open(
    api: str, task_id: str, more: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open the events of a task, and again where the supervisor has no room for a moment."""
    async with _OPENING:
        for _ in range(_TRIES):
            reader, writer = await _request(
                api, "GET", f"/v1/tasks/{task_id}/output", "", more
            )
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            if " 200 " in head:
                return reader, writer
            writer.close()
            await asyncio.sleep(1)
        raise NotMeasuredError(head)


async def _request(
    api: str, method: str, path: str, body: str, more: str = ""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = urlsplit(api)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    kind = "Content-Type: application/json\r\n" if body else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: {place.netloc}\r\n{kind}{more}Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body.encode())
    return reader, writer
