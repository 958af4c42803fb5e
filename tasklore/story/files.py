"""Stories in folders: what one says where it begins, read whole and checked, with every problem told at once.

```text
story.toml            its id, and how it is analysed
entities/*.md         who and what is in it, a file each
relationships.toml    tiers, likes and dislikes, how characters stand to each other
memories.toml         what characters remember
threads.toml          what is open
knowledge.toml        what is known of the world
responses/Ch1-R001.md what was written since
```

All but `story.toml` may be missing.
"""

from dataclasses import dataclass
from pathlib import Path

from contracts.analysis.stories import Relations, StoryBase
from memory.rendering.tokens import counter
from tasklore.story.checks import Checks, look_beside
from tasklore.story.entities import EntityFile, read_entities
from tasklore.story.names import Names, refuse_shared_names
from tasklore.story.problems import InvalidStory
from tasklore.story.responses import listed_responses, read_response, responses_in
from tasklore.story.tables import Tables, read_tables
from tasklore.story.texts import Texts

__all__ = ["InvalidStory", "StoryReading", "look_at_story", "read_response", "read_story", "responses_in"]


@dataclass(frozen=True, slots=True)
class StoryReading:
    """What a folder says, and *warnings*: what is probably a mistake, such as a name of nobody.

    *responses* are the names of their files, and None when they were not looked at.
    """

    base: StoryBase
    warnings: tuple[str, ...] = ()
    responses: tuple[str, ...] | None = None


def read_story(folder: Path | str) -> StoryBase:
    """Return where the story in *folder* begins.

    Raises:
        InvalidStory: it cannot be read; `problems` holds one sentence each, with file, line and cure.
    """
    return look_at_story(folder).base


def look_at_story(folder: Path | str, *, with_responses: bool = False) -> StoryReading:
    """Return where the story in *folder* begins, and what is odd about it.

    Raises:
        InvalidStory: it cannot be read, or *with_responses* a response of it; `problems` holds one sentence each.
    """
    texts = Texts(folder)
    tables = read_tables(texts)
    entities = read_entities(texts, counter())
    refuse_shared_names(entities, texts.findings)
    look_beside(texts)
    base = _base(tables, entities, texts)
    responses = _responses(texts) if with_responses else None
    texts.findings.demand_none()
    if base is None:
        raise TypeError("without settings there are problems")
    return StoryReading(base, texts.findings.warnings, responses)


def _base(tables: Tables, files: list[EntityFile], texts: Texts) -> StoryBase | None:
    """Return what all files say together, None when nothing says how the story is analysed."""
    entities = tuple(one.entity for one in files)
    checks = Checks(Names(entities), texts.findings)
    if tables.settings is not None:
        checks.settings(tables.settings)
    if tables.knowledge is not None:
        checks.knowledge(tables.knowledge)
    settings = tables.settings.value if tables.settings is not None else None
    relations = checks.relations(tables.relations) if tables.relations is not None else Relations()
    memories = checks.memories(tables.memories) if tables.memories is not None else ()
    threads = checks.threads(tables.threads) if tables.threads is not None else ()
    if settings is None:
        return None
    return StoryBase(
        settings=settings,
        entities=entities,
        memories=memories,
        relations=relations,
        threads=threads,
        knowledge=tables.knowledge.value.facts if tables.knowledge is not None else (),
    )


def _responses(texts: Texts) -> tuple[str, ...]:
    names = listed_responses(texts)
    for name in names:
        text = texts.read(name)
        if text is not None and not text.strip():
            texts.findings.refuse(name, None, "it is empty; write the response into it, or remove it")
    return tuple(names)
