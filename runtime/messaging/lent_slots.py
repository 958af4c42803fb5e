"""Slots that are lent: their deliveries wait for something that may need a slot itself, and want theirs back after."""

import asyncio
from collections import deque
from collections.abc import Callable

from tasklore.runtime.messaging.delivery import Delivery

#: Deliveries of one engine that lend their slots: what a worker may begin before it ends any of it.
MOST_LENT = 1_000


class LentSlots:
    """The deliveries that lend their slots, and those of them that want one back; *has_free* says if there is one."""

    def __init__(self, has_free: Callable[[], bool]) -> None:
        self._has_free = has_free
        self._lent: set[Delivery] = set()
        self._wanting: deque[tuple[Delivery, asyncio.Future[None]]] = deque()

    def __len__(self) -> int:
        return len(self._lent)

    @property
    def wanting(self) -> int:
        """How many wait for a slot."""
        return len(self._wanting)

    def add(self, delivery: Delivery, *, anyway: bool = False) -> bool:
        """Note that *delivery* lends its slot; return False when too many do, and do it only *anyway* then."""
        if len(self._lent) >= MOST_LENT and not anyway:
            return False
        self._lent.add(delivery)
        return True

    def discard(self, delivery: Delivery) -> None:
        """Note that *delivery* has its slot again, or is dealt with."""
        self._lent.discard(delivery)

    async def reclaim(self, delivery: Delivery) -> None:
        """Return once *delivery* has a slot again; the first to want one is the first to have it."""
        if delivery in self._lent and not self._has_free():
            free: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._wanting.append((delivery, free))
            await free
        self._lent.discard(delivery)

    def give_back(self) -> None:
        """Give the free slots to those that want one."""
        while self._wanting and self._has_free():
            delivery, free = self._wanting.popleft()
            if not free.done():
                self._lent.discard(delivery)
                free.set_result(None)
