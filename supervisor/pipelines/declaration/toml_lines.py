"""At which line of a TOML document each thing stands, which `tomllib` does not tell.

Only documents that `tomllib` has accepted are scanned, so that what is not understood here cannot be wrong TOML.
"""

import re
import tomllib

from supervisor.pipelines.declaration.problems import Place

_STRING = r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
_KEY = rf"(?:{_STRING}|[A-Za-z0-9_-]+)"
_DOTTED = re.compile(rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*", re.DOTALL)
_PART = re.compile(_KEY, re.DOTALL)
_HEADER = re.compile(r"\[(\[?)[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
#: One piece of a value: a string, a comment, a mark, or anything without these.
_PIECE = re.compile(rf"{_STRING}|#[^\n]*|[\[\]{{}},\n]|[^\[\]{{}},\n#\"']+", re.DOTALL)


def lines_of(text: str) -> dict[Place, int]:
    """Return the line, from 1, of every table, key and item of an outermost list in *text*, by its place.

    Tables of a list are counted: the third `[[phase]]` is `("phase", 2)`. Inline tables are one place.
    """
    return _Scanner(text).lines


class _Scanner:
    """A walk over one document; `lines` is what it found."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Place, int] = {}
        self._text = text
        self._at = 0
        self._line = 1
        self._tables: dict[Place, int] = {}
        self._table: Place = ()
        self._skip_blank()
        while self._at < len(text):
            start = self._at
            self._read_statement()
            self._skip_blank()
            if self._at == start:
                # Nothing that a document could go on with: what has been found is still right.
                break

    def _read_statement(self) -> None:
        header = _HEADER.match(self._text, self._at)
        if header:
            self._move(header.end())
            self._table = self._opened(self._key(), is_list=bool(header[1]))
            self.lines.setdefault(self._table, self._line)
            self._move(self._text.find("\n", self._at) % (len(self._text) + 1))
            return
        key = self._key()
        if not key:
            return
        place = (*self._table, *key)
        for depth in range(len(self._table) + 1, len(place) + 1):
            self.lines.setdefault(place[:depth], self._line)
        self._move(self._text.find("=", self._at) + 1)
        self._skip_value(place)

    def _opened(self, key: Place, *, is_list: bool) -> Place:
        """Return the place of a table called *key*, in the latest of every list of tables on the way."""
        place: Place = ()
        for n, part in enumerate(key):
            place = (*place, part)
            if is_list and n == len(key) - 1:
                self._tables[place] = self._tables.get(place, -1) + 1
            if place in self._tables:
                place = (*place, self._tables[place])
        return place

    def _key(self) -> Place:
        found = _DOTTED.match(self._text, self._at)
        if found is None:
            return ()
        self._move(found.end())
        return tuple(_name(part) for part in _PART.findall(found[0]))

    def _skip_value(self, place: Place) -> None:
        depth, item, awaited = 0, 0, False
        while self._at < len(self._text):
            piece = _PIECE.match(self._text, self._at)
            if piece is None or (piece[0] == "\n" and depth == 0):
                return
            said = piece[0]
            is_said = bool(said.strip()) and said[0] not in "#,]}"
            if depth == 1 and awaited and is_said:
                self.lines[(*place, item)] = self._line
                awaited = False
            if said == "[" and depth == 0:
                awaited = True
            if said in ("[", "{"):
                depth += 1
            elif said in ("]", "}"):
                depth -= 1
            elif said == "," and depth == 1 and not awaited:
                item, awaited = item + 1, (*place, item) in self.lines
            self._move(piece.end())

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self._text, self._at)
        self._move(blank.end() if blank else self._at)

    def _move(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end


def _name(part: str) -> str:
    """Return the name that *part* of a key spells, escapes and all."""
    return next(iter(tomllib.loads(f"{part} = 0"))) if part[0] in "\"'" else part
