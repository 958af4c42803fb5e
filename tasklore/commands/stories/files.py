"""Stories in folders: the beginning of one, read whole and checked, with all problems at once.

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

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tasklore.commands.stories.entities import FOLDER as ENTITIES
from tasklore.commands.stories.entities import read_entities
from tasklore.commands.stories.folder import InvalidStory, StoryFolder
from tasklore.commands.stories.responses import FOLDER as RESPONSES
from tasklore.commands.stories.responses import (
    list_responses,
    read_response,
    responses_in,
)
from tasklore.commands.stories.tables import (
    FILES,
    KNOWLEDGE,
    MEMORIES,
    RELATIONSHIPS,
    SETTINGS,
    THREADS,
    KnowledgeFile,
    MemoriesFile,
    ThreadsFile,
    key_path,
    read_table,
)
from tasklore.contracts.analysis.names import Names, fold
from tasklore.contracts.analysis.section_agents import roster_of
from tasklore.contracts.analysis.stories import (
    Relations,
    StoryBase,
    StorySettings,
    Tastes,
)
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.faults import nearest, repeats_of
from tasklore.memory.rendering.tokens import counter

__all__ = [
    "InvalidStory",
    "StoryReading",
    "look_at_story",
    "read_response",
    "read_story",
    "responses_in",
]


@dataclass(frozen=True, slots=True)
class StoryReading:
    """The beginning of a story, and *warnings* about probable mistakes, such as an unknown name.

    *responses* are the names of their files, None when they were not read.
    """

    base: StoryBase
    warnings: tuple[str, ...] = ()
    responses: tuple[str, ...] | None = None


def read_story(folder: Path | str) -> StoryBase:
    """Return the beginning of the story in *folder*.

    Raises:
        InvalidStory: it cannot be read; `problems` holds one sentence each, with file, place and cure.
    """
    return look_at_story(folder).base


def look_at_story(folder: Path | str, *, with_responses: bool = False) -> StoryReading:
    """Return the beginning of the story in *folder*, with warnings.

    Raises:
        InvalidStory: it cannot be read, or *with_responses* a response of it; `problems` holds one sentence each.
    """
    files = StoryFolder(folder)
    settings = _read_settings(files)
    relations = read_table(files, RELATIONSHIPS, Relations)
    memories = read_table(files, MEMORIES, MemoriesFile)
    threads = read_table(files, THREADS, ThreadsFile)
    knowledge = read_table(files, KNOWLEDGE, KnowledgeFile)
    entities = tuple(read_entities(files, counter()))
    names = _WholeNames(Names(entities), files)
    _warn_of_other_files(files)
    facts = knowledge.facts if knowledge is not None else ()
    first: dict[tuple[str, str], int] = {}
    for n, fact in enumerate(facts):
        if (same := first.setdefault((fact.subject, fact.fact), n)) != n:
            files.warn(
                f"{KNOWLEDGE}: facts[{n}]",
                f"says the same as facts[{same}]; it counts once",
            )
    checked_relations = names.in_relations(relations or Relations())
    checked_memories = names.in_memories(memories or MemoriesFile())
    checked_threads = names.in_threads(threads or ThreadsFile())
    responses = tuple(_check_responses(files)) if with_responses else None
    files.demand_none()
    if settings is None:
        raise TypeError("without settings there are problems")
    base = StoryBase(
        settings=settings,
        entities=entities,
        memories=checked_memories.memories,
        relations=checked_relations,
        threads=checked_threads.threads,
        knowledge=facts,
    )
    return StoryReading(base, files.warnings, responses)


def _read_settings(files: StoryFolder) -> StorySettings | None:
    settings = read_table(files, SETTINGS, StorySettings)
    if settings is None and SETTINGS not in files.names():
        cure = 'write one with story_id = "name", or `tasklore stories example DIR` makes a whole story'
        files.refuse(SETTINGS, f"a story needs this file; {cure}")
    if settings is not None:
        try:
            roster_of(settings.agents)
        except InvalidInput as error:
            files.refuse(SETTINGS, str(error))
    return settings


def _warn_of_other_files(files: StoryFolder) -> None:
    known = (*FILES, ENTITIES, RESPONSES)
    for name in files.names():
        near = nearest(name, known)
        if name not in known and (near or name.endswith(".toml")):
            files.warn(
                name,
                f"this is not read{near or '; a story has no such file, remove it'}",
            )


def _check_responses(files: StoryFolder) -> list[str]:
    names = list_responses(files)
    for name in names:
        text = files.read(name)
        if text is not None and not text.strip():
            files.refuse(name, "it is empty; write the response into it, or remove it")
    return names


@dataclass(frozen=True, slots=True)
class _WholeNames:
    """Gives each entity its whole name in all files, and adds problems and warnings to *files*."""

    names: Names
    files: StoryFolder

    def in_memories(self, table: MemoriesFile) -> MemoriesFile:
        self._demand_unique(MEMORIES, "memories", [one.id for one in table.memories])
        memories = []
        for n, one in enumerate(table.memories):
            place = f"{MEMORIES}: {key_path(('memories', n))}"
            if not (one.summary.strip() or one.text.strip()):
                self.files.warn(
                    f"{place} ({one.id})", "says nothing; give a summary or a text"
                )
            whole = self._whole(f"{place}.character ({one.id})", one.character)
            memories.append(one.model_copy(update={"character": whole}))
        return MemoriesFile(memories=tuple(memories))

    def in_threads(self, table: ThreadsFile) -> ThreadsFile:
        self._demand_unique(THREADS, "threads", [one.id for one in table.threads])
        threads = []
        for n, one in enumerate(table.threads):
            place = f"{THREADS}: {key_path(('threads', n))}"
            if not (one.title.strip() or one.text.strip()):
                self.files.warn(
                    f"{place} ({one.id})", "says nothing; give a title or a text"
                )
            wholes = (
                self._whole(f"{place}.characters ({one.id})", name)
                for name in one.characters
            )
            threads.append(
                one.model_copy(update={"characters": tuple(dict.fromkeys(wholes))})
            )
        return ThreadsFile(threads=tuple(threads))

    def in_relations(self, relations: Relations) -> Relations:
        self._demand_unique(
            RELATIONSHIPS, "tiers", [one.name for one in relations.tiers]
        )
        tastes: dict[str, Tastes] = {}
        for name, taste in relations.tastes.items():
            place = f"{RELATIONSHIPS}: tastes.{name}"
            whole = self._whole(place, name)
            if whole in tastes:
                self.files.refuse(
                    place,
                    f"the tastes of {whole!r} are given under another name already; merge them",
                )
            tastes[whole] = taste
        bonds = []
        for n, bond in enumerate(relations.bonds):
            place = f"{RELATIONSHIPS}: bonds[{n}].characters"
            one, other = (self._whole(place, name) for name in bond.characters)
            if fold(one) == fold(other):
                self.files.refuse(place, f"{one!r} stands twice; a bond is of two")
            bonds.append(bond.model_copy(update={"characters": (one, other)}))
        pairs = [" and ".join(sorted(bond.characters)) for bond in bonds]
        self._demand_unique(RELATIONSHIPS, "bonds", pairs)
        return relations.model_copy(update={"tastes": tastes, "bonds": tuple(bonds)})

    def _demand_unique(self, file: str, block: str, marks: Iterable[str]) -> None:
        """Refuse each item of the list *block* that has the mark of an earlier one."""
        for n, earlier, mark in repeats_of(marks):
            text = f"{mark!r} is {block}[{earlier}] already; rename it, or remove one of them"
            self.files.refuse(f"{file}: {block}[{n}]", text)

    def _whole(self, place: str, name: str) -> str:
        whole = self.names.whole(name)
        # The name may be that of an entity whose file has problems.
        if whole is None and not self.files.has_problems(ENTITIES):
            cure = self.names.nearest(name) or "; correct it, or add a file in entities"
            self.files.warn(place, f"no entity is called {name!r}{cure}")
        return whole or name
