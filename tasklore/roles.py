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

from contracts.errors import Unreachable
from runtime.child import GUARDED
from tasklore.exits import OK, Refused

#: What a role prints on stdout, followed by its HTTP address, once it takes work.
READY = "ready http="

#: Seconds a role has to become ready; it needs two or three, on a busy machine more.
READY_WITHIN_S = 60.0
#: Seconds that a role may need to leave beyond the grace period it gives to running tasks.
LEAVE_S = 5.0
#: Bytes that an agent may print in one line while it is imported.
_LONGEST_LINE = 1024 * 1024
_CHUNK = 64 * 1024
#: Seconds to wait for a process that was killed.
_REAP_S = 5.0


class Role:
    """One process of *name* that runs `tasklore` with *arguments*; `start` again after it ended.

    *log* takes what it writes to stderr, None shares ours. *grace_s* is what it may take to finish after SIGTERM.
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
        self._arguments = arguments
        self._environment = environment
        self._log = log
        self._grace_s = grace_s
        self._process: Process | None = None
        self._copying: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return once the role is ready; `address` is then where it serves health and metrics.

        Raises:
            Refused: it ended instead, having said why on its stderr; with its exit code.
            Unreachable: it was not ready within `READY_WITHIN_S`.
        """
        self.kill()
        process = self._process = await self._spawn()
        if process.stdout is None:
            raise Unreachable(f"{self.name} has no output to be heard by")
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                while line := await process.stdout.readline():
                    if line.startswith(READY.encode()):
                        self.address = line.decode().removeprefix(READY).strip()
                        self._copying = asyncio.create_task(_copy(process.stdout, self._log))
                        return
                    _write(line, self._log)
                status = await process.wait()
        except TimeoutError as error:
            self.kill()
            raise Unreachable(f"{self.name} was not ready within {READY_WITHIN_S:.0f} s; see what it logged") from error
        raise Refused(f"{self.name} ended with status {status} before it was ready", status if status > OK else 1)

    async def ended(self) -> int:
        """Return the status with which the process ended, once it has; negative is the number of a signal."""
        return await self._running().wait()

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
        """Kill the role and everything that it started."""
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.stdin is not None:
            # The end of the pipe makes the guard leave, with whatever the role left in its process group.
            process.stdin.close()

    async def _spawn(self) -> Process:
        command = (sys.executable, "-P", "-m", "tasklore", *self._arguments)
        return await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            GUARDED,
            "sh",
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **_import_path(), **self._environment},
            # Ctrl-C in a terminal must reach only us: roles leave before their servers do.
            start_new_session=True,
            limit=_LONGEST_LINE,
        )

    def _running(self) -> Process:
        if self._process is None:
            raise Unreachable(f"{self.name} was not started yet")
        return self._process


async def _copy(source: asyncio.StreamReader, log: IO[bytes] | None) -> None:
    """Pass on what the user's agents print: a pipe that nobody reads would stop them."""
    while chunk := await source.read(_CHUNK):
        _write(chunk, log)


def _write(chunk: bytes, log: IO[bytes] | None) -> None:
    target = log or sys.stderr.buffer
    target.write(chunk)
    target.flush()


def _import_path() -> dict[str, str]:
    """Return what a child needs to find this package when it is imported from a folder instead of installed."""
    ours = str(Path(__file__).resolve().parent.parent)
    if ours in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        return {}
    return {"PYTHONPATH": os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH"))))}
