"""Places in Redis: at most so many runs of one bound hold one, and those that found none wait in order of arrival.

A place belongs to one run, by its token, until its lease is over; it is renewed while the run goes on. Those that wait
hold nothing here but their turn, which is lost by one that does not look again within a quarter of an hour.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.concurrency import scripts

#: Seconds for which a place outlives the lease that it was asked with: the run has ended by then in any case.
MARGIN_S = 1.0


class Permit(NamedTuple):
    """A place that a run of *task* ("id:generation") wants or holds under *bound*, of which there are *limit*.

    *mark* tells the task from others for those below it, of which *above* are the marks of tasks above it; *arrival* is
    when it came, in us since 1970.
    """

    bound: str
    task: str
    limit: int
    worker_id: str
    token: str
    arrival: int
    mark: str = "-"
    above: tuple[str, ...] = ()


class Taken(NamedTuple):
    """The run holds a place."""


class HeldElsewhere(NamedTuple):
    """Another worker runs the task, for *wait_ms* milliseconds unless it renews its lease."""

    wait_ms: int


class Full(NamedTuple):
    """There is no place; look again after *wait_ms* milliseconds, unless it is called before; *rank* 0 is the next."""

    wait_ms: int
    rank: int


class WouldDeadlock(NamedTuple):
    """A task above it holds a place, and waits for it."""


class Semaphore:
    """Gives places to runs; every method may raise MemoryUnavailable.

    *now* is the clock, in UTC; that of the store by default.
    """

    def __init__(
        self,
        client: Redis,
        lease_s: float = 30.0,
        deadline_s: float = 5.0,
        *,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._batch = CommandBatch(client, deadline_s, Breaker())
        self.lease_s = lease_s
        self._lease_ms = int((lease_s + MARGIN_S) * 1000)
        self._now = now

    async def take(self, place: Permit) -> Taken | HeldElsewhere | Full | WouldDeadlock:
        """Take *place*; a run that holds it renews it."""
        own: tuple[str | int, ...] = (
            place.arrival,
            place.worker_id,
            place.token,
            place.mark,
            *place.above,
        )
        found = (
            await self._batch.run(
                [self._command(scripts.TAKE, place, self._lease_ms, *own)]
            )
        )[0]
        match found[0]:
            case 1:
                return Taken()
            case 2:
                return HeldElsewhere(found[1])
            case 3:
                return WouldDeadlock()
        return Full(found[1], found[2])

    async def keep(self, place: Permit, wait_ms: int) -> None:
        """Keep *place*, which its run gives up, for whichever run of its task comes within *wait_ms* milliseconds."""
        kept = place.arrival, place.worker_id, "-", place.mark
        await self._batch.run([self._command(scripts.TAKE, place, wait_ms, *kept)])

    async def queue(self, place: Permit) -> bool:
        """List the task of *place* among those that wait; return False where there is a place for it by now."""
        return bool(
            (
                await self._batch.run(
                    [self._command(scripts.QUEUE, place, 0, place.arrival)]
                )
            )[0]
        )

    async def leave(self, place: Permit) -> list[str]:
        """Give *place* up and return the tasks whose turn it is; with an empty token, of a task that has ended."""
        called = (
            await self._batch.run([self._command(scripts.LEAVE, place, 0, place.token)])
        )[0]
        return [task.decode() for task in called]

    async def hold(self, places: Sequence[Permit]) -> list[Permit]:
        """Renew *places*, and return those that are lost."""
        held = await self._batch.run(
            [
                self._command(scripts.HOLD, place, self._lease_ms, place.token)
                for place in places
            ]
        )
        return [
            place for place, is_held in zip(places, held, strict=True) if not is_held
        ]

    def _command(self, script: str, place: Permit, *arguments: str | int) -> Command:
        now_ms = "" if self._now is None else int(self._now().timestamp() * 1000)
        return (
            "FCALL",
            script,
            4,
            *keys.places(place.bound),
            now_ms,
            place.task,
            place.limit,
            *arguments,
        )
