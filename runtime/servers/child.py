"""A server program as a child process that cannot outlive the process which started it.

The child is a shell that forks a guard and then becomes the server. The guard reads a pipe whose only writer is our
process: when we die, however we die, the kernel closes the pipe and the guard kills the server's process group. A
parent-death signal would not do, since Linux ties it to the thread that forked.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path

from tasklore.contracts.errors import ConfigurationError, Unreachable
from tasklore.runtime.servers.claims import HOST, DirectoryLock, free_port

#: Seconds a server has to answer; both need less than 0.1 with little data, Valkey about 5 for a gigabyte of it, and
#: many times that on a machine that others keep busy. One that ends is not waited for.
READY_WITHIN_S = 30.0

#: Seconds a server has to flush and leave after SIGTERM before it is killed.
STOP_WITHIN_S = 10.0

#: Seconds until a silent port is asked again: it may be a stranger's, and our server gone for that reason.
_PROBE_S = 0.5

_POLL_S = 0.005
_LOG_TAIL_LINES = 12
_PORT_ATTEMPTS = 8

#: The guard is a member of the child's process group, so that the kernel cannot hand the group's number to a stranger
#: while the guard lives. A line on the pipe dismisses it, its end makes it kill. It holds nothing else open.
GUARDED = 'exec 3<&0 </dev/null; { read -r _ <&3 || kill -9 -$$; } >/dev/null 2>&1 & exec "$@" 3<&-'


class ServerProcess(ABC):
    """A server on a loopback port of its own, restartable on the same port and data after a kill.

    Objects belong to no event loop: one may be started under one loop and stopped under the next. *data_dir* is created
    when missing and belongs to one live server at a time. Without *port* a free one is chosen at the first start and
    kept. Without *binary* the one that comes with `tasklore[embedded]` is taken, else one on the PATH.
    """

    program: str
    scheme: str
    cure: str

    def __init__(
        self, data_dir: Path, port: int | None = None, binary: Path | None = None
    ) -> None:
        self.data_dir = data_dir.absolute()
        self._port = port
        self._binary = binary
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = DirectoryLock(self.data_dir, self.program)
        self._log_start = 0

    @property
    def port(self) -> int:
        """The port listened on, also while the server is down; raises Unreachable before the first start."""
        if self._port is None:
            raise Unreachable(f"{self.program} was not started yet")
        return self._port

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"{self.scheme}://{HOST}:{self.port}"

    @property
    def log_path(self) -> Path:
        """What the server wrote, all starts one after another."""
        return self.data_dir / "server.log"

    @property
    def is_running(self) -> bool:
        """Whether the process lives; a paused one does."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The server's own process id; raises Unreachable when it does not run."""
        return self._running().pid

    async def start(self) -> None:
        """Return once the server answers; does nothing when it already runs.

        Raises:
            ConfigurationError: The binary is missing or too old, the port is taken, or the data directory is in use.
            Unreachable: The server did not answer within `READY_WITHIN_S`; the message ends with its log.
        """
        if self.is_running:
            return
        self._dismiss_guard()
        try:
            binary = self.find_binary()
            await self._lock.acquire()
            await self._serve(binary)
        except BaseException:
            self.discard()
            raise

    async def stop(self) -> None:
        """End the server with SIGTERM, with SIGKILL when it stays, and free its data directory."""
        process = self._process
        try:
            if process is not None and process.poll() is None:
                process.terminate()
                # A paused process takes SIGTERM only after it is woken.
                process.send_signal(signal.SIGCONT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    await asyncio.to_thread(process.wait, STOP_WITHIN_S)
        finally:
            self.discard()

    def discard(self) -> None:
        """End the server with SIGKILL and free its data directory; for who has no event loop, and needs no data."""
        self.kill()
        self._lock.release()

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would; it is gone on return, its data directory stays ours."""
        process = self._process
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(STOP_WITHIN_S)
        self._dismiss_guard()

    def pause(self) -> None:
        """Freeze the server with SIGSTOP: connections stay open without answers."""
        self._running().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused server go on."""
        self._running().send_signal(signal.SIGCONT)

    def log_tail(self) -> str:
        """Return the last lines that the server wrote since its latest start."""
        with self.log_path.open("rb") as log:
            log.seek(max(self._log_start, self.log_path.stat().st_size - 8_192))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL_LINES:])

    def find_binary(self) -> Path:
        """Return the program to run: the one asked for, else our wheel's, else the first on the PATH.

        Raises:
            ConfigurationError: There is none; the message says what to install.
        """
        candidates = [self._binary] if self._binary else self.candidates()
        for candidate in candidates:
            if candidate.is_file() and os.access(candidate, os.X_OK):
                return candidate.absolute()
        where = f" at {str(self._binary)!r}" if self._binary else ""
        raise ConfigurationError(f"there is no {self.program}{where}; {self.cure}")

    @abstractmethod
    def candidates(self) -> list[Path]:
        """Return where the program may be, best first."""

    @abstractmethod
    def command(self, port: int) -> list[str]:
        """Return the arguments for serving on *port*, after writing whatever file they name."""

    @abstractmethod
    async def probe(self, port: int) -> None:
        """Return when the server on *port* is ours and answers.

        Raises:
            OSError: The port is not open yet.
            EOFError: The port is open but does not answer as our server does, not yet perhaps.
            ConfigurationError: It is ours and too old.
        """

    async def _serve(self, binary: Path) -> None:
        if self._port is not None:
            if not await self._serve_on(self._port, binary):
                raise ConfigurationError(
                    f"port {self._port} for {self.program} is taken by another program; "
                    "choose another one, or none to get a free one"
                )
            return
        for _ in range(_PORT_ATTEMPTS):
            port = free_port()
            if await self._serve_on(port, binary):
                self._port = port
                return
        raise ConfigurationError(
            f"{self.program} found no free port in {_PORT_ATTEMPTS} attempts"
        )

    async def _serve_on(self, port: int, binary: Path) -> bool:
        """Launch on *port* and return True once ready, False when the port turned out to be taken."""
        self._launch([str(binary), *self.command(port)])
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                while self.is_running:
                    try:
                        async with asyncio.timeout(_PROBE_S):
                            await self.probe(port)
                    except (OSError, EOFError):
                        await asyncio.sleep(_POLL_S)
                    else:
                        return True
        except TimeoutError as error:
            raise Unreachable(
                f"{self.program} does not answer after {READY_WITHIN_S:.0f} s; its log ends with:\n{self.log_tail()}"
            ) from error
        tail = self.log_tail()
        status = self._process.returncode if self._process else None
        self._dismiss_guard()
        if "address already in use" in tail.lower():
            return False
        raise ConfigurationError(
            f"{self.program} ended with status {status} while starting; its log ends with:\n{tail}"
        )

    def _launch(self, command: list[str]) -> None:
        with self.log_path.open("ab") as log:
            self._log_start = log.tell()
            # The lock is handed down: a directory stays locked for as long as a server lives in it.
            self._process = subprocess.Popen(  # noqa: S603 - our own script and a binary that was looked up
                ["/bin/sh", "-c", GUARDED, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.data_dir,
                pass_fds=self._lock.descriptors,
                # Ctrl-C in a terminal must reach only us: clients leave before their servers do.
                start_new_session=True,
            )

    def _dismiss_guard(self) -> None:
        process = self._process
        self._process = None
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError):
                os.write(process.stdin.fileno(), b"\n")
            process.stdin.close()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise Unreachable(f"{self.program} does not run")
        return self._process
