"""JSON files of documents, as `memory export` has them: read with how they are written, and written back byte for byte.

How a file is written is its *form*: a short text that is kept beside the document. Indentation, separators, escapes,
which lists and objects stand on one line, line ends and a byte order mark are rules; a file that follows no rules
(aligned by hand, numbers such as `1.50`) is kept word for word until its document is edited, and says so.
"""

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from itertools import zip_longest
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.files.forms import JsonForm, form_of, text_of
from tasklore.memory.documents.items import METADATA, Body

#: Levels of lists and objects within each other that a file may have: far above any document that is accepted.
MAX_DEPTH = 100
#: Characters of a line that are shown where a form does not fit.
_SHOWN = 60

_BOM = b"\xef\xbb\xbf"
_SURROGATE = re.compile("[\ud800-\udfff]")


class FormattedDocument(BaseModel):
    """What a file holds: its content, how it is written, and the first line that no rules reproduce (None: they do)."""

    model_config = ConfigDict(frozen=True)

    body: dict[str, JsonValue]
    form: str
    irregular: str | None = None


def read(content: bytes) -> FormattedDocument:
    """Return the document in *content*; `write` with its form gives the same bytes while nothing is edited.

    Raises:
        InvalidInput: it is no UTF-8, no JSON object, names something twice, or holds what JSON or text cannot.
    """
    try:
        text = content.removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error
    body = _load(text)
    form = form_of(text).model_copy(
        update={
            "bom": content.startswith(_BOM),
            "metadata": (body[METADATA],) if METADATA in body else (),
            "digest": _digest(body),
        }
    )
    written = text_of(body, form)
    if written == text:
        return FormattedDocument(body=body, form=_dump(form))
    form = form.model_copy(update={"verbatim": text})
    return FormattedDocument(
        body=body, form=_dump(form), irregular=_first_difference(text, written)
    )


def write(body: Mapping[str, JsonValue], form: str = "") -> bytes:
    """Return the file of *body* in *form*; an empty form is that of a document which never was a file.

    What the file was before it was imported comes back byte for byte when the content is the same, whatever was stamped
    into its metadata since.

    Raises:
        InvalidInput: *form* is none of `read`.
    """
    try:
        rules = JsonForm.model_validate_json(form) if form else JsonForm()
    except ValueError as error:
        raise InvalidInput(
            f"form {form[:_SHOWN]!r} is not the form of a file; import the file again"
        ) from error
    whole = dict(body)
    if rules.digest and _digest(whole) == rules.digest:
        if rules.verbatim is not None:
            return _bytes(rules.verbatim, rules)
        # The one metadata that the file had goes where the present one is; none when it had none.
        whole = {
            name: value
            for name, value in whole.items()
            if name != METADATA or rules.metadata
        }
        whole |= {METADATA: rules.metadata[0]} if METADATA in whole else {}
    return _bytes(text_of(whole, rules), rules)


def _load(text: str) -> Body:
    try:
        body = json.loads(
            text,
            object_pairs_hook=_once_each,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"line {error.lineno}, character {error.colno}: invalid JSON ({error.msg}); "
            "fix it"
        ) from error
    except RecursionError as error:
        raise InvalidInput(
            f"lists and objects lie more than {MAX_DEPTH} deep in each other; flatten them"
        ) from error
    except ValueError as error:
        raise InvalidInput(
            "a number has more digits than are kept; write it as text"
        ) from error
    if not isinstance(body, dict):
        raise InvalidInput(
            f"a document is a JSON object, this file holds {type(body).__name__}; put it under a name"
        )
    lone = _SURROGATE.search(json.dumps(body, ensure_ascii=False))
    if lone:
        raise InvalidInput(f"\\u{ord(lone[0]):04x} is half of a character; take it out")
    if _depth(body) > MAX_DEPTH:
        raise InvalidInput(
            f"lists and objects lie more than {MAX_DEPTH} deep in each other; flatten them"
        )
    return body


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(
            f"{twice!r} is in one object twice, and one of them would be lost; give it another name"
        )
    return found


def _refuse_constant(word: str) -> None:
    raise InvalidInput(f"{word} is not valid JSON; write null or a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise InvalidInput(
            f"{digits[:_SHOWN]} is larger than a number may be; write it as text"
        )
    return number


def _depth(value: JsonValue) -> int:
    """Return how many lists and objects lie in each other at most, counted without recursion."""
    depth = 0
    level = [value]
    while level := [
        inner
        for holder in level
        if isinstance(holder, dict | list)
        for inner in (holder.values() if isinstance(holder, dict) else holder)
    ]:
        depth += 1
    return depth


def _bytes(text: str, form: JsonForm) -> bytes:
    return (_BOM if form.bom else b"") + text.encode("utf-8")


def _digest(body: Mapping[str, JsonValue]) -> str:
    """Return a digest of *body* without its metadata; the order of names counts."""
    content = [(name, value) for name, value in body.items() if name != METADATA]
    return blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


def _dump(form: JsonForm) -> str:
    return form.model_dump_json(exclude_defaults=True)


def _first_difference(text: str, written: str) -> str:
    """Return what the rules make another thing of, for a person."""
    lines = enumerate(
        zip_longest(text.split("\n"), written.split("\n"), fillvalue=""), start=1
    )
    number, (was, would) = next(
        (number, pair) for number, pair in lines if pair[0] != pair[1]
    )
    return f"line {number} is {was.strip()[:_SHOWN]!r}, and by the rules of the file {would.strip()[:_SHOWN]!r}"
