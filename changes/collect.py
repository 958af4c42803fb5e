"""Put the fragments of this folder into the top section of CHANGELOG.md: `python changes/collect.py`."""

import re
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CHANGELOG = FOLDER.parent / "CHANGELOG.md"

#: Kinds of changes in the order of their headings.
KINDS = ("added", "changed", "removed", "security", "fixed")
#: Columns of the changelog.
_WIDTH = 120
_NAME = re.compile(rf"[a-z0-9][a-z0-9-]*\.({'|'.join(KINDS)})\.md")
#: The beginning of a section: that of a version.
_SECTION = re.compile(r"^## ", re.MULTILINE)


class Unreadable(ValueError):
    """A fragment has a name or a text that no changelog can take; the message says which, and what is right."""


@dataclass(frozen=True)
class Fragment:
    """One change: its kind, and its paragraph on one line."""

    kind: str
    text: str

    @property
    def entry(self) -> str:
        """Return the entry of the changelog, wrapped, as an item of a list."""
        return textwrap.fill(
            self.text,
            _WIDTH,
            initial_indent="- ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def find_fragments(folder: Path) -> list[Path]:
    """Return the files of *folder* that are to be fragments, by name."""
    return sorted(file for file in folder.glob("*.md") if file.name != "README.md")


def read_fragment(file: Path) -> Fragment:
    """Return the change that *file* holds.

    Raises:
        Unreadable: its name says no kind, or it holds no text or more than one paragraph.
    """
    name = _NAME.fullmatch(file.name)
    if name is None:
        raise Unreadable(
            f"{file.name}: call it NAME.KIND.md with a KIND of {', '.join(KINDS)}"
        )
    text = file.read_text("utf-8").strip()
    if not text or "\n\n" in text or text.startswith(("#", "-")):
        raise Unreadable(
            f"{file.name}: write one paragraph, without a heading or a list"
        )
    return Fragment(name[1], " ".join(text.split()))


def add_fragments(changelog: str, fragments: Iterable[Fragment]) -> str:
    """Return *changelog* with each of *fragments* at the head of its kind, in the top section.

    A heading that is not there yet comes behind those of the kinds before it.
    """
    starts = [found.start() for found in _SECTION.finditer(changelog)]
    top = starts[0]
    end = starts[1] if len(starts) > 1 else len(changelog)
    section = changelog[top:end]
    waiting = list(fragments)
    for kind in KINDS:
        entries = [one.entry for one in waiting if one.kind == kind]
        if entries:
            section = _add_entries(section, kind, entries)
    return changelog[:top] + section + changelog[end:]


def _add_entries(section: str, kind: str, entries: list[str]) -> str:
    heading = f"\n### {kind.capitalize()}\n\n"
    listed = "\n".join(entries)
    if heading in section:
        return section.replace(heading, f"{heading}{listed}\n", 1)
    later = [
        section.find(f"\n### {other.capitalize()}\n")
        for other in KINDS[KINDS.index(kind) + 1 :]
    ]
    there = [place for place in later if place >= 0]
    place = min(there, default=len(section.rstrip("\n")) + 1)
    return f"{section[:place]}{heading}{listed}\n{section[place:]}"


def main() -> int:
    """Move every fragment into the changelog; return 2 and change nothing when one cannot be read."""
    files = find_fragments(FOLDER)
    try:
        fragments = [read_fragment(file) for file in files]
    except Unreadable as error:
        sys.stderr.write(f"{error}\n")
        return 2
    changelog = CHANGELOG.read_text("utf-8")
    CHANGELOG.write_text(add_fragments(changelog, fragments), "utf-8")
    for file in files:
        file.unlink()
        sys.stdout.write(f"moved: {file.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
