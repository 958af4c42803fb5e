"""References `${...}`: their grammar, and the values in their places.

docs/reference/pipelines.md has the table of them. Beyond it: `${analysis:file:src/a.py}` is an entry with an
identifier, which goes on to the end; `${analysis:file:"src/a.py".lines}` is a place inside such an entry.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.session_keys import read_key
from tasklore.supervisor.pipelines.declaration.problems import quote_names

Kind = Literal["input", "entry", "standards", "item", "last", "index"]

_NAME = r"[A-Za-z0-9_-]{1,64}"
_PATH = r'(?P<path>(?:\.(?:"[^"]*"|[^."?\s]+))*)'
#: A key has its identifier, if any, in quotes; any other text with a colon is a key from end to end.
_KINDS: dict[Kind, re.Pattern[str]] = {
    "input": re.compile(rf"input\.(?P<name>{_NAME}){_PATH}"),
    "standards": re.compile(rf"(?P<name>standards){_PATH}"),
    "item": re.compile(rf"(?P<name>item){_PATH}"),
    "last": re.compile(rf"(?P<name>last){_PATH}"),
    "index": re.compile(r"(?P<name>index)(?P<path>)"),
    "entry": re.compile(rf'(?P<name>{_NAME}:{_NAME}(?P<identifier>:"[^"]*")?){_PATH}'),
}
_STEP = re.compile(r'\.(?:"([^"]*)"|([^."?\s]+))')
_TOKEN = re.compile(r'\$\$\{|\$\{((?:"[^"]*+"|[^}"]++)*+)\}|\$\{')
_INDEX = re.compile(r"[0-9]{1,9}")
_CURE = (
    "write ${input.name} for an input, ${phase:data_type} for an entry, ${standards} for the standards, "
    "and $${ for the two characters themselves"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One `${...}`: an input by its name, an entry by its key, the standards, an item or a round.

    *path* leads inside the value; an *optional* one is null when nothing is there. *text* is as it was written.
    """

    kind: Kind
    name: str
    path: tuple[str, ...] = ()
    optional: bool = False
    text: str = ""

    @property
    def phase(self) -> str:
        """The phase that the entry belongs to, "" for other kinds."""
        return self.name.partition(":")[0] if self.kind == "entry" else ""


#: Returns the whole value that a reference names, its path not followed; None for an optional one that is not there.
#: Raises InvalidInput when something has to be there and is not.
Lookup = Callable[[Reference], JsonValue]


def read_text(text: str) -> tuple[str | Reference, ...]:
    """Split *text* into references and the text between them.

    Raises:
        InvalidInput: a reference is not closed or names nothing; the message names the forms.
    """
    pieces: list[str | Reference] = []
    end = 0
    for token in _TOKEN.finditer(text):
        pieces.append(text[end : token.start()])
        if token[0] == "$${":
            pieces.append("${")
        elif token[1] is None:
            raise InvalidInput(
                f"the reference {text[token.start() :][:40]!r} is not closed; write '}}' behind it"
            )
        else:
            pieces.append(read_reference(token[1]))
        end = token.end()
    pieces.append(text[end:])
    return tuple(piece for piece in pieces if piece != "")


def read_reference(body: str) -> Reference:
    """Read *body*, the text between `${` and `}`.

    Raises:
        InvalidInput: it names nothing, or the key breaks the naming rule.
    """
    text = f"${{{body}}}"
    inner = body.strip().removesuffix("?")
    optional = body.strip().endswith("?")
    for kind, pattern in _KINDS.items():
        if found := pattern.fullmatch(inner):
            name = (
                str(read_key(found["name"].replace('"', "")))
                if kind == "entry"
                else found["name"]
            )
            steps = tuple(
                quoted or plain for quoted, plain in _STEP.findall(found["path"])
            )
            return Reference(
                kind=kind, name=name, path=steps, optional=optional, text=text
            )
    if ":" not in inner or '"' in inner:
        raise InvalidInput(f"{text!r} names nothing; {_CURE}")
    return Reference(
        kind="entry", name=str(read_key(inner)), path=(), optional=optional, text=text
    )


def read_entry(text: str) -> Reference:
    """Read an item of `reads`: the key of an entry, `?` behind one that may be missing.

    Raises:
        InvalidInput: the key breaks the naming rule.
    """
    if text.startswith("${"):
        raise InvalidInput(
            f"{text!r} must be the key alone; write {text[2:].rstrip('}')!r}"
        )
    return Reference(
        kind="entry",
        name=str(read_key(text.removesuffix("?"))),
        path=(),
        optional=text.endswith("?"),
        text=text,
    )


def value_at(reference: Reference, lookup: Lookup) -> JsonValue:
    """Return the value at *reference*.

    Raises:
        InvalidInput: nothing is there and the reference is not optional; the message names the nearest value.
    """
    value = lookup(reference)
    for depth, step in enumerate(reference.path):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif (
            isinstance(value, list)
            and _INDEX.fullmatch(step)
            and int(step) < len(value)
        ):
            value = value[int(step)]
        elif reference.optional:
            return None
        else:
            above = ".".join((reference.name, *reference.path[:depth]))
            content = (
                f"an object with {quote_names(value)}"
                if isinstance(value, dict)
                else kind_of(value)
            )
            content = f"a list of {len(value)}" if isinstance(value, list) else content
            raise InvalidInput(
                f"{reference.text} leads nowhere: {above!r} is {content}, without {step!r}"
            )
    return value


def resolve(value: JsonValue, lookup: Lookup) -> JsonValue:
    """Return *value* with the value of every reference in its place.

    A text that is one reference becomes the value as it is; in a longer one, texts stand as they are and anything else
    as compact JSON. Names of properties are no place for references and stay.

    Raises:
        InvalidInput: a reference cannot be read, or leads nowhere; or whatever *lookup* raises.
    """
    if isinstance(value, str):
        pieces = read_text(value)
        found = [
            piece if isinstance(piece, str) else value_at(piece, lookup)
            for piece in pieces
        ]
        if len(pieces) == 1 and isinstance(pieces[0], Reference):
            return found[0]
        write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        return "".join(one if isinstance(one, str) else write(one) for one in found)
    if isinstance(value, list):
        return [resolve(item, lookup) for item in value]
    if isinstance(value, dict):
        return {name: resolve(item, lookup) for name, item in value.items()}
    return value


def kind_of(value: JsonValue) -> str:
    """Return the kind of *value* in one or two words: "a text", "a number", "null", ..."""
    if value is None:
        return "null"
    for kind, word in (
        (bool, "true or false"),
        (str, "a text"),
        (list, "a list"),
        (dict, "an object"),
    ):
        if isinstance(value, kind):
            return word
    return "a number"


def is_json(value: JsonValue) -> bool:
    """Return whether JSON can express *value*: it has no NaN and no infinite number."""
    if isinstance(value, float):
        return math.isfinite(value)
    parts = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, list)
        else ()
    )
    return all(is_json(part) for part in parts)


def references_in(value: JsonValue) -> tuple[Reference, ...]:
    """Return every reference in *value*, at any depth, in the order of reading.

    Raises:
        InvalidInput: one of them cannot be read.
    """
    return tuple(
        piece
        for text in texts_in(value)
        for piece in read_text(text)
        if isinstance(piece, Reference)
    )


def texts_in(value: JsonValue) -> Iterator[str]:
    """Yield every text in *value* but names of properties."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)
