"""What an embedded server claims on this machine: a data directory of its own and a free loopback port."""

import asyncio
import contextlib
import fcntl
import os
import secrets
import socket
import time
from pathlib import Path
from typing import IO

from tasklore.contracts.errors import ConfigurationError

#: Every embedded server listens here and nowhere else.
HOST = "127.0.0.1"

#: Seconds to wait for a directory: servers whose parent was just killed hold theirs for some milliseconds more.
LOCK_WITHIN_S = 1.0

_POLL_S = 0.005
_LOWEST_PORT = 15_000


class DirectoryLock:
    """A claim to *directory* that lasts for as long as this process or a child holding `descriptors` lives."""

    def __init__(self, directory: Path, owner: str) -> None:
        self._directory = directory
        self._owner = owner
        self._file: IO[str] | None = None

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a child process must inherit to share the claim; empty when nothing is claimed."""
        return (self._file.fileno(),) if self._file else ()

    async def acquire(self) -> None:
        """Create the directory when missing and claim it; does nothing when it is ours already.

        Raises:
            ConfigurationError: Another live server has it for longer than `LOCK_WITHIN_S`, or it cannot be written to.
        """
        if self._file is not None:
            return
        file = self._open()
        if not await _lock_in_time(file):
            file.seek(0)
            starter = file.read().strip() or "unknown"
            file.close()
            raise ConfigurationError(
                f"{str(self._directory)!r} is in use by a running {self._owner} (started by process {starter}); "
                "stop that one or choose another data directory"
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        self._file = file

    def release(self) -> None:
        """Give the directory up, for every process that shares the claim."""
        file = self._file
        self._file = None
        if file is not None:
            # Closing alone would not do: the guard of a server that just left may hold it a moment longer.
            fcntl.flock(file, fcntl.LOCK_UN)
            file.close()

    def _open(self) -> IO[str]:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return (self._directory / "lock").open("a+")
        except OSError as error:
            raise ConfigurationError(
                f"cannot write to the data directory {str(self._directory)!r}: {error}"
            ) from error


def free_port() -> int:
    """Return a free loopback port, below the range of outgoing connections.

    From inside that range a client that knocks at a stopped server's port can be given the very same port for its own
    end, connect to itself and keep the server from coming back.
    """
    low = _LOWEST_PORT
    high = _first_outgoing_port()
    choices = (
        [secrets.choice(range(low, high)) for _ in range(64)] if low < high else []
    )
    for port in [*choices, 0]:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return int(probe.getsockname()[1])
    raise ConfigurationError(f"there is no free port on {HOST}")


def _first_outgoing_port() -> int:
    try:
        return int(
            Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()[0]
        )
    except OSError:
        # Linux alone has this file; the range of macOS begins higher, at 49,152.
        return 32_768


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _lock_in_time(file: IO[str]) -> bool:
    deadline = time.monotonic() + LOCK_WITHIN_S
    while not _try_lock(file):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_POLL_S)
    return True
