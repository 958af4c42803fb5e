"""The pages of the project, and the code in them."""

import re
from pathlib import Path

from tests.architecture.tree import ROOT

PAGES = sorted(
    [
        *(
            ROOT / name
            for name in (
                "README.md",
                "CHANGELOG.md",
                "CONTRIBUTING.md",
                "SECURITY.md",
                "changes/README.md",
                "examples/README.md",
                "contracts/quantities/README.md",
            )
        ),
        *(ROOT / "docs").rglob("*.md"),
    ]
)

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def find_blocks(text: str, language: str) -> list[str]:
    """Return the blocks of code of *text* in *language*, in order."""
    return [code for found, code in _BLOCK.findall(text) if found == language]


def blocks_of(page: Path, language: str) -> list[str]:
    """Return the blocks of code of *page* in *language*, in order."""
    return find_blocks(page.read_text("utf-8"), language)


def pages_with(language: str) -> list[Path]:
    """Return the pages that have a block in *language*."""
    return [page for page in PAGES if blocks_of(page, language)]


def place_code(text: str, language: str) -> str:
    """Return the blocks of the page *text* in *language*, each line at the number that it has there."""
    lines = [""] * len(text.splitlines())
    for block in _BLOCK.finditer(text):
        if block[1] == language:
            first = text[: block.start(2)].count("\n")
            code = block[2].splitlines()
            lines[first : first + len(code)] = code
    return "\n".join(lines) + "\n"
