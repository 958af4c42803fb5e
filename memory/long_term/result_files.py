"""Remembered results in a file, by keys such as `analyze_budget:50000:42000:no_history`, as exports write them.

A key is the task's name and its values in declared field order, joined by `:`; a list is joined by `,`, an empty one is
`no_{field}`, None is `~none`. Text is percent-escaped; a value without such a spelling (a unit, a nested list) is
`~json` and its percent-escaped JSON.

Other writers of this form cut a list after five values, so an entry with exactly five may answer a longer question.
Our own files say which five are all there are: `complete` is a digest of the result of such a key. Readers that do not
know it ignore it, and an entry that such a writer puts over ours no longer fits the digest.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote, unquote

from tasklore.contracts.errors import InvalidInput

#: Values after which other writers of this form cut a list.
CUT_AT = 5

_NONE = "~none"
_JSON = "~json"
_EMPTY_TEXT = "%"


@dataclass(frozen=True, slots=True)
class TaskForm:
    """The fields of one task in declared order, and which of them are lists."""

    fields: tuple[str, ...]
    lists: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ResultEntry:
    """One entry of a file: raw values by field, as a `Parameters` class reads them, and the result."""

    key: str
    task_name: str
    parameters: dict[str, Any]
    result: Any

    @property
    def complete(self) -> str | None:
        """What a file says of an entry with a list of five values, all of them; None for others."""
        return _digest(self.result) if _may_be_cut(self.parameters) else None


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file: `entries` may be served, `quarantined` may be cut, `refused` maps a key to the reason."""

    entries: tuple[ResultEntry, ...]
    quarantined: tuple[ResultEntry, ...]
    refused: dict[str, str]


def read_document(
    document: Mapping[str, Any], tasks: Mapping[str, TaskForm]
) -> ResultFile:
    """Return what the JSON of a file holds for *tasks*, by name; `tasks` of it is an object."""
    complete = document.get("complete")
    digests = complete if isinstance(complete, dict) else {}
    entries = []
    quarantined = []
    refused = {}
    for key, result in document["tasks"].items():
        try:
            task_name, parameters = parse_key(key, tasks)
        except InvalidInput as error:
            refused[key] = str(error)
            continue
        entry = ResultEntry(key, task_name, parameters, result)
        if _may_be_cut(parameters) and digests.get(key) != _digest(result):
            quarantined.append(entry)
        else:
            entries.append(entry)
    return ResultFile(tuple(entries), tuple(quarantined), refused)


def entry_of(
    task_name: str, form: TaskForm, parameters: Mapping[str, Any], result: Any
) -> ResultEntry:
    """Return the file entry for *parameters*, the JSON values of every field; lists are written whole.

    Raises:
        InvalidInput: a field of the form is missing.
    """
    missing = [field for field in form.fields if field not in parameters]
    if missing:
        raise InvalidInput(
            f"{task_name}: {', '.join(missing)} missing; an entry is exported with every field"
        )
    raw = {field: parameters[field] for field in form.fields}
    spelled = [
        _spell_field(field, value, field in form.lists) for field, value in raw.items()
    ]
    return ResultEntry(":".join((task_name, *spelled)), task_name, raw, result)


def parse_key(key: str, tasks: Mapping[str, TaskForm]) -> tuple[str, dict[str, Any]]:
    """Return the task's name and the raw values by field that *key* spells; numbers stay text as they were written.

    Raises:
        InvalidInput: the task is not one of *tasks*, or there are more values than it has fields.
    """
    task_name, *values = key.split(":")
    form = tasks.get(task_name)
    if form is None:
        raise InvalidInput(
            f"task {task_name!r} is not one of {', '.join(tasks) or 'none'}"
        )
    if len(values) > len(form.fields):
        raise InvalidInput(
            f"{len(values)} values for the {len(form.fields)} fields of {task_name}"
        )
    # A file written before the last fields were declared leaves them to their defaults.
    return task_name, {
        field: _parse_field(field, value, field in form.lists)
        for field, value in zip(form.fields, values, strict=False)
    }


def _parse_field(field: str, spelled: str, is_list: bool) -> Any:
    if not is_list or spelled == _NONE:
        return _parse_value(spelled)
    if spelled == f"no_{field}":
        return []
    items = spelled.split(",")
    # The mark of a list that holds nothing but None.
    if items == [_NONE, ""]:
        items.pop()
    return [_parse_value(item) for item in items]


def _parse_value(spelled: str) -> Any:
    if spelled == _NONE:
        return None
    if spelled.startswith(_JSON):
        try:
            return json.loads(unquote(spelled[len(_JSON) :]))
        except ValueError as error:
            raise InvalidInput(f"{spelled!r} is not escaped JSON") from error
    return "" if spelled == _EMPTY_TEXT else unquote(spelled)


def _spell_field(field: str, value: Any, is_list: bool) -> str:
    if not is_list or not isinstance(value, list | tuple):
        return _spell_value(value)
    if not value:
        return f"no_{field}"
    spelled = ",".join(map(_spell_value, value))
    if spelled == _NONE:
        return f"{_NONE},"
    return f"%6E{spelled[1:]}" if spelled == f"no_{field}" else spelled


def _spell_value(value: Any) -> str:
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return format(Decimal(repr(value)), "f")
    if isinstance(value, str):
        return quote(value, safe="").replace("~", "%7E") if value else _EMPTY_TEXT
    return _JSON + quote(
        json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False),
        safe="",
    )


def _may_be_cut(parameters: Mapping[str, Any]) -> bool:
    return any(
        isinstance(value, list | tuple) and len(value) == CUT_AT
        for value in parameters.values()
    )


def _digest(result: Any) -> str:
    canonical = json.dumps(result, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode(), digest_size=8).hexdigest()
