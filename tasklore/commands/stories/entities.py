"""The entity files of a story, Markdown with a name for its title."""

import re
from typing import get_args

from pydantic import ValidationError

from tasklore.commands.stories.folder import StoryFolder
from tasklore.contracts.analysis.names import fold
from tasklore.contracts.analysis.stories import Entity, EntityKind
from tasklore.contracts.faults import complaint_of, nearest
from tasklore.memory.rendering.tokens import Count

FOLDER = "entities"
_KINDS = get_args(EntityKind)

_TITLE = re.compile(r"#[ \t]+(?P<name>.+?)[ \t#]*")
_HEADING = re.compile(r"#{1,6}[ \t]")
_FIELD = re.compile(
    r"[-*+][ \t]+\**(?P<field>kind|also called)\**[ \t]*:\**[ \t]*(?P<value>.*)",
    re.IGNORECASE,
)


def read_entities(folder: StoryFolder, count: Count) -> list[Entity]:
    """Return the entities of the files in `entities`, in the order of the files."""
    files, others = folder.files(FOLDER, (".md",))
    for name in others:
        is_folder = folder.is_folder(name)
        cure = (
            "move what is in it to entities itself"
            if is_folder
            else "an entity's file ends in .md"
        )
        folder.warn(
            name, f"this {'folder' if is_folder else 'file'} is not read; {cure}"
        )
    places: dict[str, tuple[str, str]] = {}
    entities = [
        entity
        for file in files
        if (entity := _read(folder, file, count, places)) is not None
    ]
    _demand_unique_names(folder, entities, places)
    return entities


def _read(
    folder: StoryFolder, file: str, count: Count, places: dict[str, tuple[str, str]]
) -> Entity | None:
    """Return the entity of *file*, and add the places of its name and of its other names to *places*."""
    if (text := folder.read(file)) is None:
        return None
    lines = text.split("\n")
    titled = next(
        (
            (n, found)
            for n, line in enumerate(lines, 1)
            if (found := _TITLE.fullmatch(line))
        ),
        None,
    )
    if titled is None:
        folder.refuse(
            file, "it does not say of whom it is; begin it with a heading: # Name"
        )
        return None
    start, title = titled
    kind = "character"
    aliases = list[str]()
    alias_line = start
    # Fields stand between the title and the next heading.
    for number, line in enumerate(lines[start:], start + 1):
        if _HEADING.match(line):
            break
        if (found := _FIELD.fullmatch(line.strip())) is None:
            continue
        if found["field"].lower() == "also called":
            alias_line = number
            aliases += filter(
                None, (" ".join(one.split()) for one in found["value"].split(","))
            )
        elif (value := found["value"].strip()).lower() in _KINDS:
            kind = value.lower()
        else:
            cure = (
                nearest(value.lower(), _KINDS)
                or f"; known are {', '.join(map(repr, _KINDS))}"
            )
            folder.refuse(f"{file}:{number}", f"kind {value!r} is not known{cure}")
    places[file] = (f"{file}:{start}", f"{file}:{alias_line}")
    whole = text.strip("\n")
    fields = {
        "name": " ".join(title["name"].split()),
        "kind": kind,
        "aliases": list(dict.fromkeys(aliases)),
    }
    try:
        return Entity.model_validate(
            {**fields, "file": file, "text": whole, "tokens": count(whole)}
        )
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = places[file][detail["loc"][:1] == ("aliases",)]
        folder.refuse(place, f"{detail['loc'][0]}: {complaint_of(detail)}")
        return None


def _demand_unique_names(
    folder: StoryFolder, entities: list[Entity], places: dict[str, tuple[str, str]]
) -> None:
    """Refuse every name, or other name, of two entities."""
    owners: dict[str, Entity] = {}
    for one in entities:
        if (other := owners.setdefault(fold(one.name), one)) is not one:
            text = f"{one.name!r} has a file already, {other.file}; put both into one, or rename one"
            folder.refuse(places[one.file][0], text)
    for one in entities:
        for alias in one.aliases:
            other = owners.setdefault(fold(alias), one)
            if fold(other.name) != fold(one.name):
                text = f"{alias!r} also means {other.name!r} ({other.file}); let it mean one of them"
                folder.refuse(places[one.file][1], text)
