"""How long turns wait for more of their kind, so that one question to a model serves several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from contracts.messages import ChatTurn


class Hurries(Protocol):
    """Tells whose turns are to be learned from at once: `memory.conversations.notices.Notices`."""

    async def hurries(self, owner: str, /) -> bool:
        """Return whether a reply to *owner* waits for what their last turn teaches."""

    async def calm(self, owner: str, /) -> None:
        """Note that it taught nothing."""


#: Seconds until it is looked again whether more was said, or whether somebody is in a hurry.
LOOK_S = 1.0
#: People of whom it is known since when their turns wait; of more it is forgotten, and they wait a little longer.
_MOST_OWNERS = 10_000


@dataclass(frozen=True, slots=True)
class Patience:
    """When a batch is ready: at *turns* turns, *idle_s* seconds after its last or *longest_s* after its first one."""

    turns: int = 8
    idle_s: float = 20.0
    longest_s: float = 120.0


@dataclass(slots=True)
class _Seen:
    """Since when the turns of one user were seen here: the first, and the last, which is *turn_id*."""

    first: datetime
    last: datetime
    turn_id: str


class Unhurried:
    """No reply waits for anything."""

    async def hurries(self, _owner: str) -> bool:
        """Return False."""
        return False

    async def calm(self, _owner: str) -> None:
        """Do nothing."""


class Waiting:
    """Says for how long the turns of each user still wait.

    Their age counts from when they were said or, where a sender's clock is ahead, from when they were first seen here.
    """

    def __init__(self, patience: Patience, hurries: Hurries, now: Callable[[], datetime]) -> None:
        self._patience = patience
        self._hurries = hurries
        self._now = now
        self._seen: dict[str, _Seen] = {}

    async def pause_s(self, owner: str, turns: Sequence[ChatTurn]) -> float:
        """Return in how many seconds to look again at *turns* of *owner*, 0 when they are a batch already."""
        if not turns or len(turns) >= self._patience.turns:
            return self._end(owner)
        now = self._now()
        seen = self._seen_since(owner, turns[-1].turn_id, now)
        idle_s = self._patience.idle_s - _age_s(now, turns[-1].at, seen.last)
        left_s = min(idle_s, self._patience.longest_s - _age_s(now, turns[0].at, seen.first))
        if left_s <= 0 or await self._hurries.hurries(owner):
            return self._end(owner)
        return min(left_s, LOOK_S)

    def _seen_since(self, owner: str, turn_id: str, now: datetime) -> _Seen:
        seen = self._seen.get(owner)
        if seen is None:
            if len(self._seen) >= _MOST_OWNERS:
                self._seen.clear()
            seen = self._seen[owner] = _Seen(now, now, turn_id)
        elif seen.turn_id != turn_id:
            seen.last, seen.turn_id = now, turn_id
        return seen

    def _end(self, owner: str) -> float:
        self._seen.pop(owner, None)
        return 0.0


def _age_s(now: datetime, said: datetime, seen: datetime) -> float:
    return max(now - said, now - seen, timedelta()).total_seconds()
