"""The Markdown form of an analysis read by the models: headings are parts, list entries are keys.

A key may stand in bold, on a line of its own too, and the page may hold the whole document in a block of JSON. Nothing
is guessed: a line that no part of the document has room for is listed, and not taken over.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from examples.migrate_analyses.shapes import Key, Shape, keys_of
from examples.migrate_analyses.words import (
    bare,
    named,
    none_meant,
    read_leaf,
    split_list,
    split_name,
    word_of,
)
from tasklore.contracts.analysis.document import SKIPPED, VERSION, AnalysisDocument
from tasklore.contracts.analysis.pieces import Piece

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_BULLET = re.compile(r"([ \t]*)(?:[-*+]|\d{1,4}[.)])[ \t]+(.*\S)[ \t]*$")
#: A block of JSON.
_FENCED = re.compile(r"^```json[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: A line of its own with a name in bold, as many notes have it: `**Location**: Coffee Corner Cafe`.
_LABEL = re.compile(
    r" {0,3}((?:\*\*|__)[^*_:]{1,60}(?::(?:\*\*|__)|(?:\*\*|__):)[ \t]*\S.*?)[ \t]*$"
)
#: Where the text behind an item's name goes: `THREAD-001: Marcus Job Interview`.
_BEHIND = ("title", "fact", "sum")


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that was not taken over: its number, its text, and why."""

    line: int
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; `level` is 1 to 6, `line` counts from 1."""

    line: int
    level: int
    text: str


@dataclass(slots=True)
class Entry:
    """An entry of a list on one line, with the entries that are indented below it."""

    line: int
    text: str
    indent: int = 0
    entries: "list[Entry]" = field(default_factory=list)


@dataclass(slots=True)
class _Open:
    """A part whose heading was read: what it holds so far, by its shape; None when nobody knows the heading."""

    level: int
    shape: Shape | None
    holds: JsonValue


def read_markdown(
    text: str, *, updated: str
) -> tuple[dict[str, JsonValue], list[Unread]]:
    """Return the analysis in *text*, and what of it was not taken over.

    *updated* is when it was written, in ISO 8601, unless it says so itself.
    """
    fenced = _FENCED.search(text)
    if fenced is not None and (body := _object_in(fenced[1])) is not None:
        # The document itself, in a page about it.
        lines = "\n" * text.count("\n", fenced.start(), fenced.end())
        around = text[: fenced.start()] + lines + text[fenced.end() :]
        return _with_meta(body, updated), [
            Unread(block.line, block.text, "it stands beside the document")
            for block in _blocks(around)
            if not isinstance(block, Heading)
        ]
    reader = _Reader()
    for block in _blocks(text):
        if isinstance(block, Heading):
            reader.open(block)
        elif isinstance(block, Entry):
            reader.take(block)
        else:
            # A line that goes on from the one above is not glued to it: nothing tells whether it belongs there.
            reader.leave(block.line, block.text, block.why)
    return _with_meta(reader.body, updated), sorted(
        reader.unread, key=lambda one: one.line
    )


def _blocks(text: str) -> Iterator[Heading | Entry | Unread]:
    """Yield headings, entries with those below them, and what is neither."""
    open_entries: list[Entry] = []
    found: list[Heading | Entry | Unread] = []
    for number, line in enumerate(text.splitlines(), 1):
        heading = _HEADING.match(line)
        bullet = _BULLET.match(line)
        if heading:
            open_entries = []
            found.append(Heading(number, len(heading[1]), heading[2]))
        elif bullet:
            entry = Entry(number, bullet[2], len(bullet[1].expandtabs(4)))
            while open_entries and open_entries[-1].indent >= entry.indent:
                open_entries.pop()
            if open_entries:
                open_entries[-1].entries.append(entry)
            else:
                found.append(entry)
            open_entries.append(entry)
        elif label := _LABEL.match(line):
            open_entries = []
            found.append(Entry(number, label[1]))
        elif any(map(str.isalnum, line)):
            found.append(
                Unread(
                    number,
                    line.strip(),
                    "only headings and list entries of one line are read",
                )
            )
    yield from found


def _object_in(text: str) -> dict[str, JsonValue] | None:
    """Return the analysis that *text* is in JSON, None for anything else."""
    try:
        body = json.loads(text)
    except ValueError:
        return None
    return body if isinstance(body, dict) and "meta" in body else None


class _Reader:
    """Puts blocks where they belong, and keeps what belongs nowhere."""

    def __init__(self) -> None:
        self.body: dict[str, JsonValue] = {}
        self.unread: list[Unread] = []
        self._root = _Open(0, Shape("object", model=AnalysisDocument), self.body)
        self._open = [self._root]

    def leave(self, line: int, text: str, why: str) -> None:
        """Note what is not taken over."""
        self.unread.append(Unread(line, text, why))

    def open(self, heading: Heading) -> None:
        """Open the part that *heading* names, within the one above it; the title of the page names none."""
        while len(self._open) > 1 and self._open[-1].level >= heading.level:
            self._open.pop()
        if heading.level == 1:
            return
        above = self._open[-1]
        shape, holds = self._part(above, bare(heading.text).rstrip(":"))
        if shape is None and above.shape is not None:
            self.leave(
                heading.line, heading.text, "no part of the document has this name here"
            )
        self._open.append(_Open(heading.level, shape, holds))

    def _part(self, above: _Open, name: str) -> tuple[Shape | None, JsonValue]:
        """Return the shape of the part *name* of *above*, and what it is to be filled into."""
        if above.shape is None or not isinstance(above.holds, dict):
            return None, None
        shape = above.shape.inner
        key = name
        if above.shape.model is not None:
            found = _key(above.shape.model, name)
            shape, key = (
                (found.shape, found.short) if found is not None else (None, name)
            )
        if shape is None or shape.kind not in ("object", "list", "named"):
            return None, None
        return shape, above.holds.setdefault(key, [] if shape.kind == "list" else {})

    def take(self, entry: Entry) -> None:
        """Put *entry* into the part that is open."""
        here = self._open[-1]
        if here.shape is None:
            self.leave(
                entry.line, entry.text, "it stands below a heading that is not known"
            )
        else:
            self._fill(here.holds, here.shape, [entry])

    def _fill(self, holds: JsonValue, shape: Shape, entries: Sequence[Entry]) -> None:
        """Put *entries* into what *holds* a part of that *shape*."""
        for entry in entries:
            if isinstance(holds, list) and shape.inner is not None:
                self._add(holds, shape.inner, entry)
            elif isinstance(holds, dict) and shape.model is not None:
                self._set(holds, shape.model, entry)
            elif isinstance(holds, dict) and shape.inner is not None:
                name, rest = split_name(entry.text)
                self._put(holds, name, shape.inner, entry, rest)

    def _set(
        self, holds: dict[str, JsonValue], model: type[Piece], entry: Entry
    ) -> None:
        name, text = split_name(entry.text)
        key = _key(model, name)
        if key is None:
            self.leave(
                entry.line, entry.text, f"{model.__name__} has no {word_of(name)!r}"
            )
        else:
            self._put(holds, key.short, key.shape, entry, text)

    def _put(
        self,
        holds: dict[str, JsonValue],
        name: str,
        shape: Shape,
        entry: Entry,
        text: str,
    ) -> None:
        """Put the value of *entry*, its *text* and what is indented below it, under *name*."""
        if shape.kind in ("object", "list", "named"):
            inner = holds.setdefault(name, [] if shape.kind == "list" else {})
            self._put_text(inner, shape, entry, text)
            self._fill(inner, shape, entry.entries)
            return
        value = read_leaf(shape.kind, text)
        if value is None:
            self.leave(entry.line, entry.text, f"what is expected is a {shape.kind}")
        else:
            holds[name] = value
        for below in entry.entries:
            self.leave(below.line, below.text, "the entry above holds one value")

    def _put_text(
        self, inner: JsonValue, shape: Shape, entry: Entry, text: str
    ) -> None:
        """Put what stands on the line of a list itself; nothing else has room for it."""
        if none_meant(text):
            return
        if (
            isinstance(inner, list)
            and shape.inner is not None
            and shape.inner.kind == "text"
        ):
            inner.extend(split_list(text))
        else:
            self.leave(entry.line, entry.text, "its parts are to be entries below it")

    def _add(self, holds: list[JsonValue], shape: Shape, entry: Entry) -> None:
        """Add *entry* to a list: a text, or an object that begins with its name."""
        if shape.model is None:
            holds.append(bare(entry.text))
            for below in entry.entries:
                self.leave(below.line, below.text, "the entry above is a text")
            return
        item: dict[str, JsonValue] = {}
        name, rest = split_name(entry.text)
        if _key(shape.model, name) is not None and rest:
            self._set(item, shape.model, Entry(entry.line, entry.text))
        else:
            _name_item(item, shape.model, name, rest)
        self._fill(item, shape, entry.entries)
        missing = [key for key, one in _required(shape.model) if key not in item]
        if missing:
            self.leave(
                entry.line,
                entry.text,
                f"{shape.model.__name__} needs {', '.join(missing)}",
            )
        else:
            holds.append(item)


def _name_item(
    item: dict[str, JsonValue], model: type[Piece], name: str, rest: str
) -> None:
    """Put the *name* an item begins with where it belongs, and the *rest* of its line."""
    required = _required(model)
    first = required[0][1] if required else keys_of(model)[0]
    behind = next((key for key in keys_of(model) if key.short in _BEHIND), None)
    if behind is None or not rest:
        name = f"{name}: {rest}" if rest else name
    else:
        item[behind.short] = rest
    item[first.short] = list(split_list(name)) if first.shape.kind == "list" else name


def _required(model: type[Piece]) -> list[tuple[str, Key]]:
    return [(key.short, key) for key in keys_of(model) if key.is_needed]


def _key(model: type[Piece], name: str) -> Key | None:
    return next(
        (key for key in keys_of(model) if named(key.short, key.long, name)), None
    )


def _with_meta(body: dict[str, JsonValue], updated: str) -> dict[str, JsonValue]:
    """Return *body* in the form that we write, with the counts that the file did not tell."""
    parts = [body.get(group) for group in ("background", "immediate")]
    sections = [
        section for part in parts if isinstance(part, dict) for section in part.values()
    ]
    told = [section.get("status") for section in sections if isinstance(section, dict)]
    skipped = told.count(SKIPPED)
    failed = told.count("failed") + told.count("late")
    counted: dict[str, JsonValue] = {
        "agents_run": len(told),
        "agents_ok": len(told) - skipped - failed,
        "agents_fail": failed,
        "agents_skip": skipped,
    }
    given = body.get("meta")
    meta = dict(given) if isinstance(given, dict) else {}
    if not counted.keys() & meta.keys():
        meta |= counted
    meta.setdefault("updated", updated)
    meta.setdefault("status", "partial" if failed else "fresh")
    version = body.get("version", VERSION if "agents_skip" in meta else "1.0")
    return {"version": version, "meta": meta} | {
        key: body[key] for key in body if key not in ("version", "meta")
    }
