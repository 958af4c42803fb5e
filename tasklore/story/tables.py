"""The TOML files of a story: read as models of ours, with the line of every place."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pydantic import ValidationError

from contracts.analysis.background import KnownFact
from contracts.analysis.stories import Relations, StoryMemory, StoryPart, StorySettings, StoryThread
from supervisor.pipelines.declaration.problems import Place
from supervisor.pipelines.declaration.toml_lines import lines_of
from tasklore.story.problems import remarks_in, toml_remark
from tasklore.story.texts import Texts

SETTINGS, RELATIONSHIPS, MEMORIES = "story.toml", "relationships.toml", "memories.toml"
THREADS, KNOWLEDGE = "threads.toml", "knowledge.toml"
#: Every file of a story in TOML.
FILES = (SETTINGS, RELATIONSHIPS, MEMORIES, THREADS, KNOWLEDGE)


class MemoriesFile(StoryPart):
    """`memories.toml`: what characters remember from before the first response."""

    memories: tuple[StoryMemory, ...] = ()


class ThreadsFile(StoryPart):
    """`threads.toml`: what is open before the first response."""

    threads: tuple[StoryThread, ...] = ()


class KnowledgeFile(StoryPart):
    """`knowledge.toml`: what is known of the world before the first response."""

    facts: tuple[KnownFact, ...] = ()


T = TypeVar("T", bound=StoryPart)


@dataclass(frozen=True, slots=True)
class Table(Generic[T]):
    """What the file *name* says, and at which lines."""

    name: str
    value: T
    lines: Mapping[Place, int] = field(default_factory=dict)

    def line_of(self, place: Place) -> int | None:
        """Return the line of *place*, of the first thing in it, or of the nearest around it; None for none."""
        for n in range(len(place), 0, -1):
            inside = [line for known, line in self.lines.items() if known[:n] == place[:n]]
            if inside:
                return min(inside)
        return None


@dataclass(frozen=True, slots=True)
class Tables:
    """All files of a story in TOML; one that is not there, or cannot be read, is None."""

    settings: Table[StorySettings] | None
    relations: Table[Relations] | None
    memories: Table[MemoriesFile] | None
    threads: Table[ThreadsFile] | None
    knowledge: Table[KnowledgeFile] | None


def read_tables(texts: Texts) -> Tables:
    """Return what the files of the story that *texts* reads say; what is wrong in them is noted there."""
    settings = _read(texts, SETTINGS, StorySettings)
    if settings is None and SETTINGS not in texts.names():
        cure = 'write one with story_id = "name", or `tasklore story example DIR` makes a whole story'
        texts.findings.refuse(SETTINGS, None, f"a story needs this file; {cure}")
    return Tables(
        settings,
        _read(texts, RELATIONSHIPS, Relations),
        _read(texts, MEMORIES, MemoriesFile),
        _read(texts, THREADS, ThreadsFile),
        _read(texts, KNOWLEDGE, KnowledgeFile),
    )


def _read(texts: Texts, name: str, model: type[T]) -> Table[T] | None:
    text = texts.read(name)
    if text is None:
        return None
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Also a whole number of thousands of digits, which Python does not read.
        texts.findings.refuse(name, *toml_remark(str(error), text))
        return None
    table = Table(name, model.model_construct(), lines_of(text))
    try:
        return Table(name, model.model_validate(raw, extra="forbid"), table.lines)
    except ValidationError as error:
        for place, said in remarks_in(error, model, raw):
            texts.findings.refuse(name, table.line_of(place), said)
        return None
