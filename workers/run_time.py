"""Whose doing the time of a run was: every millisecond belongs to one entry of the session, or to none yet."""

import time
from collections.abc import Callable, Collection
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class RunTime:
    """The time of one run, in whole milliseconds from *started*, a reading of *clock* (monotonic seconds).

    What an entry took is never counted for another one, so that the entries of a run take together what the run took.
    """

    started: float
    clock: Callable[[], float] = time.monotonic
    _spent: dict[str, int] = field(default_factory=dict)

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the run began."""
        return int((self.clock() - self.started) * 1000)

    def take(self, key: str, most_ms: int | None = None) -> int:
        """Give the entry *key* the time that belongs to none yet, *most_ms* of it at most; return all that it has."""
        left_ms = max(0, self.elapsed_ms - sum(self._spent.values()))
        self._spent[key] = self._spent.get(key, 0) + (left_ms if most_ms is None else min(left_ms, most_ms))
        return self._spent[key]

    @contextmanager
    def taking(self, key: str, most_ms: int | None = None) -> "Iterator[int]":
        """Give *key* time as `take` does, for a write in the block; what raises there gives it back."""
        before = self._spent.get(key)
        try:
            yield self.take(key, most_ms)
        except BaseException:
            if before is None:
                self._spent.pop(key, None)
            else:
                self._spent[key] = before
            raise

    def rest_ms(self, run_ms: int, keys: Collection[str]) -> int:
        """Return what is left of *run_ms* for the entries *keys* together, whatever some of them took before."""
        return max(0, run_ms - sum(spent for key, spent in self._spent.items() if key not in keys))


def shares_of(total_ms: int, number: int) -> list[int]:
    """Return *number* whole shares of *total_ms* that make it up exactly; the first has the remainder."""
    share, remainder = divmod(total_ms, number)
    return [share + remainder, *[share] * (number - 1)]
