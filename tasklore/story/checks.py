"""What the files of a story say of each other: names that are taken twice are refused, names of nobody are odd.

Everybody is given the whole name, so that what is said of somebody under several names comes together.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from contracts.analysis.roster import roster_of
from contracts.analysis.stories import Bond, Relations, StoryMemory, StorySettings, StoryThread, Tastes
from contracts.errors import InvalidInput
from supervisor.pipelines.declaration.problems import Place, nearest
from tasklore.story.entities import FOLDER as ENTITIES
from tasklore.story.names import Names, folded
from tasklore.story.problems import ITEMS, Findings, item_name
from tasklore.story.tables import FILES, KnowledgeFile, MemoriesFile, Table, ThreadsFile
from tasklore.story.texts import Texts

_OF_AGENT = re.compile(r"agents\.([a-z][a-z0-9_]*)")
#: What lies beside these files and is no mistake.
_FOLDERS = (ENTITIES, "responses")


@dataclass(frozen=True, slots=True)
class Checks:
    """Looks at the files of a story whose entities are called *names*, and notes in *findings* what is wrong."""

    names: Names
    findings: Findings

    def settings(self, table: Table[StorySettings]) -> None:
        """Look whether those whom the story wants to take part can."""
        try:
            roster_of(table.value.agents)
        except InvalidInput as error:
            found = _OF_AGENT.match(str(error))
            line = table.line_of(("agents", found[1])) if found else table.line_of(("agents",))
            self.findings.refuse(table.name, line, str(error))

    def memories(self, table: Table[MemoriesFile]) -> tuple[StoryMemory, ...]:
        """Return what is remembered, everybody by the whole name."""
        self._demand_different(table, "memories", [one.id for one in table.value.memories])
        for n, one in enumerate(table.value.memories):
            if not (one.summary.strip() or one.text.strip()):
                self._warn(table, "memories", n, one.id, "says nothing; give a summary or a text")
        return tuple(
            one.model_copy(update={"character": self._whole(table, "memories", n, one.id, "character", one.character)})
            for n, one in enumerate(table.value.memories)
        )

    def threads(self, table: Table[ThreadsFile]) -> tuple[StoryThread, ...]:
        """Return the threads, everybody by the whole name."""
        self._demand_different(table, "threads", [one.id for one in table.value.threads])
        for n, one in enumerate(table.value.threads):
            if not (one.title.strip() or one.text.strip()):
                self._warn(table, "threads", n, one.id, "says nothing; give a title or a text")
        return tuple(
            one.model_copy(update={"characters": self._all_whole(table, n, one)})
            for n, one in enumerate(table.value.threads)
        )

    def knowledge(self, table: Table[KnowledgeFile]) -> None:
        """Look whether a fact is told twice."""
        told: dict[tuple[str, str], int] = {}
        for n, one in enumerate(table.value.facts):
            first = told.setdefault((one.subject, one.fact), n)
            if first != n:
                self._warn(table, "facts", n, None, f"says the same as fact {first + 1}; it counts once")

    def relations(self, table: Table[Relations]) -> Relations:
        """Return the relationships, everybody by the whole name."""
        said = table.value
        self._demand_different(table, "tiers", [one.name for one in said.tiers])
        tastes: dict[str, Tastes] = {}
        for name, taste in said.tastes.items():
            whole = self._whole_of_taste(table, name)
            if whole in tastes:
                text = f"the tastes of {whole!r} are given under another name already; put both under one"
                self.findings.refuse(table.name, table.line_of(("tastes", name)), text)
            tastes[whole] = taste
        bonds = tuple(self._bond(table, n, bond) for n, bond in enumerate(said.bonds))
        self._demand_different(table, "bonds", [" and ".join(sorted(bond.characters)) for bond in bonds])
        return said.model_copy(update={"tastes": tastes, "bonds": bonds})

    def _demand_different(self, table: Table[Any], block: str, marks: Sequence[str]) -> None:
        """Note what is in the list *block* under a name that an earlier item has."""
        first: dict[str, int] = {}
        for n, mark in enumerate(marks):
            earlier = first.setdefault(mark, n)
            if earlier != n:
                what = ITEMS[block]
                text = f"{what} {n + 1}: {mark!r} is {what} {earlier + 1} already; rename it, or remove one of them"
                self.findings.refuse(table.name, table.line_of((block, n)), text)

    def _bond(self, table: Table[Relations], n: int, bond: Bond) -> Bond:
        one, other = (self._whole(table, "bonds", n, None, "characters", name) for name in bond.characters)
        if folded(one) == folded(other):
            text = f"{item_name('bonds', n, None)}: {one!r} stands twice; a bond is of two"
            self.findings.refuse(table.name, table.line_of(("bonds", n, "characters")), text)
        return bond.model_copy(update={"characters": (one, other)})

    def _whole_of_taste(self, table: Table[Relations], name: str) -> str:
        whole = self.names.whole(name)
        if whole is None:
            self._warn_of_nobody(table, ("tastes", name), "tastes", name)
        return whole or name

    def _whole(self, table: Table[Any], block: str, n: int, said_id: str | None, key: str, name: str) -> str:
        whole = self.names.whole(name)
        if whole is None:
            what = item_name(block, n, {"id": said_id})
            self._warn_of_nobody(table, (block, n, key), f"{what}: {key}", name)
        return whole or name

    def _all_whole(self, table: Table[ThreadsFile], n: int, thread: StoryThread) -> tuple[str, ...]:
        wholes = (self._whole(table, "threads", n, thread.id, "characters", name) for name in thread.characters)
        return tuple(dict.fromkeys(wholes))

    def _warn_of_nobody(self, table: Table[Any], place: Place, what: str, name: str) -> None:
        """Note that *name* is nobody's, unless it may be that of an entity whose file has to be mended first."""
        if self.findings.has_refused(ENTITIES):
            return
        cure = self.names.nearest(name) or "; correct it, or add a file in entities"
        self.findings.warn(table.name, table.line_of(place), f"{what}: no entity is called {name!r}{cure}")

    def _warn(self, table: Table[Any], block: str, n: int, said_id: str | None, text: str) -> None:
        self.findings.warn(table.name, table.line_of((block, n)), f"{item_name(block, n, {'id': said_id})} {text}")


def look_beside(texts: Texts) -> None:
    """Note files that look as if they were to be read, and are not."""
    known = (*FILES, *_FOLDERS)
    for name in texts.names():
        if name in known:
            continue
        near = nearest(name, known)
        if near or name.endswith(".toml"):
            texts.findings.warn(name, None, f"this is not read{near or '; a story has no such file, remove it'}")
