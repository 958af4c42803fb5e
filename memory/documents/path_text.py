"""The spelling of paths: two dialects read step by step, one canonical spelling written.

House dialect: names joined by dots, anything else quoted in brackets, an index from the front or (negative) from the
end, and `[-]` for the place after the last item. What begins with `$` is a singular query of RFC 9535, to the letter.
"""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, TypeAlias

from tasklore.contracts.errors import InvalidPath


class Append(Enum):
    """The place after the last item of a list, written `[-]`; nothing stands there."""

    APPEND = "-"


APPEND: Final = Append.APPEND

#: One step into a document: a name of an object, an index of a list (negative: from its end), or APPEND.
Step: TypeAlias = str | int | Append

#: The largest index: RFC 9535 allows what every JSON reader keeps exactly (RFC 7493).
MAX_INDEX = 2**53 - 1

#: Characters of a text that an error shows on each side of where it went wrong.
_SHOWN = 40

_HIGH = r"\x80-\ud7ff\ue000-\U0010ffff"
_NAME = re.compile(rf"[A-Za-z0-9_\-{_HIGH}]+")
_SHORTHAND = re.compile(rf"[A-Za-z_{_HIGH}][A-Za-z0-9_{_HIGH}]*")
_DIGITS = re.compile(r"-?[0-9]+")
_INDEX = re.compile(r"0|-?[1-9][0-9]{0,15}")
_BLANKS = re.compile(r"[ \t\n\r]*")
_PLAIN = {quote: re.compile(rf"[^{quote}\\\x00-\x1f\ud800-\udfff]+") for quote in "'\""}
_HEX = re.compile(r"u([0-9A-Fa-f]{4})")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\"}
_SPELLED = {
    character: f"\\{mark}" for mark, character in _ESCAPES.items() if mark != "/"
}
_SEVERAL = {
    ".": "descendants",
    "*": "a wildcard",
    "?": "a filter",
    ":": "a slice",
    ",": "a union",
}


def read(text: str) -> tuple[Step, ...]:
    """Return the steps that *text* names.

    Raises:
        InvalidPath: it cannot be read, or it selects more than one place; the message says at which character.
    """
    return tuple(_Query(text).steps() if text.startswith("$") else _House(text).steps())


def spell(steps: tuple[Step, ...]) -> str:
    """Return the one canonical spelling of *steps*, printable and on one line; `read` reads it back."""
    return "".join(_spell(step) for step in steps).removeprefix(".") or "$"


class _House:
    """A cursor over a text in the house dialect: each method reads one thing, or says what would fit."""

    name = _NAME
    name_fits = 'a name (letters, digits, _ or -; others are quoted: ["odd name"])'
    selector_fits = "an index, a quoted name, or - to append"

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def steps(self) -> Iterator[Step]:
        """Yield the steps of the whole text."""
        if not self.text.startswith("["):
            yield self.shorthand()
        while self.at < len(self.text):
            step = self.segment()
            if step is APPEND and self.at < len(self.text):
                raise self.refusal("the end, because nothing stands at [-] yet")
            yield step

    def segment(self) -> Step:
        """Read `.name` or `[...]`."""
        if self.take("."):
            return self.shorthand()
        if not self.take("["):
            raise self.refusal("'.' and a name, '[', or the end")
        step = self.selector()
        if not self.take("]"):
            self.refuse_several(":,")
            raise self.refusal("']'")
        return step

    def shorthand(self) -> str:
        """Read a name that is not quoted."""
        found = self.name.match(self.text, self.at)
        if not found:
            self.refuse_several(".*" if self.at else "*")
            raise self.refusal(self.name_fits)
        self.at = found.end()
        return found[0]

    def selector(self) -> Step:
        """Read what stands between brackets."""
        if self.text.startswith("-]", self.at):
            self.at += 1
            return APPEND
        return self.index_or_name()

    def index_or_name(self) -> Step:
        """Read an index or a quoted name."""
        quote = self.text[self.at : self.at + 1]
        if quote in _PLAIN:
            self.at += 1
            return self.quote_name(quote)
        found = _DIGITS.match(self.text, self.at)
        if not found:
            self.refuse_several("*?:")
            raise self.refusal(self.selector_fits)
        if not _INDEX.fullmatch(found[0]) or abs(int(found[0])) > MAX_INDEX:
            raise self.refusal(
                f"an index from -{MAX_INDEX} to {MAX_INDEX}, without leading zeros and not -0"
            )
        self.at = found.end()
        return int(found[0])

    def quote_name(self, quote: str) -> str:
        """Read up to the closing *quote*, with escapes as in JSON."""
        parts: list[str] = []
        while not self.take(quote):
            if found := _PLAIN[quote].match(self.text, self.at):
                parts.append(found[0])
                self.at = found.end()
            elif self.take("\\"):
                parts.append(self.escape_pointer(quote))
            else:
                raise self.refusal(
                    f"a character or the closing {quote} (a control character is written \\u00XX)"
                )
        return "".join(parts)

    def escape_pointer(self, quote: str) -> str:
        """Read what follows a backslash."""
        mark = self.text[self.at : self.at + 1]
        if mark == quote or mark in _ESCAPES:
            self.at += 1
            return _ESCAPES.get(mark, mark)
        start = self.at
        unit = self.code_unit()
        if 0xD800 <= unit < 0xDC00 and self.take("\\"):
            low = self.code_unit()
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((unit - 0xD800) << 10) + low - 0xDC00)
        if 0xD800 <= unit < 0xE000:
            self.at = start
            raise self.refusal("a character, or both halves of a surrogate pair")
        return chr(unit)

    def code_unit(self) -> int:
        """Read `uXXXX`."""
        found = _HEX.match(self.text, self.at)
        if not found:
            raise self.refusal(
                "an escape: the quote, \\\\ \\/ \\b \\f \\n \\r \\t or \\uXXXX"
            )
        self.at = found.end()
        return int(found[1], 16)

    def take(self, mark: str) -> bool:
        """Step over *mark* when it is next."""
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def refuse_several(self, marks: str) -> None:
        """Raise when one of *marks* is next, each of which would select several places."""
        mark = self.text[self.at : self.at + 1]
        if mark and mark in marks:
            raise InvalidPath(
                f"{self.where()}: {mark!r} ({_SEVERAL[mark]}) selects any number of places, and an edit names one;"
                " write one edit for each"
            )

    def refusal(self, fits: str) -> InvalidPath:
        """Return the error that names the text found here and the text that *fits*."""
        found = repr(self.text[self.at]) if self.at < len(self.text) else "the end"
        whole = "; the whole document is '$'" if not self.text else ""
        return InvalidPath(f"{self.where()}: found {found}, what fits is {fits}{whole}")

    def where(self) -> str:
        """Return the text around the cursor and the character it is at, counted from 1."""
        start = max(0, self.at - _SHOWN)
        end = self.at + _SHOWN
        before = "..." if start else ""
        behind = "..." if end < len(self.text) else ""
        return f"path {before}{self.text[start:end]!r}{behind}, character {self.at + 1}"


class _Query(_House):
    """The same over an RFC 9535 query: blanks between segments and in brackets, no [-], fewer unquoted names."""

    name = _SHORTHAND
    name_fits = (
        "a name (letters, digits or _, no digit first; others are quoted: ['odd name'])"
    )
    selector_fits = "an index or a quoted name"

    def steps(self) -> Iterator[Step]:
        """Yield the steps after the `$`."""
        self.at = 1
        while self.at < len(self.text):
            start = self.at
            self.blanks()
            if self.at == len(self.text):
                self.at = start
                raise self.refusal("the end, without blanks before it")
            yield self.segment()

    def selector(self) -> Step:
        """Read one selector and the blanks around it."""
        self.blanks()
        step = self.index_or_name()
        self.blanks()
        return step

    def blanks(self) -> None:
        """Step over blanks."""
        found = _BLANKS.match(self.text, self.at)
        self.at = found.end() if found else self.at


def _spell(step: Step) -> str:
    """Return one step as text, a name with its dot."""
    if isinstance(step, Append):
        return "[-]"
    if isinstance(step, int):
        return f"[{step}]"
    if _NAME.fullmatch(step) and step.isprintable():
        return f".{step}"
    quote = "'" if step.count('"') > step.count("'") else '"'
    return f"[{quote}{''.join(_spell_character(character, quote) for character in step)}{quote}]"


def _spell_character(character: str, quote: str) -> str:
    """Return one character of a quoted name, escaped where it would end the name or is not printable."""
    if character == quote:
        return f"\\{quote}"
    if character in _SPELLED:
        return _SPELLED[character]
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(
        f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4)
    )
