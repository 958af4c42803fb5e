"""Markdown as people write it, cut into blocks: headings, nested lists, paragraphs, and whatever else there is.

Every line is in exactly one block, but for those with nothing but blanks and punctuation: rules, frames of tables.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

#: Columns of a tab.
TAB = 4

_LINE_ENDS = re.compile(r"\r\n|\n|\r")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_BULLET = re.compile(
    r"([ \t]*)(?:[-*+\u2022\u2013\u25e6\u25aa]|\d{1,4}[.)])[ \t]+(.*\S)[ \t]*$"
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ODD = re.compile(r"[ \t]*(?:[|>]|<(?!https?:)|!\[|\[[^\]]+\]:|\$\$)")
_WORDLESS = re.compile(r"[\s!-/:-@\[-`{-~]*$")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; `level` is 1 to 6, `line` counts from 1."""

    line: int
    level: int
    text: str


@dataclass(slots=True)
class ListEntry:
    """An entry of a list, on however many lines, with the entries that are indented below it."""

    line: int
    text: str
    indent: int = 0
    entries: "list[ListEntry]" = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines of text, joined by a space each."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Odd:
    """Lines that are none of the others, as they stand there: code, a row of a table, a quotation, HTML."""

    line: int
    text: str


Block = Heading | ListEntry | Paragraph | Odd


def lines_of(text: str) -> list[str]:
    """Return the lines of *text*, whatever ends them; a byte order mark is left out."""
    return _LINE_ENDS.split(text.removeprefix("\ufeff"))


def blocks(lines: list[str], first: int = 0) -> Iterator[Block]:
    """Yield the blocks of *lines* from index *first* on, in order."""
    reader = _Reader(lines, first)
    while reader.at < len(lines):
        yield from reader.block()


class _Reader:
    """A cursor over lines; each method reads one block from where it stands."""

    def __init__(self, lines: list[str], at: int) -> None:
        self.lines = lines
        self.at = at

    def block(self) -> Iterator[Block]:
        """Yield the block that begins here, none for a line without any."""
        line = self.lines[self.at]
        number = self.at + 1
        heading = _HEADING.match(line)
        if _FENCE.match(line):
            yield Odd(number, self._read_fence(line))
        elif heading:
            self.at += 1
            if heading[2] and not _WORDLESS.match(heading[2]):
                yield Heading(number, len(heading[1]), heading[2])
        elif _BULLET.match(line):
            yield from self._list()
        elif _WORDLESS.match(line):
            self.at += 1
        elif _ODD.match(line):
            self.at += 1
            yield Odd(number, line.strip())
        else:
            yield self._paragraph(number)

    def _read_fence(self, opening: str) -> str:
        """Read a fenced block up to its end, or up to the end of the file."""
        fence = _FENCE.match(opening)
        mark = fence[1] if fence else ""
        start = self.at
        self.at += 1
        while self.at < len(self.lines) and not self.lines[self.at].strip().startswith(
            mark
        ):
            self.at += 1
        self.at += 1
        return "\n".join(self.lines[start : self.at])

    def _list(self) -> list[ListEntry]:
        """Read entries for as long as there are any, and return those of the first level."""
        first: list[ListEntry] = []
        open_entries: list[ListEntry] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            bullet = _BULLET.match(line)
            if bullet:
                entry = ListEntry(
                    self.at + 1, bullet[2], len(bullet[1].expandtabs(TAB))
                )
                while open_entries and open_entries[-1].indent >= entry.indent:
                    open_entries.pop()
                (open_entries[-1].entries if open_entries else first).append(entry)
                open_entries.append(entry)
            elif self._goes_on(line):
                open_entries[
                    -1
                ].text = f"{open_entries[-1].text} {line.strip()}".rstrip()
            else:
                break
            self.at += 1
        return first

    def _goes_on(self, line: str) -> bool:
        """Tell whether *line* belongs to the entry above it."""
        if not line.strip():
            after = next(
                (later for later in self.lines[self.at + 1 :] if later.strip()), ""
            )
            return _BULLET.match(after) is not None or (
                after[:1] in (" ", "\t") and not self._begins_another(after)
            )
        above_is_blank = not self.lines[self.at - 1].strip()
        return not self._begins_another(line) and (
            not above_is_blank or line[:1] in (" ", "\t")
        )

    def _paragraph(self, number: int) -> Block:
        """Read lines of text; a line of `=` or `-` below them makes them a heading."""
        parts: list[str] = []
        while self.at < len(self.lines) and self.lines[self.at].strip():
            line = self.lines[self.at]
            underline = _UNDERLINE.match(line)
            if parts and underline:
                self.at += 1
                return Heading(
                    number, 1 if underline[1][0] == "=" else 2, " ".join(parts)
                )
            if parts and (self._begins_another(line) or _BULLET.match(line)):
                break
            parts.append(line.strip())
            self.at += 1
        return Paragraph(number, " ".join(parts))

    def _begins_another(self, line: str) -> bool:
        return (
            any(pattern.match(line) for pattern in (_HEADING, _FENCE, _ODD))
            or _WORDLESS.match(line) is not None
        )
