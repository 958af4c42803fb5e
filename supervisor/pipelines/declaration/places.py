"""One reference `${...}`: how it is written, what it names, and the value there.

| written | names |
|---|---|
| `${input.folder}` | an input of the run |
| `${analysis:results}` | an entry of the session, by its key |
| `${analysis:results.modules.0}` | a place inside: names of properties, numbers of items counted from 0 |
| `${analysis:file:src/a.py}` | an entry with an identifier, which goes on to the end |
| `${analysis:file:"src/a.py".lines}` | a place inside such an entry: quotes say where its identifier ends |
| `${results:page."content-type"}` | a property whose name has a dot or another mark |
| `${standards}` | the standards in force with one of the phase's tags |
| `${item.title}`, `${index}` | the item of a phase with `for_each`, and its number from 0 |
| `${last.score}` | what the round before returned, in a phase with `repeat_until`; `${index}` counts the rounds |
| `${review:results.score?}` | the same, or null when the entry or the place in it is not there |
| `$${` | no reference, but the two characters `${` |
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from contracts.errors import InvalidInput
from contracts.session_keys import read_key
from supervisor.pipelines.declaration.problems import listed

_NAME = r"[A-Za-z0-9_-]{1,64}"
_PATH = r'(?:\.(?:"[^"]*"|[^."?\s]+))*'
_INPUT = re.compile(rf"input\.(?P<name>{_NAME})(?P<path>{_PATH})")
_ITEM = re.compile(rf"(?P<name>item)(?P<path>{_PATH})")
_LAST = re.compile(rf"(?P<name>last)(?P<path>{_PATH})")
_INDEX_OF = re.compile(r"(?P<name>index)(?P<path>)")
_STANDARDS = re.compile(rf"(?P<name>standards)(?P<path>{_PATH})")
#: A key whose identifier, if any, is quoted, and a place inside; any other text with a colon is a key from end to end.
_KEY = re.compile(rf'(?P<name>{_NAME}:{_NAME})(?::"(?P<identifier>[^"]*)")?(?P<path>{_PATH})')
_KINDS = (
    *(("input", _INPUT), ("standards", _STANDARDS), ("item", _ITEM), ("last", _LAST)),
    *(("index", _INDEX_OF), ("entry", _KEY)),
)
_STEP = re.compile(r'\.(?:"([^"]*)"|([^."?\s]+))')
_TOKEN = re.compile(r'\$\$\{|\$\{((?:"[^"]*+"|[^}"]++)*+)\}|\$\{')
_INDEX = re.compile(r"[0-9]{1,9}")
_CURE = (
    "write ${input.name} for an input, ${phase:data_type} for an entry, ${standards} for the standards, "
    "and $${ for the two characters themselves"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """What one `${...}` names: an input by its name, an entry by its key, the standards, an item or round.

    *path* leads inside the value; *optional* tells that null serves when nothing is there. *text* is as it was written.
    """

    kind: Literal["input", "entry", "standards", "item", "last", "index"]
    name: str
    path: tuple[str, ...] = ()
    optional: bool = False
    text: str = ""

    @property
    def phase(self) -> str:
        """The phase that the entry belongs to, "" for what is no entry."""
        return self.name.partition(":")[0] if self.kind == "entry" else ""


#: Returns the whole value that a reference names, its path not followed; None for an optional one that is not there.
#: Raises InvalidInput when something has to be there and is not.
Lookup = Callable[[Reference], JsonValue]


def read_text(text: str) -> tuple[str | Reference, ...]:
    """Return the pieces of *text*: references, and what stands between them.

    Raises:
        InvalidInput: a reference is not closed or names nothing; the message says what can be written.
    """
    pieces: list[str | Reference] = []
    end = 0
    for token in _TOKEN.finditer(text):
        pieces.append(text[end : token.start()])
        if token[0] == "$${":
            pieces.append("${")
        elif token[1] is None:
            raise InvalidInput(f"the reference {text[token.start() :][:40]!r} is not closed; write '}}' behind it")
        else:
            pieces.append(read_reference(token[1]))
        end = token.end()
    pieces.append(text[end:])
    return tuple(piece for piece in pieces if piece != "")


def read_reference(body: str) -> Reference:
    """Return what *body*, the text between `${` and `}`, names.

    Raises:
        InvalidInput: it names nothing, or the key breaks the naming rule.
    """
    text = f"${{{body}}}"
    inner, optional = _without_mark(body.strip())
    for kind, pattern in _KINDS:
        found = pattern.fullmatch(inner)
        if found:
            name = found["name"]
            if kind == "entry" and found["identifier"] is not None:
                name = str(read_key(f"{name}:{found['identifier']}"))
            steps = tuple(quoted or plain for quoted, plain in _STEP.findall(found["path"]))
            return Reference(kind, name, steps, optional, text)  # type: ignore[arg-type] # one of those above
    if ":" not in inner or '"' in inner:
        raise InvalidInput(f"{text!r} names nothing; {_CURE}")
    return Reference("entry", str(read_key(inner)), (), optional, text)


def read_entry(text: str) -> Reference:
    """Return the entry that *text* names as `reads` does: its key, `?` behind one that may be missing.

    Raises:
        InvalidInput: the key breaks the naming rule.
    """
    if text.startswith("${"):
        raise InvalidInput(f"{text!r} must be the key alone; write {text[2:].rstrip('}')!r}")
    key, optional = _without_mark(text)
    return Reference("entry", str(read_key(key)), (), optional, text)


def value_at(reference: Reference, lookup: Lookup) -> JsonValue:
    """Return the value at *reference*.

    Raises:
        InvalidInput: nothing is there and null may not serve; the message names what is there instead.
    """
    value = lookup(reference)
    for depth, step in enumerate(reference.path):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and _INDEX.fullmatch(step) and int(step) < len(value):
            value = value[int(step)]
        elif reference.optional:
            return None
        else:
            above = ".".join((reference.name, *reference.path[:depth]))
            raise InvalidInput(f"{reference.text} leads nowhere: {above!r} is {_content(value)}, without {step!r}")
    return value


def called(value: JsonValue) -> str:
    """Return what *value* is, in one or two words: "a text", "a number", "null", ..."""
    if value is None:
        return "null"
    for kind, word in ((bool, "true or false"), (str, "a text"), (list, "a list"), (dict, "an object")):
        if isinstance(value, kind):
            return word
    return "a number"


def is_json(value: JsonValue) -> bool:
    """Return whether JSON can say *value*: it knows no infinite number, and nothing that is none."""
    if isinstance(value, float):
        return math.isfinite(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(is_json(part) for part in parts)


def _without_mark(text: str) -> tuple[str, bool]:
    return (text[:-1], True) if text.endswith("?") else (text, False)


def _content(value: JsonValue) -> str:
    if isinstance(value, dict):
        return f"an object with {listed(value)}"
    return f"a list of {len(value)}" if isinstance(value, list) else called(value)
