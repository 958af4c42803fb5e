"""Blocks of commands on pages: each command with what is shown behind it, held against what it prints.

A line `...` stands for any lines, `...` in a line for any text. Ids, times, addresses and
measured numbers may differ, and the blanks between columns.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.golden.normal import Normaliser

#: A folder, the one above it, a machine and a key as pages have them.
FOLDER = "/home/ana/shop"
ABOVE = "/home/ana"
HOST = "host"
KEY = "tlk_..."
_WORKER = re.compile(rf"\b{HOST}-\d+-[0-9a-f]{{6}}\b")
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMPT = "$ "
_ANY = "..."


@dataclass(frozen=True)
class ShownCommand:
    """A command line of a page without its prompt, the lines shown behind it, and where both stand in the text."""

    line: str
    shown: tuple[str, ...]
    start: int
    end: int


def read_commands(text: str) -> Iterator[ShownCommand]:
    """Yield the commands in the console blocks of the page *text*, in order."""
    for block in _CONSOLE.finditer(text):
        prompts = [
            found.start() for found in re.finditer(r"^\$ ", block[1], re.MULTILINE)
        ]
        for begin, end in zip(prompts, [*prompts[1:], len(block[1])], strict=True):
            line, *shown = block[1][begin:end].splitlines()
            yield ShownCommand(
                line.removeprefix(_PROMPT).removesuffix(" &"),
                tuple(shown),
                block.start(1) + begin,
                block.start(1) + end,
            )


def pages() -> list[Path]:
    """Return the pages whose commands show what they print: README, and all how-tos."""
    root = Path(__file__).resolve().parents[2]
    return [root / "README.md", *sorted((root / "docs" / "guide").glob("*.md"))]


def _plain(line: str, normal: Normaliser) -> str:
    for words, name in ((FOLDER, "<folder>"), (ABOVE, "<above>"), (KEY, "<key>")):
        line = line.replace(words, name)
    line = _WORKER.sub("<worker>", line)
    return re.sub(r"-{2,}", "--", " ".join(normal.printed(line).split()))


def fits(shown: Sequence[str], printed: Sequence[str], normal: Normaliser) -> bool:
    """Return whether what a page has *shown* is what was *printed*, but for what differs from run to run."""
    lines = [_plain(line, normal) for line in printed]
    parts = [_plain(line, normal) for line in shown]
    return (
        re.fullmatch(_pattern(parts), "".join(f"{line}\n" for line in lines))
        is not None
    )


def _pattern(lines: Sequence[str]) -> str:
    patterns = []
    for line in lines:
        if line == _ANY:
            patterns.append(r"(?:.*\n)*?")
        else:
            pieces = [re.escape(piece) for piece in line.split(_ANY)]
            patterns.append(f"{'.*?'.join(pieces)}\\n")
    return "".join(patterns)


def put_output(text: str, command: ShownCommand, printed: Sequence[str]) -> str:
    """Return the page *text* with *printed* behind *command*, which was read from this very text."""
    first = text[command.start : command.end].partition("\n")[0]
    block = "".join(f"{line}\n" for line in (first, *printed))
    return f"{text[: command.start]}{block}{text[command.end :]}"
