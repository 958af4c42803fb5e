"""Wrong inputs of every command, made from its help as docs/reference/cli.md has it, and not by hand."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from typer import Typer

from tasklore.commands.app import WRITTEN, app
from tasklore.commands.operations.entries import load_manifest
from tests.architecture.tree import ROOT

#: Commands of no noun that are tried in tests/integration/api_commands and tests/unit.
CLIENTS = frozenset({"api", "completion"})

MANUAL = ROOT / "docs" / "reference" / "cli.md"

_SECTION = re.compile(
    r"^## `tasklore ([^`]+)`\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_POSITIONAL = re.compile(r"([{\[])([^}\]]+)[}\]](?:\.\.\.)?")
#: Names, a placeholder of the value behind one space, and the text, behind two or below.
_OPTION = re.compile(
    r"^  ((?:-\w, )?--[\w-]+(?:, --[\w-]+)*)(?: (<[^>]+>|[^\s<]\S*))?(?:  +(.*))?$"
)
_LEAST = re.compile(r"(\d+)<=x|x>=(\d+)")
_MOST = re.compile(r"x<=(\d+)")

_NAMES = ("no such!", "nosuch")
#: Values that a placeholder cannot stand for: what is no such thing, then what is not
#: there. One that is not listed takes any text.
WRONG: dict[str, tuple[str, ...]] = {
    "<immediate|all>": ("sideways",),
    "<int range>": ("many",),
    "<person|assistant|agent>": ("sideways",),
    "AGENT": ("no such!", "NoAgent"),
    "AGENT.TASK": ("nodot", "NoAgent.task", "NapAgent.nosuch"),
    "AMOUNT": ("much", "-1"),
    "DAYS": ("many", "63"),
    "BROKEN": ("not.json",),
    "DATE": ("someday", "2026-13-45"),
    "DIR": ("missing",),
    "DO": ("sideways",),
    "DOC": ("nosuch",),
    "FIELDS": ("never",),
    "FILE": ("missing.json", "not.json"),
    "FILE|NAME": ("missing.toml", "nosuch"),
    "FILE|STORY": ("./missing.json", "./not.json", "nosuch"),
    "FULL": ("quay",),
    "ID": _NAMES,
    "IMAGE": ("no image!",),
    "JSON": ("{nope", "7"),
    "KEY": ("nosuch",),
    "KIND": ("sideways",),
    "N": ("many",),
    "NAME": ("no such!",),
    "NAME=VALUE": ("novalue", "nosuch=1"),
    "NAMESPACE": ("no such!",),
    "NEW": ("no such!",),
    "PATH": ("nosuch", "likes["),
    "PHASE": ("nosuch",),
    "PLACE": ("nowhere",),
    "PLAN": ("nosuch",),
    "POLICY": ("sideways",),
    "REASON": ("sideways",),
    "REF": ("nosuch_module", "./missing.py"),
    "REF...": ("nosuch_module", "./missing.py"),
    "RESPONSE_FILE": ("missing.md",),
    "REVISION": ("many", "999"),
    "ROLE": ("sideways",),
    "S": ("long",),
    "SCRIPT": ("./missing.py",),
    "SEQUENCE": ("many", "999999"),
    "SESSION": _NAMES,
    "SPAN": ("soon", "-1h"),
    "STATE": ("sideways",),
    "STORY": _NAMES,
    "STORY_DIR": ("missing",),
    "TASK": _NAMES,
    "TEXT": ("",),
    "TIME": ("someday", "2026-13-45T00:00"),
    "URL": ("nowhere",),
    "USER": ("agent/x",),
    "VERSION": ("many", "999"),
    "WHAT": ("sideways",),
    "WHEN": ("someday", "2026-13-45"),
    "WHO": ("nobody", "user:"),
    "ZONE": ("Moon/Base",),
}
#: Placeholders by option, or by command and option, where the one that help shows
#: stands for unlike values; "" takes any text.
_MEANT = {
    "api-key --file": "BROKEN",
    "ask --conversation": "NEW",
    "ask --request-id": "NEW",
    "bootstrap --agent-id": "NEW",
    "cancel --reason": "",
    "pipelines evidence FILE": "",
    "pipelines run --session": "NEW",
    "stories example DIR": "FULL",
    "up --agents": "",
    "up REF": "SCRIPT",
    "up --data-dir": "",
    "--as": "WHO",
    "--note": "",
    "--time-zone": "ZONE",
    "--user": "USER",
}
#: What a required value is where nothing is wrong with it.
_GOOD = {
    "AGENT": "BudgetTrackerAgent",
    "FILE": "kept.json",
    "FILE|NAME": "naps.toml",
    "FILE|STORY": "quay",
    "ID": "once",
    "JSON": '{"approved": true}',
    "KEY": "nothing:1",
    "NAME": "made",
    "PATH": "meta.status",
    "REF...": "budget",
    "SESSION": "kept",
    "STORY": "quay",
    "STORY_DIR": "quay",
    "TASK": "{task}",
    "TEXT": "hello",
    "QUESTION": "lox",
    "VERSION": "1",
    "SEQUENCE": "1",
}
#: The same by command, or by command and the value that is wrong, and then words that
#: let it end soon and change little.
_OF_COMMAND: dict[str, tuple[dict[str, str], str]] = {
    "analyses check": ({"FILE": "quay/state/agent_analysis.json"}, ""),
    "api-key": ({}, "--file made.json"),
    "api-key --approves": ({"NAME": "first"}, "--file made.json"),
    "api-key --file": ({}, ""),
    "api-key --tenant": ({"NAME": "second"}, "--file made.json"),
    "ask": ({"TEXT": "sing me a song"}, ""),
    "k8s agent": ({"NAME": "budget", "--image": "registry.example/budget:1"}, ""),
    "limits check": ({"FILE": "limits.toml"}, ""),
    "memory export": ({"USER": "ana", "FOLDER": "out"}, ""),
    "memory import": ({"USER": "ana", "FILE": "food.json"}, ""),
    "pipelines rerun": ({"--from": "second"}, "--no-wait"),
    "pipelines resume": ({"SESSION": "kept"}, "--no-wait"),
    "pipelines restore": ({"FILE": "own.json"}, "--no-wait"),
    "pipelines run": ({}, "--input ms=20 --no-wait"),
    "stories check": ({"DIR": "quay"}, ""),
    "stories example": ({"DIR": "quay"}, ""),
    "stories load": ({"DIR": "quay"}, ""),
    "webhooks show": ({"ID": "msg_1"}, ""),
}


@dataclass(frozen=True)
class Value:
    """One value that a command takes: *name* is its placeholder, or its option."""

    name: str
    placeholder: str
    is_required: bool
    least: int | None = None
    most: int | None = None

    @property
    def is_option(self) -> bool:
        """Whether it stands behind its name."""
        return self.name.startswith("--")

    def wrong(self, command: str) -> Iterator[str]:
        """Yield what it cannot be at *command*."""
        named = _MEANT.get(self.name, self.placeholder)
        yield from WRONG.get(_MEANT.get(f"{command} {self.name}", named), ())
        if self.least is not None:
            yield str(self.least - 1)
        if self.most is not None:
            yield str(self.most + 1)


@dataclass(frozen=True)
class Command:
    """A command by its words, with all the values that it takes."""

    words: str
    values: tuple[Value, ...]

    def lines(self) -> Iterator[str]:
        """Yield a line for each wrong input: without a required value, and with each wrong value."""
        needed, more = self._needed(self.words)
        for left_out in self.values:
            if left_out.is_required:
                yield self._line({**needed, left_out: ""}, more)
        for value in self.values:
            needed, more = self._needed(f"{self.words} {value.name}")
            for wrong in value.wrong(self.words):
                yield self._line({**needed, value: shlex.quote(wrong)}, more)

    def _needed(self, place: str) -> tuple[dict[Value, str], str]:
        """Return a text for each value that has to be there, and more words, where *place* is wrong."""
        own = _OF_COMMAND.get(place, _OF_COMMAND.get(self.words, ({}, "")))
        good = {"--user": "ana", **own[0]}
        needed = {}
        for value in self.values:
            text = own[0].get(value.name)
            if value.is_required and text is None:
                text = good.get(value.name) or _GOOD[value.placeholder]
            if text is not None:
                # A name in braces is filled in, not typed.
                is_name = re.fullmatch(r"\{\w+\}", text)
                needed[value] = text if is_name else shlex.quote(text)
        return needed, own[1]

    def _line(self, given: dict[Value, str], more: str) -> str:
        words = [self.words]
        words += [text for one, text in given.items() if text and not one.is_option]
        words += [more] if more else []
        # By `=`, as a value may begin with a dash.
        words += [
            f"{one.name}={text}"
            for one, text in given.items()
            if text and one.is_option
        ]
        return " ".join(words)


def commands() -> Iterator[Command]:
    """Yield every command written by hand, groups of commands aside.

    Operations are refused by the API, whose refusals are frozen in http_errors.json; how
    commands say them is tried in tests/integration/api_commands.
    """
    made = {
        words
        for one in load_manifest()["operations"]
        for words in (f"{one['noun']} {one['verb']}", one["shortcut"])
    }
    by_hand = names_by_hand()
    for words, text in _SECTION.findall(MANUAL.read_text("utf-8")):
        is_made = words in made and words not in by_hand
        if "\nCommands:\n" not in text and not is_made and words not in CLIENTS:
            yield Command(words, (*_positionals(text), *_options(text)))


def names_by_hand() -> frozenset[str]:
    """Return the words of every command that is written by hand."""
    names = set(_names_in(app))
    for noun in WRITTEN:
        local = import_module(f"tasklore.commands.{noun.replace('-', '_')}.app").app
        names |= {f"{noun} {name}" for name in _names_in(local)}
    return frozenset(names)


def _names_in(written: Typer) -> Iterator[str]:
    for one in written.registered_commands:
        yield one.name or getattr(one.callback, "__name__", "")


def _positionals(text: str) -> Iterator[Value]:
    usage = text.splitlines()[0].partition("[OPTIONS]")[2]
    for bracket, placeholder in _POSITIONAL.findall(usage):
        yield Value(placeholder, placeholder, is_required=bracket == "{")


def _options(text: str) -> Iterator[Value]:
    found: list[list[str]] = []
    for line in text.partition("\nOptions:\n")[2].partition("\n\n")[0].splitlines():
        if option := _OPTION.match(line):
            name = option[1].rpartition("--")[2] if "," not in option[1] else ""
            name = f"--{name}" if name else re.findall(r"--[\w-]+", option[1])[0]
            found.append([name, option[2] or "", option[3] or ""])
        else:
            found[-1][2] += f" {line.strip()}"
    for name, placeholder, said in found:
        if placeholder and placeholder != "/":
            least = _LEAST.search(said)
            most = _MOST.search(said)
            yield Value(
                name,
                placeholder,
                is_required="[required]" in said,
                least=int(least[1] or least[2]) if least else None,
                most=int(most[1]) if most else None,
            )
