"""The entity files of a story: Markdown with a name for its title, kind and other names below it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from pydantic import ValidationError

from contracts.analysis.stories import Entity, EntityKind
from memory.rendering.tokens import Count
from supervisor.pipelines.declaration.problems import suggest
from tasklore.story.problems import remarks_in
from tasklore.story.texts import Texts

FOLDER = "entities"
_KINDS = get_args(EntityKind)

_TITLE = re.compile(r"#[ \t]+(?P<name>.+?)[ \t#]*")
_HEADING = re.compile(r"#{1,6}[ \t]")
_FIELD = re.compile(r"[-*+][ \t]+\**(?P<what>kind|also called)\**[ \t]*:\**[ \t]*(?P<said>.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EntityFile:
    """An entity, and the lines of its file that name it."""

    entity: Entity
    name_line: int
    aliases_line: int | None = None


def read_entities(texts: Texts, count: Count) -> list[EntityFile]:
    """Return everybody and everything with a file in `entities`, in the order of the files."""
    wanted, others = texts.files(FOLDER, (".md",))
    for name in others:
        is_folder = texts.is_folder(name)
        cure = "move what is in it to entities itself" if is_folder else "an entity's file ends in .md"
        texts.findings.warn(name, None, f"this {'folder' if is_folder else 'file'} is not read; {cure}")
    read = (_read(texts, name, count) for name in wanted)
    return [one for one in read if one is not None]


def _read(texts: Texts, file: str, count: Count) -> EntityFile | None:
    text = texts.read(file)
    if text is None:
        return None
    lines = text.split("\n")
    titled = next(((n, found) for n, line in enumerate(lines) if (found := _TITLE.fullmatch(line))), None)
    if titled is None:
        texts.findings.refuse(file, None, "it does not say of whom it is; begin it with a heading: # Name")
        return None
    at, title = titled
    kind, aliases, aliases_line = _head(texts, file, lines, at + 1)
    name = " ".join(title["name"].split())
    whole = text.strip("\n")
    raw = {"name": name, "kind": kind, "aliases": aliases, "file": file, "text": whole, "tokens": count(whole)}
    try:
        return EntityFile(Entity.model_validate(raw), at + 1, aliases_line)
    except ValidationError as error:
        for place, said in remarks_in(error, Entity, raw):
            texts.findings.refuse(file, aliases_line if place[:1] == ("aliases",) else at + 1, said)
        return None


def _head(texts: Texts, file: str, lines: list[str], start: int) -> tuple[str, list[str], int | None]:
    """Return kind and other names, from between the title and the next heading, and the line of the latter."""
    kind, aliases, aliases_line = "character", list[str](), None
    for n, line in enumerate(lines[start:], start + 1):
        if _HEADING.match(line):
            break
        found = _FIELD.fullmatch(line.strip())
        if found is None:
            continue
        if found["what"].lower() == "kind":
            kind = _kind(texts, file, n, found["said"])
        else:
            aliases_line = n
            aliases += _names(found["said"].split(","))
    return kind, list(dict.fromkeys(aliases)), aliases_line


def _names(said: Iterable[str]) -> list[str]:
    return [name for one in said if (name := " ".join(one.split()))]


def _kind(texts: Texts, file: str, line: int, said: str) -> str:
    kind = said.strip().lower()
    if kind in _KINDS:
        return kind
    texts.findings.refuse(file, line, f"kind {said.strip()!r} is not known{suggest(kind, _KINDS, 'known are')}")
    return "character"
