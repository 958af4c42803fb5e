"""From the words of a command to a request: each value as it was typed; the server reads spans, amounts and dates."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasklore.commands.operations.entries import spell_name
from tasklore.commands.operations.transport import Request, quote_path
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.manifest import FieldEntry, OperationEntry

#: A value that names something kept elsewhere, where a file may be meant too.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: Bytes of a local file that becomes one value: more than any server takes in a body.
_MOST_BYTES = 64 * 1024**2

Given = Mapping[str, Any]


def make_request(entry: OperationEntry, given: Given) -> Request:
    """Return the request of *entry* with the values *given* by the names of its fields; None is not given.

    Raises:
        InvalidInput: a value is not of its kind, or its file cannot be read; names the option and the cure.
    """
    return fill_request(entry, read_values(entry, given))


def read_values(entry: OperationEntry, given: Given) -> dict[str, Any]:
    """Return the values *given* by the names of fields as they are sent, each local file and stdin read once.

    Raises:
        InvalidInput: as `make_request`.
    """
    return {
        field["name"]: read_value(field, given.get(field["name"]))
        for field in entry["fields"]
    }


def fill_request(entry: OperationEntry, values: Given) -> Request:
    """Return the request of *entry* with *values* as `read_values` has them; no file is read.

    Raises:
        InvalidInput: a value cannot be sent; names the option and the cure.
    """
    path = entry["path"]
    query: list[tuple[str, str]] = []
    headers: list[tuple[str, str]] = []
    body: dict[str, Any] = {}
    for field in entry["fields"]:
        if field["kind"] == "lines":
            continue
        value = values.get(field["name"])
        if value is None:
            continue
        match field["place"]:
            case "path":
                path = path.replace(
                    f"{{{field['name']}}}", quote_path(_spell(field, value))
                )
            case "query":
                query += [(field["name"], one) for one in _spell_all(field, value)]
            case "header":
                headers.append((field["name"], _spell_header(field, value)))
            case "body":
                body[field["name"]] = value
    has_body = any(
        field["place"] == "body" and field["kind"] != "lines"
        for field in entry["fields"]
    )
    return Request(
        method=entry["method"],
        path=path,
        query=tuple(query),
        headers=tuple(headers),
        body=encode(body) if has_body else None,
    )


def encode(body: Mapping[str, Any]) -> bytes:
    """Return *body* as it is sent.

    Raises:
        InvalidInput: it is no JSON in valid Unicode.
    """
    try:
        text = json.dumps(body, ensure_ascii=False, default=str, allow_nan=False)
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "a value contains bytes that are not UTF-8; type it in UTF-8"
        ) from error
    except ValueError as error:
        raise InvalidInput(f"a value cannot be sent as JSON: {error}") from error


def read_value(field: FieldEntry, typed: Any) -> object:
    """Return *typed* as *field* is sent; None when it was not given.

    Raises:
        InvalidInput: it is not of its kind, or its file cannot be read.
    """
    if typed is None or typed in ((), []):
        return None
    match field["kind"]:
        case "words":
            return " ".join(typed)
        case "list":
            return list(typed)
        case "map":
            return _read_map(field, typed)
        case "value":
            return _read_lenient(typed)
        case "json":
            return _read_json(field, typed)
        case "file":
            return _read_document(field, typed)
        case "pipeline":
            # Imported here: it brings pydantic, and few commands take a pipeline.
            from tasklore.commands.pipelines.sources import declare, read_source

            return declare(read_source(typed))
    found: object = typed
    return found


def _read_map(field: FieldEntry, typed: Sequence[str]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for one in typed:
        name, found, value = one.partition("=")
        if not found or not name:
            raise InvalidInput(
                f"{spell_name(field)} {one!r} is not NAME=VALUE; write one such as limit=50k"
            )
        if name in read:
            raise InvalidInput(f"{spell_name(field)} names {name!r} twice; say it once")
        read[name] = _read_lenient(value)
    return read


def _read_lenient(text: str) -> Any:
    """Return the JSON that *text* is, else the text itself."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _read_json(field: FieldEntry, typed: str) -> Any:
    text = read_text(field, typed[1:]) if typed.startswith("@") else typed
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{spell_name(field)} is not valid JSON ({error}); write one such as "
            "'{\"a\": 1}', or @FILE"
        ) from error


def _read_document(field: FieldEntry, typed: str) -> Any:
    """Return the content of the file *typed*: the values of `.json` and `.toml`, the text of others."""
    path = Path(typed)
    if "NAME" in field["metavar"] and _NAME.fullmatch(typed) and not path.exists():
        return typed
    text = read_text(field, typed)
    try:
        if path.suffix == ".json":
            return json.loads(text, parse_constant=_refuse_constant)
        if path.suffix == ".toml":
            import tomllib

            return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{spell_name(field)} {typed!r} is not valid {path.suffix[1:].upper()}: "
            f"{error}; correct it"
        ) from error
    return text


def read_text(field: FieldEntry, typed: str) -> str:
    """Return the text of the local file *typed*, of the standard input for `-`.

    Raises:
        InvalidInput: it cannot be read, is no text, or is larger than any server takes.
    """
    name = spell_name(field)
    try:
        if typed == "-":
            content = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(typed).open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(
            f"{name}: cannot read {typed!r}: {why}; name a file that can be read"
        ) from error
    if len(content) > _MOST_BYTES:
        raise InvalidInput(
            f"{name}: {typed!r} is larger than {_MOST_BYTES // 1024**2} MiB; send less"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{name}: {typed!r} is not UTF-8 text; save it as UTF-8"
        ) from error


def _spell(field: FieldEntry, value: Any) -> str:
    """Return *value* as one text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if field["place"] == "path" and not text:
        raise InvalidInput(f"{spell_name(field)} is empty; name one")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{spell_name(field)} contains bytes that are not UTF-8; type it in UTF-8"
        ) from error
    return text


def _spell_all(field: FieldEntry, value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [_spell(field, one) for one in values]


def _spell_header(field: FieldEntry, value: Any) -> str:
    text = _spell(field, value)
    if not (text.isascii() and text.isprintable()):
        raise InvalidInput(
            f"{spell_name(field)} {text!r} has letters that no header has; use plain ones"
        )
    return text
