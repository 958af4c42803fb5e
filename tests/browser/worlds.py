"""Worlds in processes of their own, each with its page: killed at the end, started again at the same port on demand."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from tasklore.runtime.servers.child import GUARDED
from tasklore.runtime.servers.claims import free_port

ROOT = Path(__file__).resolve().parents[2]

_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/")


class Shown:
    """A module that serves the page of a world, and prints its address; in a `with` it is killed at the end."""

    def __init__(
        self, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self._arguments = arguments
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            **(environment or {}),
        }
        self.url = ""
        # Not one out of the browser's own, which knocks there while nobody answers, and may come to talk to itself.
        self._start(str(free_port()))

    def _start(self, port: str) -> None:
        self._process = subprocess.Popen(
            [
                "/bin/sh",
                "-c",
                GUARDED,
                "sh",
                sys.executable,
                "-m",
                *self._arguments,
                "--port",
                port,
            ],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := _ADDRESS.search(line):
                self.url = found[0]
                return
        raise AssertionError(
            f"{' '.join(self._arguments)} ended before it served a page"
        )

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def again(self) -> None:
        """Start it again where it was."""
        found = _ADDRESS.search(self.url)
        assert found is not None
        self._start(found[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def scripted(which: str, *options: str) -> Shown:
    """Start a world that does what a script says."""
    return Shown("tests.browser.scripted", which, *options)
