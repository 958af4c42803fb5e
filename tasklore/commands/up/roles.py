"""A role of the house (supervisor, worker) as a child process that says when it is ready and cannot outlive us."""

import asyncio
import contextlib
import os
import signal
import sys
import sysconfig
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tasklore.commands.exits import FAILED, OK, Aborted
from tasklore.contracts.errors import Unreachable
from tasklore.runtime.servers.child import GUARDED

#: What a role prints on stdout, followed by its HTTP address, once it takes work.
READY = "ready http="
#: What a supervisor prints before that: where it serves its API.
API = "api http="

#: Seconds a role has to become ready; it needs two or three, on a busy machine more.
READY_WITHIN_S = 60.0
#: Seconds that a role may need to leave beyond the grace period it gives to running tasks.
LEAVE_S = 5.0
#: Bytes that an agent may print in one line while it is imported.
_LONGEST_LINE = 1024 * 1024
_CHUNK = 64 * 1024
#: Seconds to wait for a process that was killed.
_REAP_S = 5.0


class RoleProcess:
    """One process of *name* that runs `tasklore.commands.up` with *arguments*; `start` again after it ended.

    *log* takes its stderr, None shares ours. *grace_s* is its time to finish after SIGTERM.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        log: IO[bytes] | None = None,
        grace_s: float = 30.0,
    ) -> None:
        self.name = name
        self.address = ""
        self.api: str | None = None
        self._arguments = arguments
        self._environment = environment
        self._log = log
        self._grace_s = grace_s
        self._process: Process | None = None
        self._guard: int | None = None
        self._output: asyncio.ReadTransport | None = None
        self._lines = asyncio.StreamReader()
        self._copying: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return once the role is ready; `address` is then where it serves health and metrics.

        Raises:
            Aborted: it ended instead, having said why on its stderr; with its exit code.
            Unreachable: it was not ready within `READY_WITHIN_S`.
        """
        self.kill()
        process = await self._spawn()
        ready = asyncio.create_task(self._hear_address())
        ended = asyncio.create_task(process.wait())
        try:
            await asyncio.wait(
                {ready, ended},
                timeout=READY_WITHIN_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if ready.done() and (address := ready.result()) is not None:
                self.address = address
                self._copying = asyncio.create_task(self._copy_output())
                return
            if ready.done():
                # Its output ends a moment before it does.
                await asyncio.wait({ended}, timeout=_REAP_S)
        finally:
            # `wait` reports its end afterwards.
            ready.cancel()
            ended.cancel()
            await asyncio.gather(ready, ended, return_exceptions=True)
        if process.returncode is None:
            self.kill()
            raise Unreachable(
                f"{self.name} was not ready within {READY_WITHIN_S:.0f} s; see what it logged"
            )
        status = process.returncode
        raise Aborted(
            f"{self.name} {end_of(status)} before it was ready",
            status if status > OK else FAILED,
        )

    def __str__(self) -> str:
        """Return its name, with the id of its process, which is a part of the id of a worker."""
        process = self._process
        return self.name if process is None else f"{self.name} (process {process.pid})"

    @property
    def status(self) -> int | None:
        """The status with which the process ended; None while it runs, or before it was started."""
        return self._process.returncode if self._process is not None else None

    async def wait(self) -> int:
        """Return the status with which the process ended, once it has; negative is the number of a signal."""
        if self._process is None:
            raise Unreachable(f"{self.name} was not started yet")
        return await self._process.wait()

    async def stop(self) -> None:
        """Ask the role to finish and leave, and kill it when it stays; does nothing when it does not run."""
        process = self._process
        if process is None:
            return
        try:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._grace_s + LEAVE_S):
                        await process.wait()
        finally:
            self.kill()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REAP_S):
                await process.wait()

    def kill(self) -> None:
        """Kill the role and everything that it started; does nothing when it never ran."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        # The end of the pipe makes the guard kill what the role left behind, and itself.
        guard = self._guard
        self._guard = None
        if guard is not None:
            os.close(guard)
        output = self._output
        self._output = None
        if output is not None:
            output.close()

    async def _spawn(self) -> Process:
        # Pipes of our own: asyncio would take the process for alive until the guard has closed its ends too.
        guarded, self._guard = os.pipe()
        heard, output = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                GUARDED,
                "sh",
                *(sys.executable, "-P", "-m", "tasklore.commands.up", *self._arguments),
                stdin=guarded,
                stdout=output,
                stderr=self._log,
                env={**os.environ, **_import_path(), **self._environment},
                # Ctrl-C in a terminal must reach only us: roles leave before their servers do.
                start_new_session=True,
            )
        finally:
            os.close(guarded)
            os.close(output)
        self._lines = asyncio.StreamReader(limit=_LONGEST_LINE)
        self._output, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._lines),
            os.fdopen(heard, "rb", buffering=0),
        )
        return self._process

    async def _copy_output(self) -> None:
        """Pass on the output of the user's agents: a pipe without a reader would stop them."""
        while chunk := await self._lines.read(_CHUNK):
            _write(chunk, self._log)

    async def _hear_address(self) -> str | None:
        """Return the address out of the line that says ready; None when the output ends without one."""
        while line := await self._lines.readline():
            if line.startswith(READY.encode()):
                return line.decode().removeprefix(READY).strip()
            if line.startswith(API.encode()):
                self.api = line.decode().removeprefix(API).strip()
            else:
                _write(line, self._log)
        return None


def end_of(status: int) -> str:
    """Return how a process ended, in words."""
    return (
        f"ended with status {status}" if status >= 0 else f"ended by signal {-status}"
    )


def _write(chunk: bytes, log: IO[bytes] | None) -> None:
    target = log or sys.stderr.buffer
    target.write(chunk)
    target.flush()


def _import_path() -> dict[str, str]:
    """Return what a child needs to find this package when it is imported from a folder instead of installed."""
    ours = str(Path(__file__).resolve().parents[3])
    if ours in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        return {}
    return {
        "PYTHONPATH": os.pathsep.join(
            filter(None, (ours, os.environ.get("PYTHONPATH")))
        )
    }
