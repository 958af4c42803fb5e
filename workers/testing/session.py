"""The session and the project that tasks of a testing kit work on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tasklore.workers.testing.fakes import KitServices

if TYPE_CHECKING:
    from pydantic import JsonValue

    from tasklore.memory.projects.records import Record

#: What they are called in every kit.
SESSION = "session-1"
PROJECT = "project-1"


@dataclass
class KitSession:
    """What tasks of a kit find in their session, and the fields of an assignment that name it.

    `given` None, without a phase or standards, means that there is none. A standard is a text, or a text and its tags.
    """

    services: KitServices
    given: "Mapping[str, JsonValue] | None"
    phase: str | None
    writes: Sequence[str] | None
    standards: Sequence[str | tuple[str, ...]]

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of an assignment that name the session; none without one."""
        if not self._is_wanted:
            return {}
        return {"session_id": SESSION, "phase": self.phase, "writes": self.writes}

    async def open(self) -> None:
        """Make the session and its project."""
        if not self._is_wanted:
            return
        from tasklore.memory.sessions.entries import NewEntry

        await self.services.sessions.create(SESSION, project=PROJECT)
        entries = [
            NewEntry(key=key, value=value) for key, value in (self.given or {}).items()
        ]
        if entries:
            await self.services.sessions.set_many(SESSION, entries)
        for said in self.standards:
            text, *tags = (said,) if isinstance(said, str) else said
            await self.services.projects.append(PROJECT, "standard", text, tags=tags)

    async def entries(self) -> "dict[str, JsonValue]":
        """Return every value by its key, sorted."""
        if not self._is_wanted:
            return {}
        keys = sorted(
            entry.key for entry in await self.services.sessions.entries(SESSION)
        )
        found = await self.services.sessions.peek(SESSION, keys)
        return {
            key: one.value
            for key, one in zip(keys, found, strict=True)
            if one is not None
        }

    async def decisions(self) -> "list[Record]":
        """Return the decisions in the project, newest first, up to a thousand."""
        return await self.services.projects.search(PROJECT, kind="decision", limit=1000)

    @property
    def _is_wanted(self) -> bool:
        return (
            self.given is not None
            or self.phase is not None
            or bool(self.standards)
            or self.writes is not None
        )
