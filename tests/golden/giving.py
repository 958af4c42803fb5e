"""Whoever gives the commands of pages, as they stand there, on one system; and what each prints."""

import asyncio
import os
import re
import shlex
import socket
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.acceptance.command import environment, tasklore
from tests.architecture.page_code import find_blocks
from tests.architecture.tree import name_of
from tests.golden.command_line import Ended, standing_in
from tests.golden.consoles import (
    ABOVE,
    FOLDER,
    HOST,
    KEY,
    ShownCommand,
    fits,
    pages,
    put_output,
    read_commands,
)
from tests.golden.guides import (
    AGENTS_OF_PAGES,
    GUIDES,
    NOT_GIVEN,
    PROJECT,
    SERVED,
    Block,
    Given,
    Guide,
)
from tests.golden.normal import Normaliser
from tests.golden.seeded import Seeded, seeded_system
from tests.golden.showing import Shell, give_until, put_webhooks

#: What a command says that has to ask a person, where there is none.
_ASKS = "not a terminal: pass --yes to confirm"
#: Pages whose commands are given on tasks in trouble: tests/acceptance/test_troubles.py.
_IN_TROUBLE = frozenset({"my-task-failed.md", "what-waits-and-why.md"})
#: Pages that build up an agent and a system of their own, from an empty folder: tests/acceptance/test_quickstart.py.
_FROM_NOTHING = frozenset({"quickstart.md"})
#: Lines that are written of a long output, at its beginning and at its end.
_HEAD = 10
_TAIL = 2


@dataclass(frozen=True)
class Printed:
    """A command of *page*, and the lines that it printed, with the page's words for folder and machine."""

    page: Path
    command: ShownCommand
    lines: tuple[str, ...]
    normal: Normaliser


def held_pages() -> list[Path]:
    """Return the pages whose commands are given here: those of GUIDES first, in their order."""
    found = [page for page in pages() if page.name not in _IN_TROUBLE | _FROM_NOTHING]
    order = list(GUIDES)
    return sorted(
        found,
        key=lambda page: (
            order.index(name_of(page)) if name_of(page) in order else len(order)
        ),
    )


def is_given(line: str) -> bool:
    """Return whether the command *line* is given here."""
    plain = line.removeprefix(".venv/bin/")
    return not any(re.match(pattern, plain) for pattern in NOT_GIVEN)


def give_commands(folder: Path) -> Iterator[Printed]:
    """Give the commands of all pages on one system below *folder*; yield what each printed."""
    place = folder / "place"
    place.mkdir()
    for page in held_pages():
        _write_files(page, place)
    made = tasklore("init", PROJECT, cwd=place, env=environment())
    assert made.returncode == 0, made.stderr
    (place / PROJECT).rename(place / SERVED)
    agents = [
        str(place / one) if (place / one).is_file() else one for one in AGENTS_OF_PAGES
    ]
    with seeded_system(folder, *agents) as system:
        asyncio.run(put_webhooks(system.processes.servers.redis_url))
        with standing_in(place, _variables(system, place)):
            for page in held_pages():
                yield from _Reader(page, place).give()


def _variables(system: Seeded, place: Path) -> dict[str, str]:
    return system.processes.environment | {
        "COLUMNS": "100",
        "PWD": str(place),
        "TASKLORE_API_URL": system.api,
        "TASKLORE_API_KEY": system.keys["commander"],
        "TASKLORE_OPERATIONS_URL": system.operations,
        "LOGNAME": "operator",
        "TASKLORE_DATA_DIR": str(place / ".tasklore"),
    }


def _write_files(page: Path, place: Path) -> None:
    for name, content in GUIDES.get(name_of(page), Guide()).files.items():
        if isinstance(content, Block):
            blocks = find_blocks(page.read_text("utf-8"), content.language)
            content = blocks[content.number]
        _write_file(place / name, content)


def _write_file(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


class _Reader:
    """A person with *page* who types its commands in *place*."""

    def __init__(self, page: Path, place: Path) -> None:
        self._page = page
        self._place = place
        self._guide = GUIDES.get(name_of(page), Guide())
        self._shell = Shell(place)
        self._normal = Normaliser()

    def give(self) -> Iterator[Printed]:
        """Give each command of the page that is given here."""
        for step in self._guide.before:
            self._shell.show(step)
        for command in read_commands(self._page.read_text("utf-8")):
            if not is_given(command.line):
                continue
            given = self._guide.given.get(command.line, Given())
            for step in given.before:
                self._shell.show(step)
            for name, text in given.writes.items():
                _write_file(self._place / name, text)
            ended = give_until(
                partial(self._type, command.line, given.stdin), given.until
            )
            yield Printed(self._page, command, self._lines(ended), self._normal)

    def _type(self, line: str, stdin: str) -> Ended:
        plain, _, target = line.removeprefix(".venv/bin/").partition(" > ")
        filled = self._fill(plain)
        _, *words = shlex.split(os.path.expandvars(filled))
        ended = self._shell.run(words, stdin)
        if _ASKS in ended.stderr:
            # At a terminal they are asked, and say yes.
            ended = self._shell.run([*words, "--yes"], stdin)
        if not target:
            return ended
        (self._place / self._fill(target)).write_text(ended.stdout, "utf-8")
        return Ended(ended.code, "", ended.stderr)

    def _fill(self, line: str) -> str:
        for word, text in self._guide.words.items():
            line = re.sub(rf"\b{word}\b", self._shell.fill(text), line)
        return line

    def _lines(self, ended: Ended) -> tuple[str, ...]:
        said = f"{ended.stdout}{ended.stderr}"
        for words, name in (
            (str(self._place), FOLDER),
            (str(self._place.parent), ABOVE),
            (socket.gethostname(), HOST),
        ):
            said = said.replace(words, name)
        said = re.sub(r"tlk_[\w-]{20,}", KEY, said)
        return tuple(line.rstrip() for line in said.splitlines())


def write_outputs(folder: Path) -> None:
    """Put behind each command what it prints on a system below *folder*, where that does not fit what is there."""
    by_page: dict[Path, list[Printed]] = defaultdict(list)
    for printed in give_commands(folder):
        by_page[printed.page].append(printed)
    for page, given in by_page.items():
        text = page.read_text("utf-8")
        for one in reversed(given):
            if not fits(one.command.shown, one.lines, one.normal):
                text = put_output(text, one.command, _cut(one.lines))
        page.write_text(text, "utf-8")


def _cut(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return *lines* without the middle of many."""
    many = len(lines) > _HEAD + _TAIL + 2
    return (*lines[:_HEAD], "...", *lines[-_TAIL:]) if many else lines
