"""What is wrong, or odd, in the files of a story: one sentence each, with its file, its line and its cure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from contracts.errors import InvalidInput
from contracts.faults import complaint_of
from quantities.amounts.spellings import shown
from supervisor.pipelines.declaration.problems import Place, suggest

#: How an item of each list is called.
ITEMS = {"memories": "memory", "threads": "thread", "facts": "fact", "bonds": "bond", "tiers": "tier"}

#: Characters of a sentence.
_LONGEST = 500

#: What pydantic calls as Python does, in words of a file.
_IN_WORDS = {
    "tuple_type": "a list in [ ]",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "string_type": "a text in quotes",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
}
_COUNTED = {"too_long": "items", "string_too_long": "signs"}
_NAME_PATTERN = "1 to 64 letters, digits, '_' or '-'"
_OF_FIELD = re.compile(r"([a-z_]+): ")
#: How what `tomllib` complains of begins, and what is mostly to be done about it.
_TOML_CURES = (
    (r"Illegal character '\n'", "close the quotes at the end of the text, or put three around one of several lines"),
    ("Illegal character", "remove that sign, or retype it"),
    ("Invalid statement", "write name = value"),
    ("Unescaped", "write a backslash twice, or put the text in single quotes"),
    ("Expected '='", "write name = value, and quotes around a name with blanks in it"),
    ("Invalid initial character for a key", "write name = value"),
    ("Invalid value", "put quotes around a text, and write true and false in small letters"),
    ("Expected newline", "put a line of its own to each name, and quotes around a whole text"),
    ("Cannot", "give each name and each table once"),
    ("Duplicate", "give each name once"),
)
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$| \(at end of document\)$")


class InvalidStory(InvalidInput):
    """A story's folder cannot be read; `problems` holds one sentence each, with its file, its line and its cure.

    `warnings` holds what is only odd beside them.
    """

    def __init__(self, problems: Sequence[str], warnings: Sequence[str] = ()) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)


@dataclass(frozen=True, slots=True, order=True)
class _Remark:
    file: str
    line: int
    text: str


@dataclass(slots=True)
class Findings:
    """What was found in the files below *label*, the folder as it was given."""

    label: str
    _problems: list[_Remark] = field(default_factory=list)
    _warnings: list[_Remark] = field(default_factory=list)

    def refuse(self, file: str, line: int | None, text: str) -> None:
        """Note what has to be mended before the story can be used; *line* None is the file as a whole."""
        self._problems.append(_Remark(file, line or 0, text))

    def warn(self, file: str, line: int | None, text: str) -> None:
        """Note what is probably a mistake, and can be lived with."""
        self._warnings.append(_Remark(file, line or 0, text))

    @property
    def problems(self) -> tuple[str, ...]:
        """What has to be mended, by file and line."""
        return self._told(self._problems)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is odd, by file and line."""
        return self._told(self._warnings)

    def has_refused(self, folder: str) -> bool:
        """Return whether something in *folder* has to be mended."""
        return any(one.file == folder or one.file.startswith(f"{folder}/") for one in self._problems)

    def demand_none(self) -> None:
        """Return when nothing has to be mended.

        Raises:
            InvalidStory: something has.
        """
        if self._problems:
            raise InvalidStory(self.problems, self.warnings)

    def _told(self, remarks: list[_Remark]) -> tuple[str, ...]:
        return tuple(
            f"{self.label}/{one.file}".rstrip("/") + (f":{one.line}" if one.line else "") + f": {_short(one.text)}"
            for one in sorted(remarks)
        )


def _short(text: str) -> str:
    """Return *text*, its middle left out where somebody's key of a thousand signs stands in it."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"


def toml_remark(message: str, text: str) -> tuple[int, str]:
    """Return the line that `tomllib` means by *message* about *text*, and what it says, with a cure."""
    found = _AT_LINE.search(message)
    said = message[: found.start()] if found else message
    if not (found and found[1]):
        line = text.rstrip().count("\n") + 1
        return line, f"this is no TOML: {said} at the end of the file; close the bracket or the quotes that are open"
    cure = next((cure for begin, cure in _TOML_CURES if said.startswith(begin)), "mend this line or the one before it")
    return int(found[1]), f"this is no TOML: {said}; {cure}"


def remarks_in(error: ValidationError, model: type[BaseModel], raw: object) -> list[tuple[Place, str]]:
    """Return what *error* says of *raw*, read as *model*: places and sentences, once for every place."""
    found: dict[Place, str] = {}
    details = error.errors(include_url=False)
    # A list is also called too short when what is in it is refused.
    for detail in [one for one in details if one["type"] != "too_short"] or details:
        place = _place(detail)
        found.setdefault(place, in_words(place, raw) + _sentence(detail, place, model))
    return list(found.items())


def _place(detail: ErrorDetails) -> Place:
    """Return the place of what *detail* is about; a check of a whole table begins with the name of its field."""
    place = tuple(part for part in detail["loc"] if part != "[key]")
    named = _OF_FIELD.match(complaint_of(detail)) if detail["type"] == "value_error" else None
    return (*place, named[1]) if named is not None else place


def in_words(place: Place, raw: object) -> str:
    """Return "memory 3 ('MEM-001-key'): " for a place in an item of a list, "" for any other."""
    if len(place) < 2 or place[0] not in ITEMS or not isinstance(place[1], int):
        return ""
    return f"{item_name(str(place[0]), place[1], _at(raw, place[:2]))}: "


def item_name(block: str, index: int, item: object) -> str:
    """Return how item *index* of the list *block* is called: by its number, from 1, and its id or name."""
    known = item if isinstance(item, dict) else {}
    said = known.get("id") or known.get("name")
    return f"{ITEMS[block]} {index + 1}" + (f" ({said!r})" if isinstance(said, str) else "")


def _at(raw: object, place: Place) -> object:
    for part in place:
        if isinstance(raw, dict):
            raw = raw.get(part)
        elif isinstance(raw, list) and isinstance(part, int) and part < len(raw):
            raw = raw[part]
        else:
            return None
    return raw


def _sentence(detail: ErrorDetails, place: Place, model: type[BaseModel]) -> str:
    inner = place[2:] if len(place) > 1 and place[0] in ITEMS and isinstance(place[1], int) else place
    field_name = ".".join(map(str, inner)) or "it"
    said, kind = shown(detail["input"]), detail["type"]
    if kind == "missing" and place and isinstance(place[-1], int):
        return f"{'.'.join(map(str, inner[:-1]))} needs one more; give two names"
    if kind == "missing":
        return f"{field_name} is missing; give it"
    if kind == "extra_forbidden":
        known = _fields_at(model, place[:-1])
        return f"{field_name} is not known{suggest(str(place[-1]), known, 'known are')}"
    if "[key]" in detail["loc"]:
        return f"the name {said} {_pattern_words(detail)}"
    if kind == "string_pattern_mismatch":
        return f"{field_name} {said} {_pattern_words(detail)}"
    if kind in ("too_short", "string_too_short"):
        return f"{field_name} is empty; write something, or leave it out"
    if kind in ("too_long", "string_too_long"):
        return f"{field_name} has more than {detail['ctx']['max_length']} {_COUNTED[kind]}; shorten it"
    message = _IN_WORDS.get(kind) or complaint_of(detail).removeprefix("Input should be ")
    if kind == "value_error":
        return message
    return f"{field_name} must be {message[:1].lower()}{message[1:]}, not {said}"


def _pattern_words(detail: ErrorDetails) -> str:
    pattern = str(detail.get("ctx", {}).get("pattern", ""))
    if "A-Za-z0-9_-" in pattern:
        return f"must be {_NAME_PATTERN}"
    if "a-z0-9_" in pattern:
        return "must begin with a small letter, and go on with small letters, digits or '_'; at most 64 of them"
    return "must be 1 to 300 signs"


def _fields_at(model: type[BaseModel], place: Place) -> list[str]:
    """Return the fields that stand at *place* of *model*."""
    found: Any = model
    for part in place:
        found = _inside(found, part)
    return list(found.model_fields) if isinstance(found, type) and issubclass(found, BaseModel) else []


def _inside(annotation: Any, part: str | int) -> Any:
    """Return the type of what stands at *part* of a value of the type *annotation*; None when that is not known."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        known = annotation.model_fields.get(str(part))
        return known.annotation if known is not None else None
    inner = [one for one in get_args(annotation) if one is not Ellipsis]
    return inner[-1] if inner and get_origin(annotation) in (dict, tuple) else None
