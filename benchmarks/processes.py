"""Worker processes under measurement: started, read for CPU time, stopped with everything they started."""

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Seconds a worker may take to stop by itself after SIGTERM before its whole group is killed.
STOP_TIMEOUT_S = 10.0
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class NotMeasuredError(Exception):
    """A row has no figure; the message is the reason that the table shows instead."""


@dataclass(frozen=True)
class Worker:
    """A running worker and the file its output goes to."""

    process: asyncio.subprocess.Process
    log: Path

    def cpu_s(self) -> float:
        """Return the CPU seconds, user and system, spent so far by the worker and all it started."""
        return tree_cpu_s(self.process.pid)

    def ensure_running(self) -> None:
        """Raise `NotMeasuredError` with the end of its output when the worker has ended."""
        if self.process.returncode is not None:
            tail = " / ".join(
                self.log.read_text(errors="replace").strip().splitlines()[-2:]
            )
            raise NotMeasuredError(
                f"worker ended with {self.process.returncode}: {tail[-200:]}"
            )


@contextlib.asynccontextmanager
async def running(
    command: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[Worker]:
    """Run *command* from the root of the project for the time of the block, in a process group of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        log = Path(directory) / "worker.log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield Worker(process, log)
        finally:
            await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        pass
    # Also after a clean end: whatever the worker forked and left behind must not share the cores with the next run.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def tree_cpu_s(pid: int) -> float:
    """Return user plus system CPU seconds of *pid*, its threads and every living descendant."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The name may hold spaces and brackets: the fields start behind its last bracket.
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
            number = int(directory.name)
            children.setdefault(int(fields[1]), []).append(number)
            ticks[number] = int(fields[11]) + int(fields[12])
    total = 0
    waiting = [pid]
    while waiting:
        current = waiting.pop()
        total += ticks.get(current, 0)
        waiting.extend(children.get(current, ()))
    return total / _TICKS_PER_SECOND


@dataclass(frozen=True)
class Finished:
    """What a command cost from start to end."""

    cpu_s: float
    wall_s: float


def run_to_end(
    command: Sequence[str], environment: Mapping[str, str], timeout_s: float
) -> Finished:
    """Run *command* and return its cost, children included; `NotMeasuredError` when it fails or takes longer."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        watchdog = threading.Timer(timeout_s, process.kill)
        watchdog.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        watchdog.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            tail = " / ".join(
                output.read().decode(errors="replace").strip().splitlines()[-2:]
            )
            raise NotMeasuredError(
                f"{' '.join(command[1:4])} ended with {process.returncode}: {tail[-200:]}"
            )
    return Finished(cpu_s=usage.ru_utime + usage.ru_stime, wall_s=wall_s)
