"""The TOML files of a story as models, and the problems of a file with their key paths."""

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tasklore.commands.stories.folder import StoryFolder
from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.stories import (
    Relations,
    StoryMemory,
    StoryPart,
    StorySettings,
    StoryThread,
)
from tasklore.contracts.faults import complaint_of, nearest

SETTINGS = "story.toml"
RELATIONSHIPS = "relationships.toml"
MEMORIES = "memories.toml"
THREADS = "threads.toml"
KNOWLEDGE = "knowledge.toml"

#: Fields that an error lists, and characters of a value that it repeats.
_MOST_LISTED = 12
_LONGEST_VALUE = 60

T = TypeVar("T", bound=StoryPart)


class MemoriesFile(StoryPart):
    """`memories.toml`: memories of characters from before the first response."""

    memories: tuple[StoryMemory, ...] = ()


class ThreadsFile(StoryPart):
    """`threads.toml`: threads that are open before the first response."""

    threads: tuple[StoryThread, ...] = ()


class KnowledgeFile(StoryPart):
    """`knowledge.toml`: facts about the world before the first response."""

    facts: tuple[KnownFact, ...] = ()


#: The model of each file.
FILES: dict[str, type[StoryPart]] = {
    SETTINGS: StorySettings,
    RELATIONSHIPS: Relations,
    MEMORIES: MemoriesFile,
    THREADS: ThreadsFile,
    KNOWLEDGE: KnowledgeFile,
}


def read_table(folder: StoryFolder, name: str, model: type[T]) -> T | None:
    """Return the file *name* as *model*; None when it does not exist or has problems."""
    if (text := folder.read(name)) is None:
        return None
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Also a whole number of thousands of digits, which Python does not read.
        folder.refuse(
            name,
            f"this is not valid TOML: {error}; fix that line, or the one before it",
        )
        return None
    try:
        return model.model_validate(raw, extra="forbid")
    except ValidationError as error:
        problems: dict[str, str] = {}
        for path, problem in _problems(error, model, raw):
            problems.setdefault(path, problem)
        for path, problem in problems.items():
            folder.refuse(f"{name}: {path}" if path else name, problem)
        return None


def _problems(
    error: ValidationError, model: type[BaseModel], raw: Any
) -> Iterator[tuple[str, str]]:
    """Yield key path and complaint of each part of *error*."""
    details = error.errors(include_url=False)
    # A list is also called too short when its items are refused.
    for detail in [one for one in details if one["type"] != "too_short"] or details:
        place = tuple(part for part in detail["loc"] if part != "[key]")
        yield key_path(place, raw), _complaint(detail, place, model)


def _complaint(
    detail: ErrorDetails, place: Sequence[str | int], model: type[BaseModel]
) -> str:
    if detail["type"] == "extra_forbidden":
        known = _fields_at(model, place[:-1])
        listed = "; known are " + ", ".join(map(repr, known[:_MOST_LISTED]))
        return f"is not known{nearest(str(place[-1]), known) or listed}"
    complaint = complaint_of(detail)
    if detail["type"] in ("value_error", "missing"):
        return complaint
    complaint = complaint.replace("an object", "a table").partition(
        ", unable to parse"
    )[0]
    if isinstance(detail["input"], str | int | float):
        complaint += f", not {repr(detail['input'])[:_LONGEST_VALUE]}"
    return complaint


def key_path(place: Sequence[str | int], raw: Any = None) -> str:
    """Return *place* as a path such as "memories[2].significance", with the id of the item in *raw*."""
    path = ""
    shown = ""
    for part in place:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
        reached = raw.get(part) if isinstance(raw, dict) else None
        if isinstance(raw, list) and isinstance(part, int) and part < len(raw):
            reached = raw[part]
        raw = reached
        if (
            isinstance(part, int)
            and isinstance(raw, dict)
            and isinstance(raw.get("id") or raw.get("name"), str)
        ):
            shown = f" ({raw.get('id') or raw.get('name')})"
    return path + shown


def _fields_at(model: Any, place: Sequence[str | int]) -> list[str]:
    """Return the fields of the part at *place* of *model*."""
    for part in place:
        if isinstance(model, type) and issubclass(model, BaseModel):
            field = model.model_fields.get(str(part))
            model = field.annotation if field is not None else None
        else:
            inner = [one for one in get_args(model) if one is not Ellipsis]
            model = inner[-1] if inner and get_origin(model) in (dict, tuple) else None
    return (
        list(model.model_fields)
        if isinstance(model, type) and issubclass(model, BaseModel)
        else []
    )
