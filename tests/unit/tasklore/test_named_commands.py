"""Every command of ours that a page, an error or a hint names is one, with options that it knows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasklore.commands.app import GROUPS, WRITTEN, make_root
from tasklore.commands.operations.entries import load_manifest

ROOT = Path(__file__).parents[3]
ROOMS = ("contracts", "deploy", "examples", "memory", "runtime", "supervisor", "tasklore", "workers")  # fmt: skip
#: In backticks anywhere, and behind the prompt of a console.
NAMED = re.compile(r"`tasklore ([^`]+)`|(?m:^\$ (?:\S*/)?tasklore (.+)$)")
WORD = re.compile(r"[a-z][a-z0-9|-]*")
OPTION = re.compile(r"--?[a-z][a-z-]*")


def fault_of(line: str, root: Any) -> str:
    """Return what is wrong with the command in *line*, "" for nothing; `list|show` names two."""
    command = root
    words = line.partition(" # ")[0].split()
    while words and hasattr(command, "commands") and WORD.fullmatch(words[0]):
        found = [command.commands.get(one) for one in words[0].split("|")]
        if None in found:
            return f"there is no {words[0]!r}"
        if len(found) > 1:
            return ""
        command = found[0]
        words = words[1:]
    known = {
        one
        for option in command.params
        for one in (*option.opts, *option.secondary_opts)
    }
    for word in words:
        option = OPTION.match(word.strip("[](),.;"))
        if option is not None and option[0] not in known | {"--help"}:
            return f"it has no option {option[0]}"
    return ""


def sentences() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of every string of our code, and of every page."""
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", node.value
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    # It names the commands that there were.
    pages.remove(ROOT / "docs/reference/changes-0.3.md")
    for page in [*pages, *(ROOT / "examples").rglob("*.md")]:
        yield str(page.relative_to(ROOT)), page.read_text("utf-8")


def test_every_command_that_is_named_exists() -> None:
    root = make_root()
    named = {
        (place, " ".join((match[1] or match[2]).split()))
        for place, text in sentences()
        for match in NAMED.finditer(text)
    }
    assert len(named) > 200
    faults = {
        f"{place}: `tasklore {line}`: {fault}"
        for place, line in named
        if (fault := fault_of(line, root))
    }
    assert not faults


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("memory edit", "there is no 'edit'"),
        ("memroy tell", "there is no 'memroy'"),
        ("memory tell TEXT --usr ana", "it has no option --usr"),
        ("memory history|dif", "there is no 'history|dif'"),
        ("memory history|diff", ""),
        ("limits show", ""),
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str, fault: str) -> None:
    assert fault_of(line, make_root()) == fault


def test_a_sentence_is_of_a_noun_that_is_there() -> None:
    """A noun that was deleted leaves no group of commands without a command."""
    nouns = {entry["noun"] for entry in load_manifest()["operations"]} | WRITTEN
    gone = GROUPS.keys() - nouns
    assert not gone, f"delete {sorted(gone)} from GROUPS in tasklore/commands/app.py"
