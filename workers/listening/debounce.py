"""How long turns wait for more of their kind, so that one question to a model serves several."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tasklore.contracts.messages import ChatTurn
from tasklore.memory.conversations.notices import Notices

#: Seconds until it is looked again whether more was said, or whether somebody is in a hurry.
LOOK_S = 1.0
#: People of whom it is known since when their turns wait; of more it is forgotten, and they wait a little longer.
_MOST_OWNERS = 10_000


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a batch is ready: at *turns* turns, *idle_s* seconds after its last or *longest_s* after its first one."""

    turns: int = 8
    idle_s: float = 20.0
    longest_s: float = 120.0


@dataclass(slots=True)
class _Seen:
    """Since when the turns of one user wait: the first, and the last, which is *turn_id*."""

    first: datetime
    last: datetime
    turn_id: str


class Debounce:
    """Says for how long the turns of each user still wait.

    Their age counts from when they were said. It counts from when they were first seen here where a sender's clock is
    ahead, and in a history that is handed in, which was said long ago.
    """

    def __init__(
        self,
        patience: BatchLimits,
        notices: Notices | None,
        now: Callable[[], datetime],
    ) -> None:
        self._patience = patience
        self._notices = notices
        self._now = now
        self._seen: dict[str, _Seen] = {}

    async def pause_s(self, owner: str, turns: Sequence[ChatTurn]) -> float:
        """Return in how many seconds to look again at *turns* of *owner*, 0 when they are a batch already."""
        if not turns or len(turns) >= self._patience.turns:
            return self._end(owner)
        now = self._now()
        seen = self._seen.get(owner)
        if seen is None:
            if len(self._seen) >= _MOST_OWNERS:
                self._seen.clear()
            seen = self._seen[owner] = _Seen(
                self._since(now, turns[0].at),
                self._since(now, turns[-1].at),
                turns[-1].turn_id,
            )
        elif seen.turn_id != turns[-1].turn_id:
            seen.last = self._since(now, turns[-1].at)
            seen.turn_id = turns[-1].turn_id
        left_s = min(
            self._patience.idle_s - (now - seen.last).total_seconds(),
            self._patience.longest_s - (now - seen.first).total_seconds(),
        )
        if left_s <= 0 or (
            self._notices is not None and await self._notices.hurries(owner)
        ):
            return self._end(owner)
        return min(left_s, LOOK_S)

    def _since(self, now: datetime, said: datetime) -> datetime:
        """Return since when a turn waits that was *said* then, and is seen for the first time *now*."""
        age_s = (now - said).total_seconds()
        return said if 0 <= age_s <= self._patience.longest_s else now

    def _end(self, owner: str) -> float:
        self._seen.pop(owner, None)
        return 0.0
