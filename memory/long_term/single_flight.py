"""Identical questions asked at once are computed once, in one process and over all of them.

In a process the first caller takes the question and the others wait for its future. Over processes it holds a lease
in Redis: a hash with its token and, once another caller asked, the mark `awaited`; giving back an awaited lease
announces the key on one channel. The announcement only saves time: a waiter looks again every `RECHECK_S` anyway, so a
leader that died is replaced when its lease ends. A caller that cannot wait, or cannot reach Redis, computes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from redis.asyncio import Redis
from redis.exceptions import RedisError

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.long_term import scripts

T = TypeVar("T")

#: Seconds between looks at a lease that another process holds: bounds what a lost announcement costs.
RECHECK_S = 0.25

#: Seconds of silence after which the announcement connection is pinged; as many again without an answer renew it.
QUIET_S = 5.0

#: Seconds before connecting for announcements again: waiters recheck meanwhile.
REST_S = 1.0

#: Seconds after which a task that was cancelled and goes on is cancelled again.
_FORGOTTEN_S = 1.0

_YOURS = -1
_REMEMBERED = -2


class FlightPlace(NamedTuple):
    """Where an answer lies that is a field of a hash, and the key of the lease under which it is computed; same tag."""

    hash: str
    field: str
    flight: str


@dataclass(frozen=True, slots=True)
class Joined(Generic[T]):
    """The answer that another caller computed."""

    value: T


class Leader(Generic[T]):
    """The caller's duty to compute: enter it at once, compute and remember inside, then `share` the answer."""

    __slots__ = ("_flights", "_future", "_key", "_token", "_value")

    def __init__(
        self,
        flights: "SingleFlight[T]",
        key: str | FlightPlace,
        token: str | None,
        future: asyncio.Future[Joined[T] | None] | None,
    ) -> None:
        self._flights = flights
        self._key = key
        self._token = token
        self._future = future
        self._value: Joined[T] | None = None

    @property
    def is_leased(self) -> bool:
        """Whether other processes wait for this one; False when Redis is away or waiting took too long."""
        return self._token is not None

    def share(self, value: T) -> None:
        """Hand the answer to the callers in this process who wait; without it one of them computes next."""
        self._value = Joined(value)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._future is not None:
            self._flights.settle(self._key, self._future, self._value)
        if self._token is not None:
            await self._flights.release(self._key, self._token)


class SingleFlight(Generic[T]):
    """Lets one of many identical callers compute; an async context manager that owns its two background tasks.

    Args:
        owner: Names this process; two with one name would share their leases.
        lease_s: Seconds after which a leader that is gone is replaced; renewed at a third while it computes.
        budget_s: Seconds that asking Redis may cost.
        breaker: Shared with the long-term memory of the same server.
    """

    def __init__(
        self,
        client: Redis,
        *,
        owner: str,
        lease_s: float = 5.0,
        budget_s: float = 0.05,
        breaker: Breaker | None = None,
    ) -> None:
        self._client = client
        self._owner = owner
        self._lease_s = lease_s
        self._lease_ms = max(1, round(lease_s * 1000))
        self._batch = CommandBatch(client, budget_s, breaker or Breaker())
        self._numbers = count(1)
        self._local: dict[str | FlightPlace, asyncio.Future[Joined[T] | None]] = {}
        self._held: dict[str, str] = {}
        self._holding = asyncio.Event()
        self._landed: dict[str, asyncio.Event] = {}
        self._wanted = asyncio.Event()
        self._listening = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._background: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._background = [
            self._tasks.create_task(self._renew(), name="single-flight-leases"),
            self._tasks.create_task(self._listen(), name="single-flight-announcements"),
        ]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._end_background()
        finally:
            await self._tasks.__aexit__(kind, error, trace)

    async def _end_background(self) -> None:
        """Cancel the background tasks until they end.

        Where a client has a timeout redis-py writes by `asyncio.wait_for`, which up to Python 3.11 forgets a
        cancellation that comes together with what it waits for.
        """
        left = {task for task in self._background if not task.done()}
        while left:
            for task in left:
                task.cancel()
            _, left = await asyncio.wait(left, timeout=_FORGOTTEN_S)

    async def join(
        self,
        key: str | FlightPlace,
        recall: Callable[[], Awaitable[T | None]],
        *,
        wait_s: float,
    ) -> Leader[T] | Joined[T]:
        """Return the answer to *key* when another caller computes it, or a Leader when the caller has to.

        Args:
            key: A key of `tasklore.memory.keys.ltm` that was just found empty, or the place of a field that was.
            recall: Looks the answer up again after another process has finished; MemoryUnavailable means "compute".
            wait_s: Seconds to wait for others at most; then the caller computes without a lease.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while True:
            ahead = self._local.get(key)
            if ahead is None:
                return await self._take(key, recall, deadline)
            done, _ = await asyncio.wait(
                (ahead,), timeout=max(0.0, deadline - loop.time())
            )
            if not done:
                return Leader(self, key, None, None)
            outcome = ahead.result()
            if outcome is not None:
                return outcome

    async def _take(
        self,
        key: str | FlightPlace,
        recall: Callable[[], Awaitable[T | None]],
        deadline: float,
    ) -> Leader[T] | Joined[T]:
        """Stand for this process: compete for the lease, and wait for the process that holds it."""
        future: asyncio.Future[Joined[T] | None] = (
            asyncio.get_running_loop().create_future()
        )
        self._local[key] = future
        token = f"{self._owner}:{next(self._numbers)}"
        settled: Joined[T] | None = None
        leads = False
        try:
            outcome = await self._compete(key, token, recall, deadline)
            if isinstance(outcome, Joined):
                settled = outcome
                return outcome
            leads = True
            return Leader(self, key, token if outcome else None, future)
        finally:
            if not leads:
                self.settle(key, future, settled)

    async def _compete(
        self,
        key: str | FlightPlace,
        token: str,
        recall: Callable[[], Awaitable[T | None]],
        deadline: float,
    ) -> Joined[T] | bool:
        """Return the answer, True with the lease in hand, or False to compute without one."""
        loop = asyncio.get_running_loop()
        flight = _flight_of(key)
        landed = self._landed[flight] = asyncio.Event()
        ignore_entry = 0
        try:
            while True:
                landed.clear()
                verdict = await self._lease(key, flight, token, ignore_entry)
                if verdict == _YOURS:
                    return True
                if verdict == _REMEMBERED:
                    value = await recall()
                    if value is not None:
                        return Joined(value)
                    # What is there cannot be read: it must not stop us for ever.
                    ignore_entry = 1
                elif (left_s := deadline - loop.time()) <= 0:
                    return False
                else:
                    await self._await_landing(
                        landed, min(left_s, verdict / 1000, RECHECK_S)
                    )
                    # Whoever held it may have put an answer there meanwhile.
                    ignore_entry = 0
        except MemoryUnavailable:
            return False
        finally:
            del self._landed[flight]

    async def _lease(
        self, key: str | FlightPlace, flight: str, token: str, ignore_entry: int
    ) -> int:
        terms = token, self._lease_ms, ignore_entry
        if isinstance(key, str):
            command: Command = ("FCALL", scripts.LEASE, 2, flight, key, *terms)
        else:
            command = ("FCALL", scripts.LEASE, 2, flight, key.hash, *terms, key.field)
        # A cancelled command may still reach Redis, even after its release: it has to be heard out.
        asking = self._tasks.create_task(self._ask(command))
        try:
            verdict = await asyncio.shield(asking)
        except asyncio.CancelledError:
            if await asking == _YOURS:
                await self._give_back(flight, token)
            raise
        if isinstance(verdict, MemoryUnavailable):
            raise verdict
        if verdict == _YOURS:
            self._held[flight] = token
            self._holding.set()
        return verdict

    async def _ask(self, command: Command) -> int | MemoryUnavailable:
        """Return the reply, or the error: raised in here, it would end the other tasks."""
        try:
            verdict: int = (await self._batch.run([command]))[0]
        except MemoryUnavailable as error:
            return error
        return verdict

    async def _await_landing(self, landed: asyncio.Event, wait_s: float) -> None:
        """Return when the flight is announced, or after *wait_s*; at once when announcements have just begun."""
        signal = landed if self._listening.is_set() else self._listening
        self._wanted.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await signal.wait()

    def settle(
        self,
        key: str | FlightPlace,
        future: asyncio.Future[Joined[T] | None],
        value: Joined[T] | None,
    ) -> None:
        """Let the callers in this process go on: with the answer, or with None to try themselves."""
        if self._local.get(key) is future:
            del self._local[key]
        if not future.done():
            future.set_result(value)

    async def release(self, key: str | FlightPlace, token: str) -> None:
        """Give the lease of *key* back, which wakes other processes; when Redis is away it ends by itself."""
        await self._give_back(_flight_of(key), token)

    async def _give_back(self, flight: str, token: str) -> None:
        if self._held.get(flight) == token:
            del self._held[flight]
        with suppress(MemoryUnavailable):
            await self._batch.run(
                [("FCALL", scripts.RELEASE, 1, flight, token, keys.FLIGHTS)]
            )

    async def _renew(self) -> None:
        """Keep every lease held in this process alive; one that was lost is let go."""
        while True:
            if not self._held:
                self._holding.clear()
                await self._holding.wait()
            await asyncio.sleep(self._lease_s / 3)
            held = list(self._held.items())
            commands = [
                ("FCALL", scripts.RENEW, 1, flight, token, self._lease_ms)
                for flight, token in held
            ]
            with suppress(MemoryUnavailable):
                replies = await self._batch.run(commands)
                for (flight, token), renewed in zip(held, replies, strict=True):
                    if not renewed and self._held.get(flight) == token:
                        del self._held[flight]

    async def _listen(self) -> None:
        """Wake waiters when their flight is announced; connects with the first waiter."""
        await self._wanted.wait()
        while True:
            try:
                await self._hear_announcements()
            except (RedisError, OSError, TimeoutError):
                self._listening.clear()
            await asyncio.sleep(REST_S)

    async def _hear_announcements(self) -> None:
        async with self._client.pubsub() as channel:
            async with asyncio.timeout(QUIET_S):
                await channel.subscribe(keys.FLIGHTS)
            unanswered = False
            while True:
                message: dict[str, Any] | None = await channel.get_message(
                    timeout=QUIET_S
                )
                if message is not None:
                    unanswered = False
                    self._hear(message)
                elif unanswered:
                    raise TimeoutError("the announcement connection is silent")
                else:
                    unanswered = True
                    async with asyncio.timeout(QUIET_S):
                        await channel.ping()

    def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] == "subscribe":
            self._listening.set()
        elif message["type"] == "message":
            landed = self._landed.get(message["data"].decode())
            if landed is not None:
                landed.set()


def _flight_of(key: str | FlightPlace) -> str:
    """Return the key of the lease under which the answer at *key* is computed."""
    return keys.flight_of(key) if isinstance(key, str) else key.flight
