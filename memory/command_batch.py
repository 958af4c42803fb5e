"""Many Redis commands in one write, their replies read under one deadline.

redis-py's own pipeline spends 11-13 us of CPU a command on packing and on a timer a reply; hiredis packing and one
timer a batch spend 3 us, on the same pool and the same connections.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import hiredis
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import NoPermissionError, OutOfMemoryError, RedisError, ResponseError

from contracts.errors import MemoryUnavailable
from memory.breaker import Breaker
from memory.scripts import LIBRARIES

Command = tuple[str | bytes | int | float, ...]
Commands = Sequence[Command]

#: Typed by hiredis as if a command had exactly one word.
_pack: Callable[[Command], bytes] = cast("Any", hiredis.pack_command)

#: Seconds past a deadline in which the event loop reads what arrived while a task blocked it: the server was not late.
GRACE_S = 0.005


#: Seconds between attempts to reach a server that refuses connections: the second one follows at once, then doubling.
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.02, 0.25

#: Batches under way at a time on one pool, over all stores that share it; on a small one half of what it has: a pool
#: raises when it has no connection left.
CONCURRENT = 16


class _Shared(NamedTuple):
    """What all who exchange over one pool share: turns, and the connections that are not in use.

    These stay taken from the pool, which closes them with its own: taking one and giving it back costs 6 of 23 us.
    """

    turns: asyncio.Semaphore
    idle: list[AbstractConnection]


_shared: WeakKeyDictionary[ConnectionPool, _Shared] = WeakKeyDictionary()


def _find_shared(pool: ConnectionPool) -> _Shared:
    """Return what everybody shares who uses *pool*."""
    shared = _shared.get(pool)
    if shared is None:
        shared = _shared[pool] = _Shared(asyncio.Semaphore(max(1, min(CONCURRENT, pool.max_connections // 2))), [])
    return shared


class CommandBatch:
    """Sends commands to Redis and returns their replies, or raises MemoryUnavailable within the deadline.

    Args:
        client: Where its connections come from.
        deadline_s: Seconds for one `run`, waiting for a connection included.
        breaker: When given, a server that keeps failing is left alone for a while.
    """

    def __init__(self, client: Redis, deadline_s: float, breaker: Breaker | None = None) -> None:
        self._pool = client.connection_pool
        self._deadline_s = deadline_s
        self._breaker = breaker
        self._turns, self._idle = _find_shared(client.connection_pool)

    async def run(self, commands: Sequence[Command]) -> list[Any]:
        """Return the reply to each of *commands*, bytes undecoded; commands after a lost connection are sent again.

        A script is an `FCALL` of a name out of `memory.scripts`; a server that lacks the function is given it, if this
        user may load functions.

        Raises:
            MemoryUnavailable: no answer within the deadline, the server is away or resting, or it refused a command.
        """
        if not commands:
            return []
        breaker = self._breaker
        if breaker is not None and not breaker.allows():
            raise MemoryUnavailable("Redis failed repeatedly and is left alone for a moment")
        try:
            async with Deadline(self._deadline_s), self._turns:
                replies = await self._run_until_connected(commands)
        except (TimeoutError, OSError, RedisError) as error:
            if breaker is not None:
                # A full server still answers, and reads.
                (breaker.succeeded if isinstance(error, OutOfMemoryError) else breaker.failed)()
            raise MemoryUnavailable(
                f"Redis gave no usable answer within {self._deadline_s:g} s: {error or type(error).__name__}"
            ) from error
        if breaker is not None:
            breaker.succeeded()
        return replies

    async def _run_until_connected(self, commands: Sequence[Command]) -> list[Any]:
        """Run again whenever the connection broke, as long as the deadline lets us.

        A pooled connection may be of a server that has restarted since, and a restart takes less than most deadlines.
        """
        pause_s = 0.0
        while True:
            try:
                return await self._run_once(commands)
            except LostConnection:
                await asyncio.sleep(pause_s)
                pause_s = min(_MOST_PAUSE_S, 2 * pause_s or _FIRST_PAUSE_S)

    async def _run_once(self, commands: Sequence[Command]) -> list[Any]:
        connection = self._idle.pop() if self._idle else await self._pool.get_connection()  # type: ignore[no-untyped-call] # redis-py
        try:
            # As the pool does: connects again what the server has closed meanwhile.
            await self._pool.ensure_connection(connection)
            replies = await _transact(connection, commands)
            unknown = [index for index, reply in enumerate(replies) if _is_unknown_function(reply)]
            if unknown:
                repeated = [commands[index] for index in unknown]
                names = {str(one[1]) for one in repeated}
                loads: list[Command] = [("FUNCTION", "LOAD", LIBRARIES[name]) for name in names]
                answers = await _transact(connection, loads + repeated)
                for answer in answers[: len(loads)]:
                    demand_loaded(answer)
                for index, answer in zip(unknown, answers[len(loads) :], strict=True):
                    replies[index] = answer
        except BaseException:
            # Replies may still be under way: the next user of this connection would read them as its own.
            await connection.disconnect(nowait=True)
            raise
        finally:
            self._idle.append(connection)
        for reply in replies:
            if isinstance(reply, ResponseError):
                raise reply
        return replies


def _is_unknown_function(reply: Any) -> bool:
    return isinstance(reply, ResponseError) and str(reply) == "Function not found"


def demand_loaded(answer: Any) -> None:
    """Raise *answer* to a FUNCTION LOAD if it is an error, unless the server has that library already.

    Raises:
        NoPermissionError: this user may not load functions; the message names the cure.
    """
    if isinstance(answer, NoPermissionError):
        raise NoPermissionError(
            "it lacks functions of this version, which this user may not load; run `tasklore bootstrap`"
        ) from answer
    if isinstance(answer, ResponseError) and "already exists" not in str(answer):
        raise answer


async def _transact(connection: AbstractConnection, commands: Sequence[Command]) -> list[Any]:
    await connection.send_packed_command(b"".join(map(_pack, commands)))
    replies: list[Any] = []
    for _ in commands:
        try:
            replies.append(await connection.read_response(disable_decoding=True, timeout=math.inf))
        except ResponseError as error:
            replies.append(error)
    return replies


def as_mapping(reply: Any) -> dict[bytes, bytes]:
    """Return a HGETALL reply as a dict: protocol 3 sends one, protocol 2 a flat list."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


class Deadline:
    """Raises TimeoutError from its block after *seconds*, but not before the loop has read what already arrived."""

    __slots__ = ("_handle", "_seconds", "_timeout")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.Timeout(None)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._handle = asyncio.get_running_loop().call_later(self._seconds, self._spare_once)

    def _spare_once(self) -> None:
        self._handle = asyncio.get_running_loop().call_later(GRACE_S, self._strike)

    def _strike(self) -> None:
        self._timeout.reschedule(asyncio.get_running_loop().time())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.cancel()
        await self._timeout.__aexit__(kind, error, trace)
