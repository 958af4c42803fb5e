"""The quickstart, followed as it stands there: its files are written, its commands given, their output compared."""

import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.acceptance.command import PATIENCE_S, ROOT, Running, environment, tasklore
from tests.acceptance.system import PATIENT
from tests.architecture.page_code import find_blocks
from tests.golden.consoles import ShownCommand, fits, read_commands
from tests.golden.normal import Normaliser

pytestmark = pytest.mark.timeout(400)

_TEXT = (ROOT / "docs" / "guide" / "quickstart.md").read_text("utf-8")
_COMMANDS = list(read_commands(_TEXT))
_AGENT, _TESTS = find_blocks(_TEXT, "python")
_TEXTS = find_blocks(_TEXT, "text")
(_IMPORT,) = find_blocks(_TEXT, "py")
_RIGHT = "return Split(each=total / dinner.people)"
_WRONG = "return Split(each=total / dinner.persons)"
#: The folder in which the page's author stands.
_FOLDER = "/tmp/dinner"  # noqa: S108 - a word of the page, no file is made there
#: How long a run took, which the list leaves out of what took less than a millisecond.
_RAN = re.compile(r"(completed +\d+ \w+) +\d+ m?s\b")
_TASK_ID = re.compile(r"\br-[0-9a-f]{32}\b")
_READY = re.compile(r"\b(\w+)=(http://\S+)")


class _Follower:
    """A person in an empty folder who does what the page says, step by step."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._project = folder
        self._left = list(_COMMANDS)
        self._last_task = ""

    def make_project(self) -> None:
        """Give the first command, and go on in the folder that it makes."""
        self.give("tasklore init")
        self._project = self._folder / "dinner"
        self.write_agent(_AGENT)
        (self._project / "test_dinner.py").write_text(f"{_IMPORT}\n{_TESTS}", "utf-8")

    def write_agent(self, text: str) -> None:
        """Replace the agent's file."""
        (self._project / "dinner.py").write_text(text, "utf-8")

    def run_tests(self) -> str:
        """Return what pytest says of the project's tests."""
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q"],
            cwd=self._project,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    @contextmanager
    def running_system(self, shown: ShownCommand | None = None) -> Iterator[None]:
        """Run `tasklore up` as the page does, compare its first line with *shown*, and end it by Ctrl-C."""
        with Running(
            "up",
            "--agents",
            "./dinner.py",
            cwd=self._project,
            env=environment(**PATIENT),
            errors=self._folder / "errors",
        ) as running:
            ready = running.line()
            self.api = dict(_READY.findall(ready))["api"]
            if shown is not None:
                self._demand(shown, ready)
            yield
            assert running.end(signal.SIGINT) == 0

    def give(self, start: str) -> None:
        """Give the next command of the page, which begins with *start*, and compare what it prints."""
        command = self.take(start)
        self._demand(command, self._print(command))

    def look(self, start: str) -> None:
        """Give the next command, which only reads, until it prints what the page shows: hits are counted later."""
        command = self.take(start)
        deadline = time.monotonic() + PATIENCE_S
        while not self._fits(command, printed := self._print(command)):
            assert time.monotonic() < deadline, f"$ {command.line}\n{printed}"

    def _print(self, command: ShownCommand) -> str:
        _, *words = shlex.split(_TASK_ID.sub(self._last_task, command.line))
        done = tasklore(*words, cwd=self._project, env=environment(COLUMNS="100"))
        if found := _TASK_ID.search(done.stdout):
            self._last_task = found[0]
        said = f"{done.stdout}{done.stderr}".replace(str(self._project), _FOLDER)
        return _RAN.sub(r"\1", said)

    def post(self) -> None:
        """Send what the page sends with curl, and compare the answer."""
        line, answer = next(one for one in _TEXTS if "$ curl" in one).splitlines()
        _, _, address, _, header, _, body = shlex.split(line)
        name, _, value = header.partition(": ")
        answered = httpx.post(
            address.replace("$API", self.api),
            content=body,
            headers={name: value},
            timeout=PATIENCE_S,
        )
        assert answered.text == answer

    def take(self, start: str) -> ShownCommand:
        """Return the next command of the page, which begins with *start*."""
        command = self._left.pop(0)
        assert command.line.startswith(start), command.line
        return command

    def demand_end(self) -> None:
        """Return when no command of the page is left."""
        assert self._left == []

    def _demand(self, command: ShownCommand, printed: str) -> None:
        assert self._fits(command, printed), f"$ {command.line}\n{printed}"

    def _fits(self, command: ShownCommand, printed: str) -> bool:
        lines = [line.rstrip() for line in printed.splitlines()]
        return fits(command.shown, lines, Normaliser())


def test_each_step_of_the_quickstart_shows_what_the_page_shows(tmp_path: Path) -> None:
    """From an empty folder to a mended agent, in the page's order; ids, times and addresses aside."""
    follower = _Follower(tmp_path)
    follower.make_project()
    assert "3 passed" in follower.run_tests()
    follower.give("tasklore agents check")
    with follower.running_system(follower.take("tasklore up")):
        for _ in range(5):
            follower.give("tasklore ask")
        follower.post()
        follower.look("tasklore tasks list")
        follower.look("tasklore results list")
        follower.give("tasklore memory tell")
        follower.look("tasklore memory search")
        follower.give("tasklore console")
    follower.write_agent(_AGENT.replace(_RIGHT, _WRONG))
    with follower.running_system():
        follower.give("tasklore ask")
    follower.write_agent(_AGENT)
    with follower.running_system():
        follower.give("tasklore dead-letters redrive")
        follower.give("tasklore trace")
    follower.demand_end()
