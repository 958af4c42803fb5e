"""The `tasklore` command as a person runs it: in a directory, with an environment, to its end or until a signal."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tests.acceptance.process_pool import can_fork, fork
from tests.interrupts import hear_interrupts

ROOT = Path(__file__).resolve().parents[2]

#: Seconds that any command may take on a busy machine; most need less than one, the whole demo twenty.
PATIENCE_S = 180.0


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without any setting of ours, with *variables*."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TASKLORE_")
    }
    return {**inherited, "PYTHONPATH": str(ROOT), **variables}


def tasklore(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run the command to its end."""
    env = dict(env or environment())
    if can_fork(env):
        return _forked(arguments, cwd, env, stdin)
    return subprocess.run(
        [sys.executable, "-P", "-m", "tasklore", *arguments],
        cwd=cwd,
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def _forked(
    arguments: tuple[str, ...], cwd: Path, env: Mapping[str, str], stdin: str
) -> "subprocess.CompletedProcess[str]":
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as said,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(stdin.encode())
        given.seek(0)
        process = fork(
            arguments,
            env,
            cwd,
            (given.fileno(), said.fileno(), errors.fileno()),
            leads=False,
        )
        try:
            status = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            raise
        outputs = []
        for file in (said, errors):
            file.seek(0)
            outputs.append(file.read().decode())
    return subprocess.CompletedProcess(arguments, status, *outputs)


class Running:
    """A command that runs until it is stopped; what it writes to stderr goes to `errors`."""

    def __init__(
        self, *arguments: str, cwd: Path, env: Mapping[str, str], errors: Path
    ) -> None:
        self.errors = errors
        with errors.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tasklore", *arguments],
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                preexec_fn=hear_interrupts,
            )

    def line(self) -> str:
        """Return the next line of its stdout; "" when it has ended."""
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        assert readable, f"silent for {PATIENCE_S} s: {self.errors.read_text('utf-8')}"
        return self.process.stdout.readline().decode()

    def end(self, signal_number: int) -> int:
        """Send a signal, and return the status with which the command ended."""
        self.process.send_signal(signal_number)
        return self.process.wait(PATIENCE_S)

    def rest(self) -> str:
        """Return what is left of its stdout after its end."""
        assert self.process.stdout is not None
        return self.process.stdout.read().decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()


def processes_in(folder: Path) -> dict[int, str]:
    """Return the command line of every process working in *folder* or with temporary files there, by its id."""
    wanted = f"TMPDIR={folder}".encode()
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            # Valkey overwrites its environment with its title, but works in its data directory.
            is_ours = wanted in (directory / "environ").read_bytes() or str(
                (directory / "cwd").readlink()
            ).startswith(str(folder))
            command = (
                (directory / "cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
            )
        except OSError:
            continue
        # One that has ended and was not waited for yet has no command line left.
        if is_ours and command:
            found[int(directory.name)] = command
    return found


def await_none_in(folder: Path) -> dict[int, str]:
    """Return {} once no process works in *folder*, or those that still do when patience ends."""
    give_up_at = time.monotonic() + PATIENCE_S
    while (left := processes_in(folder)) and time.monotonic() < give_up_at:
        select.select([], [], [], 0.02)
    return left


def await_text(path: Path, text: str) -> str:
    """Return what *path* holds once *text* is in it, or when patience ends."""
    give_up_at = time.monotonic() + PATIENCE_S
    while (
        text not in (said := path.read_text("utf-8")) and time.monotonic() < give_up_at
    ):
        select.select([], [], [], 0.02)
    return said
