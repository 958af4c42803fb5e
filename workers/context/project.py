"""The project of a running task: standards, decisions and history, to be read and added to."""

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasklore.contracts.errors import InvalidInput, UnknownSession

if TYPE_CHECKING:
    from tasklore.contracts.messages import TaskAssignment
    from tasklore.memory.projects.project import ProjectMemory
    from tasklore.memory.projects.records import Kind, Record
    from tasklore.memory.sessions.session import SessionCache

#: Records that a search returns unless it says another number.
FOUND = 20


class TaskProject:
    """The memory of the project that the task's session belongs to; no other project can be named here.

    Every method raises InvalidInput when the session belongs to no project, UnknownSession when its time to live is
    over, and MemoryUnavailable when the store did not answer in time: then the task is run again.
    """

    def __init__(
        self,
        assignment: "TaskAssignment",
        session_id: str,
        projects: "ProjectMemory",
        sessions: "SessionCache",
    ) -> None:
        self._assignment = assignment
        self._session_id = session_id
        self._projects = projects
        self._sessions = sessions
        self._project_id: str | None = None

    async def standards(self, *tags: str) -> "list[Record]":
        """Return the standards in force with any of *tags*, all of them without a tag, newest first."""
        return await self._projects.standards(await self.project_id(), tags)

    async def search(
        self,
        text: str = "",
        tags: Sequence[str] = (),
        kind: "Kind | None" = None,
        limit: int = FOUND,
    ) -> "list[Record]":
        """Return records that hold every word of *text* and every one of *tags*, newest first.

        *kind* is `decision`, `standard` or `history`, None for all. Superseded records are found too.
        """
        return await self._projects.search(
            await self.project_id(), kind=kind, tags=tags, text=text, limit=limit
        )

    async def decide(
        self,
        text: str,
        tags: Sequence[str] = (),
        supersedes: str | None = None,
        *,
        name: str | None = None,
    ) -> "Record":
        """Note a decision for good and return it; *supersedes* is the record it takes the place of.

        Another run of the task that decides the same again notes nothing new. What may come in other words then, such
        as those of a model, is given a *name* of its own among the decisions of the task: the first run's words stay.
        """
        tags = tuple(tags)
        said = f"={name}" if name is not None else _digest(text, tags, supersedes)
        return await self._projects.append(
            await self.project_id(),
            "decision",
            text,
            tags=tags,
            by=self._assignment.user_id,
            supersedes=supersedes,
            session_id=self._session_id,
            token=f"{self._assignment.task_id}:{said}",
        )

    async def project_id(self) -> str:
        """Return the id of the project."""
        if self._project_id is None:
            root = await self._sessions.root(self._session_id)
            if root is None:
                msg = f"session {self._session_id!r} does not exist, or has expired; run its pipeline again"
                raise UnknownSession(msg)
            if not root.project:
                msg = f"session {self._session_id!r} belongs to no project; create it with one"
                raise InvalidInput(msg)
            self._project_id = root.project
        return self._project_id


def _digest(*said: object) -> str:
    """Return what tells one decision of a task from another: other words are another decision."""
    return hashlib.blake2b(json.dumps(said).encode(), digest_size=16).hexdigest()
