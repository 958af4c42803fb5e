"""Whether the facts that were found in earlier turns of a user stand in their documents.

The next turns are read beside these. In a chat they are there long before the next batch; in a history that is handed
in batch follows upon batch.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from tasklore.memory.conversations.notices import Notices
from tasklore.memory.queues.queue import PersonalQueue

__all__ = ["FactSettling"]

#: How long facts are waited for; then the next turns are read without them.
LONGEST = timedelta(seconds=30)
#: Seconds until it is looked again.
LOOK_S = 0.25
#: Rows of a user that are looked at: more facts than a batch has.
_MOST_ROWS = 400
#: Users of whom something is known here; of more it is forgotten.
_MOST_OWNERS = 10_000


@dataclass(slots=True)
class _HandedOver:
    """Ids of the facts that this process handed over last, and since when they are waited for."""

    fact_ids: frozenset[str]
    since: datetime


class FactSettling:
    """Says for how long the next turns of a user wait for the facts of those before them, in the table *facts*.

    They do not where a reply waits for them, as *notices* know.
    """

    def __init__(
        self,
        facts: PersonalQueue,
        notices: Notices | None,
        now: Callable[[], datetime],
    ) -> None:
        self._facts = facts
        self._notices = notices
        self._now = now
        self._handed_over: dict[str, _HandedOver] = {}

    def note(self, owner: str, fact_ids: Collection[str]) -> None:
        """Note that facts of *owner* were handed over."""
        if not fact_ids:
            return
        if len(self._handed_over) >= _MOST_OWNERS:
            self._handed_over.clear()
        before = self._handed_over.get(owner)
        known = frozenset[str]() if before is None else before.fact_ids
        self._handed_over[owner] = _HandedOver(known.union(fact_ids), self._now())

    async def pause_s(self, owner: str) -> float:
        """Return in how many seconds to look again, 0 when nothing of *owner* is to be waited for.

        A fact that waits for a model or a person is settled as far as it can be.

        Raises:
            MemoryUnavailable: the store did not answer in time.
        """
        handed_over = self._handed_over.get(owner)
        if handed_over is None or self._now() - handed_over.since > LONGEST:
            self._handed_over.pop(owner, None)
            return 0.0
        rows = await self._facts.rows(owner, _MOST_ROWS)
        settled = {row.row_id for row in rows if row.state != "waiting"}
        if handed_over.fact_ids <= settled:
            del self._handed_over[owner]
            return 0.0
        is_hurried = self._notices is not None and await self._notices.hurries(owner)
        return 0.0 if is_hurried else LOOK_S
