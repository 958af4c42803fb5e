"""What each command shows on one system, and how it refuses each wrong input."""

import asyncio
import json
import os
import re
import shlex
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from redis.asyncio import Redis

from tasklore.memory.webhooks.outbox import WebhookOutbox, WebhookState
from tests.acceptance.command import tasklore
from tests.architecture.tree import ROOT
from tests.golden.command_line import Ended, run, standing_in
from tests.golden.normal import Normaliser
from tests.golden.scenario import FILES, SCENARIO, Step
from tests.golden.seeded import COMMANDED, seeded_system
from tests.golden.wrong_inputs import commands
from tests.servers import PATIENCE_S
from tests.unit.supervisor.webhooks import a_webhook

#: What runs until it is stopped.
SERVING = frozenset({"demo", "supervisor", "up", "worker"})
#: What has to be a process: that, also where it refuses to begin, and what imports the
#: agent that it wrote.
_PROCESSES = SERVING | {"init"}
#: Addresses at which nobody listens, and what waits for somebody there.
_AWAY = {
    "TASKLORE_API_URL": "http://127.0.0.1:1",
    "TASKLORE_OPERATIONS_URL": "http://127.0.0.1:1",
    "TASKLORE_NATS_URL": "nats://127.0.0.1:1",
    "TASKLORE_REDIS_URL": "redis://127.0.0.1:1",
}
_WAITING = frozenset({"bootstrap"})
#: Seconds between two looks at what another process makes.
_LOOK_S = 0.05


def give_until(give: Callable[[], Ended], pattern: str) -> Ended:
    """Give a command again until *pattern* is in what it prints; return how it then ended."""
    gives_up_at = time.monotonic() + PATIENCE_S
    while True:
        ended = give()
        if re.search(pattern, ended.stdout, re.DOTALL):
            return ended
        assert time.monotonic() < gives_up_at, f"no {pattern!r}: {ended}"
        time.sleep(_LOOK_S)


class Shell:
    """Somebody who gives commands in *folder*, one after another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._normal = Normaliser(
            (str(place), f"<{name}>")
            for name, place in (
                ("folder", folder),
                ("system", folder.parent),
                ("checkout", ROOT),
            )
        )
        self._kept: dict[str, str] = {}

    def show(self, step: Step) -> dict[str, Any]:
        """Return how *step* ended and what it printed."""
        ended = self._until(step)
        shown: Any
        try:
            printed = json.loads(ended.stdout)
        except ValueError:
            shown = self._normal.printed(ended.stdout).splitlines()
        else:
            for name, place in step.keep.items():
                self._kept[name] = _at(printed, place)
            shown = self._normal.value(printed, hides=step.hides)
        return {
            "command": step.line,
            "exit": ended.code,
            "stdout": shown,
            "stderr": self._first_line(ended),
        }

    def refuse(self, line: str) -> dict[str, Any]:
        """Return how the wrong *line* ended, and the first line of what it said of it."""
        ended = self._give(line)
        return {"exit": ended.code, "stderr": self._first_line(ended)}

    def fill(self, line: str) -> str:
        """Return *line* with what was kept in the place of its names."""
        for name, text in self._kept.items():
            line = line.replace(f"{{{name}}}", text)
        return line

    def _until(self, step: Step) -> Ended:
        return give_until(lambda: self._give(step.line, step.stdin), step.until)

    def _give(self, line: str, stdin: str = "") -> Ended:
        return self.run(shlex.split(os.path.expandvars(self.fill(line))), stdin)

    def run(self, words: Sequence[str], stdin: str = "") -> Ended:
        """Run `tasklore` with *words*: in this process, but for what has to be one of its own."""
        if words[0] not in _PROCESSES:
            return run(words, stdin)
        done = tasklore(*words, cwd=self._folder, env=dict(os.environ), stdin=stdin)
        return Ended(done.returncode, done.stdout, done.stderr)

    def _first_line(self, ended: Ended) -> str:
        return self._normal.text(ended.stderr.partition("\n")[0])


def _at(value: Any, place: str) -> str:
    """Return what lies in *value* at a place as `Step` has it."""
    path, _, pattern = place.partition(" ")
    for part in path.split("."):
        value = value[int(part) if isinstance(value, list) else part]
    found = re.search(pattern or ".+", str(value))
    assert found is not None, f"no {place} in {value}"
    return found[0]


def show_commands(folder: Path) -> dict[str, dict[str, Any]]:
    """Return by the first word of the commands what they show, and how they refuse, on a system below *folder*."""
    place = folder / "place"
    for name, text in FILES.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    shown: dict[str, dict[str, Any]] = defaultdict(lambda: {"shown": [], "refused": {}})
    with seeded_system(folder, *COMMANDED) as system:
        asyncio.run(put_webhooks(system.processes.servers.redis_url))
        variables = system.processes.environment | {
            "COLUMNS": "100",
            "TASKLORE_API_URL": system.api,
            "TASKLORE_API_KEY": system.keys["commander"],
            "TASKLORE_OPERATIONS_URL": system.operations,
            "LOGNAME": "operator",
            "TASKLORE_DATA_DIR": str(place / ".tasklore"),
        }
        with standing_in(place, variables):
            shell = Shell(place)
            for noun, steps in SCENARIO.items():
                shown[noun]["shown"] = [shell.show(step) for step in steps]
            for command in commands():
                for line in command.lines():
                    refused = shown[line.split()[0]]["refused"]
                    refused[line] = shell.refuse(line)
            with mock.patch.dict(os.environ, _AWAY):
                for noun, steps in SCENARIO.items():
                    if noun not in _WAITING:
                        shown[noun]["without servers"] = {
                            step.line: shell.refuse(step.line) for step in steps
                        }
    return dict(shown)


async def put_webhooks(redis_url: str) -> None:
    """Put one webhook that waits and one that was given up into the outbox."""
    now = datetime.now(UTC)
    async with Redis.from_url(redis_url) as redis:
        outbox = WebhookOutbox(redis, deadline_s=PATIENCE_S)
        for number, outcome in ((1, "waits"), (2, "failed")):
            await outbox.put(a_webhook(f"https://example.com/{number}", number), now)
            kept = (await outbox.read(f"msg_{number}"))[0]
            assert kept is not None
            state = WebhookState(
                now + timedelta(days=1), now - timedelta(hours=2), 7, "answered 503"
            )
            await outbox.note(kept, outcome, state, now)  # type: ignore[arg-type]  # a word of those above
