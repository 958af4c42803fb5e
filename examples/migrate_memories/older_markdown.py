"""The older `resource_*.md` files, as documents: headings become places, list entries and paragraphs become items.

Nothing is dropped. Content without a place of its own goes to the document's list for anything else, and whatever was
not understood is listed with its line, for a person to look at.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import PurePath
from typing import cast

from pydantic import JsonValue

from examples.migrate_memories.front_matter import FrontMatter, front_matter
from examples.migrate_memories.markdown_blocks import (
    Heading,
    ListEntry,
    Odd,
    Paragraph,
    blocks,
    lines_of,
)
from examples.migrate_memories.notes import with_notes
from tasklore.memory.documents.items import METADATA, Body, make_item
from tasklore.memory.documents.kinds import Kind, Kinds, stand_in
from tasklore.memory.documents.paths import Path

#: Characters of one item's text; what is longer becomes several items, since a document refuses a text beyond 2,000.
LONGEST = 1_900
#: Words that a heading may begin with without meaning another place.
_FILLERS = re.compile(r"^(?:the )?(?:user(?:'s|s)? |my |current |known )?")
_EMPHASIS = re.compile(r"(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1")
_NO_NAME = re.compile(r"[^\w]+")
_PIECES = re.compile(
    rf"\S.{{0,{LONGEST - 1}}}(?:\s|\Z)|\S.{{0,{LONGEST - 1}}}", re.DOTALL
)
_NO_HEADING = "no heading says what it is"


@dataclass(frozen=True, slots=True)
class Unparsed:
    """Lines that were kept without being understood: the first one's number, the text, why, and where it is now."""

    line: int
    text: str
    why: str
    kept_at: str


@dataclass(frozen=True, slots=True)
class OlderDocument:
    """What an older file became."""

    resource_id: str
    body: Body
    unparsed: tuple[Unparsed, ...] = ()


def read(text: str, kinds: Kinds, *, name: str, added: date) -> OlderDocument:
    """Return the document in *text*, the content of the file *name*.

    Its kind is what the front matter says as `resource_id`, else the file's name without its ending. *added* is the
    day of items that have none, unless the front matter has one for the whole file: the day on which the file was
    last changed.

    Raises:
        ConfigurationError: no resource id can be made of the name.
    """
    lines = lines_of(text)
    head = front_matter(lines)
    stem = PurePath(name).name.split(".")[0]
    kind = kinds.get(head.resource_id or stem) or kinds.get(stem) or stand_in(stem)
    writer = _Writer(
        kind=kind, source=f"imported:{PurePath(name).name}", added=head.updated or added
    )
    writer.take_front_matter(head)
    for block in blocks(lines, head.end):
        if isinstance(block, Heading):
            writer.take_heading(block)
        elif isinstance(block, ListEntry):
            writer.take_entry(block, writer.place, writer.group)
        elif isinstance(block, Paragraph):
            writer.take_text(block.line, block.text, writer.place, writer.group)
        else:
            writer.take_odd(block)
    writer.end_heading()
    return OlderDocument(
        kind.resource_id,
        writer.body,
        tuple(sorted(writer.unparsed, key=lambda found: found.line)),
    )


@dataclass(slots=True)
class _Open:
    """A heading that is open; `place` is None when it means none of the kind's, `is_title` when it names the whole."""

    heading: Heading
    place: Path | None
    is_title: bool
    is_used: bool = False


@dataclass(slots=True, kw_only=True)
class _Writer:
    """Fills a document with entries, and remembers the headings above them."""

    kind: Kind
    source: str
    added: date
    body: Body = field(init=False)
    rest: Path = field(init=False)
    places: dict[str, Path] = field(init=False)
    titles: set[str] = field(init=False)
    headings: list[_Open] = field(default_factory=list)
    began: bool = False
    unparsed: list[Unparsed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.body = self.kind.complete({})
        other = self.kind.place_for("other")
        self.rest = (
            other.path
            if other is not None
            else Path((self.kind.places[0].path.steps[0], "other"))
        )
        names = [
            (place.path, (str(place.path.last), *place.headings))
            for place in self.kind.places
        ]
        self.places = {_name(name): path for path, known in names for name in known}
        roots = (str(place.path.steps[0]) for place in self.kind.places)
        self.titles = {
            _name(name)
            for name in (
                self.kind.title,
                *self.kind.titles,
                self.kind.resource_id,
                *roots,
            )
        }

    @property
    def place(self) -> Path | None:
        """The place of the next entry, None when no heading names one."""
        return next(
            (
                opened.place
                for opened in reversed(self.headings)
                if opened.place is not None
            ),
            None,
        )

    @property
    def group(self) -> tuple[str, ...]:
        """The headings above that mean no place, below the last one that does."""
        group: list[str] = []
        for opened in reversed(self.headings):
            opened.is_used = True
            if opened.place is not None:
                break
            if not opened.is_title:
                group.append(opened.heading.text)
        return tuple(reversed(group))

    def take_front_matter(self, head: FrontMatter) -> None:
        """Keep what stands before everything else: in places where its names mean one, else in the metadata."""
        metadata = cast("Body", self.body[METADATA])
        metadata["tags"] = [*dict.fromkeys((*self.kind.tags, *head.tags))]
        metadata["last_updated"] = (
            head.updated.isoformat() if head.updated is not None else None
        )
        for name, value in head.others.items():
            place = self.places.get(_name(name))
            if place is not None:
                for line in _texts(value):
                    self._put(place, line, ())
            else:
                kept = cast("Body", metadata.setdefault("front_matter", {}))
                kept[name] = value
                why = "the front matter names nothing that is known here"
                text = f"{name}: {'; '.join(_texts(value))}"
                self.unparsed.append(
                    Unparsed(head.line_of(name), text, why, f"{METADATA}.front_matter")
                )
        for number, text in head.unread:
            self._keep(number, text, "this front matter cannot be read", ())

    def take_heading(self, heading: Heading) -> None:
        """Open *heading* and close those of its level and below."""
        while self.headings and self.headings[-1].heading.level >= heading.level:
            self.end_heading()
        name = _name(heading.text)
        is_title = name in self.titles and name not in self.places
        plain = Heading(heading.line, heading.level, _bare(heading.text))
        if not self.began and heading.level == 1 and name not in self.places:
            # A name for the whole file, which every item would have to carry along.
            cast("Body", self.body[METADATA])["title"] = plain.text
            is_title = True
        self.began = True
        self.headings.append(_Open(plain, self.places.get(name), is_title))

    def end_heading(self) -> None:
        """Close the last heading; keep it when nothing stood under it and it means nothing by itself."""
        if self.headings:
            opened = self.headings.pop()
            if self.headings:
                self.headings[-1].is_used |= opened.is_used
            if not opened.is_used and opened.place is None and not opened.is_title:
                self._keep(
                    opened.heading.line,
                    opened.heading.text,
                    "nothing stands under this heading",
                    self.group,
                )

    def take_entry(
        self, entry: ListEntry, place: Path | None, group: tuple[str, ...]
    ) -> None:
        """Keep a list entry and those below it: as an item, or as a heading over them."""
        text = _bare(entry.text)
        below = self.places.get(_name(text.rstrip(": ")))
        if entry.entries and below is not None:
            self._each(entry.entries, below, group)
        elif entry.entries and text.endswith(":"):
            self._each(entry.entries, place, (*group, text.rstrip(": ")))
        else:
            self.take_text(
                entry.line,
                text=text,
                place=place,
                group=group,
                details=[*_details(entry.entries)],
            )

    def take_text(
        self,
        line: int,
        text: str,
        place: Path | None,
        group: tuple[str, ...],
        details: list[str] | None = None,
    ) -> None:
        """Keep *text* at *place*, or where `name: text` says that it belongs."""
        text = _bare(text)
        name, _, value = text.partition(":")
        named = self.places.get(_name(name)) if value.strip() else None
        if named is not None:
            self._put(named, value, group, details)
        elif place is not None:
            self._put(place, text, group, details)
        else:
            self._keep(line, text=text, why=_NO_HEADING, group=group, details=details)

    def take_odd(self, block: Odd) -> None:
        """Keep lines of which only the text is known, as they are."""
        self._keep(
            block.line,
            block.text,
            "tables, code, quotations and HTML are not read",
            self.group,
        )

    def _each(
        self, entries: Iterable[ListEntry], place: Path | None, group: tuple[str, ...]
    ) -> None:
        for entry in entries:
            self.take_entry(entry, place, group)

    def _keep(
        self,
        line: int,
        text: str,
        why: str,
        group: tuple[str, ...],
        details: list[str] | None = None,
    ) -> None:
        self._put(self.rest, text, group, details)
        self.unparsed.append(Unparsed(line, text, why, str(self.rest)))

    def _put(
        self,
        place: Path,
        text: str,
        group: tuple[str, ...],
        details: list[str] | None = None,
    ) -> None:
        """Append *text* to the list at *place*, with the headings it stood under and what stood below it."""
        where = self.body
        for step in place.steps[:-1]:
            where = cast("Body", where.setdefault(str(step), {}))
        items = cast("list[JsonValue]", where.setdefault(str(place.last), []))
        said, notes = with_notes(text)
        for number, piece in enumerate(_PIECES.findall(said)):
            item = make_item(piece, added=self.added, source=self.source) | notes
            if "\n" in piece:
                item["display"] = piece.strip("\n")
            if group:
                item["group"] = " / ".join(group)
            if details and not number:
                item["details"] = list[JsonValue](details)
            items.append(item)


def _details(entries: Iterable[ListEntry], above: str = "") -> Iterator[str]:
    """Yield what stands below an entry, each line with the lines that it stands under."""
    for entry in entries:
        text = f"{above}{_bare(entry.text)}"
        yield text
        yield from _details(entry.entries, f"{text.rstrip(': ')}: ")


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield the texts in a value of front matter, each with the names that it stands under."""
    if isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from (f"{name}: {text}" for text in _texts(inner))
    elif isinstance(value, str) and value.strip():
        yield value


def _name(text: str) -> str:
    """Return a heading as it is compared: its words in small letters, without emphasis and without whose it is."""
    words = _NO_NAME.sub(
        " ", _bare(text).replace("_", " ").casefold().replace("'", "")
    ).strip()
    return _FILLERS.sub("", words, count=1) or words


def _bare(text: str) -> str:
    """Return *text* without the marks of bold type and code."""
    return _EMPHASIS.sub(r"\2", text).strip()
