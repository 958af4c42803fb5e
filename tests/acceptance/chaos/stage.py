"""What profiles that ask for one worker's behaviour stand on: a system of their own, and a look at its processes."""

import asyncio
import json
import os
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.external_program import Outside
from tests.acceptance.system import Served, System

AGENT = "SteadyAgent"
STEADY = str(Path(__file__).parent / "agents" / "steady.py")

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@asynccontextmanager
async def stage() -> AsyncIterator[System]:
    """Give a system on servers of its own, NATS with its monitoring page; nothing of it is left."""
    with tempfile.TemporaryDirectory(
        prefix="tasklore-chaos-", ignore_cleanup_errors=True
    ) as folder:
        async with EmbeddedServers(Path(folder) / "servers", monitor=True) as servers:
            with System(servers, Path(folder)) as system:
                yield system


def pid_of(process: Served) -> int:
    """Return the process id of *process*: the shell that started it became it."""
    return process._process.pid


def cpu_s(pid: int) -> float:
    """Return the seconds of CPU that a process has used, in its own code and in the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def resident_mb(pid: int) -> float:
    """Return the memory of a process that is in RAM, in MB (10**6 bytes)."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES / 1e6


def open_files(pid: int) -> int:
    """Return how many file descriptors a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


async def varz(system: System) -> dict[str, Any]:
    """Return what the NATS server tells of itself: connections, messages in, memory."""

    def read() -> dict[str, Any]:
        address = f"{system.servers.nats.monitor_url}/varz"
        with urllib.request.urlopen(address, timeout=10) as reply:  # noqa: S310 - our own server
            return dict(json.load(reply))

    return await asyncio.to_thread(read)


async def page(process: Served, path: str) -> tuple[int, Any]:
    """Return status and body of a page of *process* without holding up the profile."""
    return await asyncio.to_thread(process.get, path)


def warnings_in(log: str) -> list[dict[str, Any]]:
    """Return every line of a JSON log that is a warning or worse."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [
        line for line in lines if line.get("level") in ("warning", "error", "critical")
    ]


async def submit(
    program: Outside, task: str, parameters: dict[str, Any], **fields: Any
) -> str:
    """Assign *task* to the steady agent and return its task id."""
    return await program.assign(AGENT, task, parameters, **fields)


async def poll(
    holds: Callable[[], Awaitable[bool]], within_s: float, every_s: float = 0.02
) -> float:
    """Return the seconds until *holds*, asked again and again; TimeoutError after *within_s*."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with asyncio.timeout(within_s):
        while not await holds():  # noqa: ASYNC110 - what a server or a page says makes no event here
            await asyncio.sleep(every_s)
    return loop.time() - started
