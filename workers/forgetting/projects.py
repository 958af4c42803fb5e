"""What is removed of a user where pipelines lie: their sessions, how they ended, evidence, and words in projects.

Each class is a `workers.forgetting.erasure.ForgetsUser`.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from memory.projects.project import ProjectMemory
from memory.sessions.run_outcomes import RunOutcomes
from memory.sessions.session import SessionCache
from workers.forgetting.tasks import names_user

#: Files in which a run that failed is kept.
_EVIDENCE = "*-failed.json"


class RecordsOfUser:
    """What the user said in projects. The records stay, as others rely on them, without their words and their name."""

    def __init__(self, projects: ProjectMemory) -> None:
        self._projects = projects

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Redact them."""
        return {"texts in projects": await self._projects.redact(user_id)}

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Count those that are signed."""
        return {"texts in projects": await self._projects.count_by(user_id)}


class SessionsOfUser:
    """Sessions that were started for the user, running ones too, and how their runs ended."""

    def __init__(self, sessions: SessionCache, outcomes: RunOutcomes) -> None:
        self._sessions = sessions
        self._outcomes = outcomes

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Remove them, and then the list of them."""
        listed = await self._sessions.of_user(user_id)
        count = await self._dropped(listed)
        told = await self._outcomes.drop(listed)
        await self._outcomes.disown(user_id, listed)
        # One may have been made, or have ended, while it stood in no list.
        return {"sessions": count + await self._dropped(listed), "outcomes": told + await self._outcomes.drop(listed)}

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Count those that are listed."""
        return {"sessions": len(await self._sessions.of_user(user_id))}

    async def _dropped(self, session_ids: list[str]) -> int:
        return sum([await self._sessions.drop(session_id, force=True) for session_id in session_ids])


class EvidenceOfUser:
    """Files that keep failed runs of the user, in a folder of this machine; of other machines nothing is known here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def forget(self, user_id: str) -> Mapping[str, int]:
        """Remove them."""
        found = await asyncio.to_thread(self._found, user_id)
        for file in found:
            await asyncio.to_thread(file.unlink, missing_ok=True)
        return {"evidence files": len(found)}

    async def left(self, user_id: str) -> Mapping[str, int]:
        """Count them."""
        return {"evidence files": len(await asyncio.to_thread(self._found, user_id))}

    def _found(self, user_id: str) -> list[Path]:
        return [file for file in sorted(self._folder.glob(_EVIDENCE)) if names_user(_content(file), user_id)]


def _content(file: Path) -> bytes:
    """Return what is in *file*, nothing when somebody has just removed it."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
