"""Many Redis commands in one write, their replies read under one deadline.

redis-py connects, authenticates and reconnects. Its own pipeline spends 11-13 us of CPU a command, and its connection
60 us a round trip: here hiredis packs and reads on the two streams of that connection. These are the only private parts
of the library that we touch: hence the narrow pin of its version, and tests/integration/test_valkey_client.py.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, cast
from weakref import WeakKeyDictionary, proxy

import hiredis
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import (
    InvalidResponse,
    NoPermissionError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
)

from tasklore.contracts.errors import MemoryRefused, MemoryUnavailable
from tasklore.memory.breaker import Breaker
from tasklore.memory.scripts import LIBRARIES
from tasklore.memory.shared_connection import INCOMPLETE, LastHeard, SharedConnection

Command = tuple[str | bytes | int | float, ...]
Commands = Sequence[Command]

#: Typed by hiredis as if a command had exactly one word.
_pack: Callable[[Command], bytes] = cast("Any", hiredis.pack_command)

#: Seconds past a deadline in which the event loop reads what arrived while a task blocked it: the server was not late.
GRACE_S = 0.005
#: Seconds that a batch with a shorter deadline may take while the server answers others before it, or while the event
#: loop is what is late: as long as the ledger is waited for. What would be done instead is computing, by the same loop.
BUSY_S = 1.0


#: Seconds between attempts to reach a server that refuses connections: the second one follows at once, then doubling.
_FIRST_PAUSE_S = 0.02
_MOST_PAUSE_S = 0.25

#: Bytes that are read at once.
_READ_BYTES = 256 * 1024
#: Commands and bytes of a batch that goes over the connection which all share: a longer one would hold up the others.
_SMALL_COMMANDS = 16
_SMALL_BYTES = 16 * 1024

#: Batches under way at a time on one pool, over all stores that share it; on a small one half of what it has: a pool
#: raises when it has no connection left.
CONCURRENT = 16


@dataclass(slots=True)
class _Shared:
    """What all who exchange over one pool share: the connection of small batches; turns and connections of others.

    These connections stay taken from the pool, which closes them with its own: taking one and giving it back costs 6 of
    23 us.
    """

    small: SharedConnection
    turns: asyncio.Semaphore
    heard: LastHeard
    idle: list[AbstractConnection] = field(default_factory=list)


_shared: WeakKeyDictionary[ConnectionPool, _Shared] = WeakKeyDictionary()


def _find_shared(pool: ConnectionPool) -> _Shared:
    """Return what everybody shares who uses *pool*."""
    shared = _shared.get(pool)
    if shared is None:
        heard = LastHeard()
        turns = max(1, min(CONCURRENT, pool.max_connections // 2))
        shared = _shared[pool] = _Shared(
            # A table of pools that ends with each of them must not hold what it is about.
            small=SharedConnection(proxy(pool), heard),
            turns=asyncio.Semaphore(turns),
            heard=heard,
        )
    return shared


class CommandBatch:
    """Sends commands to Redis and returns their replies, or raises MemoryUnavailable within the deadline.

    Args:
        client: Where its connections come from.
        deadline_s: Seconds for one `run`, waiting for a connection included.
        breaker: When given, a server that keeps failing is left alone for a while.
        has_large_replies: Short commands are answered by bodies of many kilobytes: each batch has a connection of its
            own, on which nobody waits behind them.
    """

    def __init__(
        self,
        client: Redis,
        deadline_s: float,
        breaker: Breaker | None = None,
        *,
        has_large_replies: bool = False,
    ) -> None:
        self._pool = client.connection_pool
        self._has_large_replies = has_large_replies
        self._deadline_s = deadline_s
        self._breaker = breaker
        self._shared = _find_shared(client.connection_pool)

    async def exists(self, *names: str) -> bool:
        """Return whether there is anything at one of the keys *names*, which share a tag.

        It costs a tenth of a script that finds nothing there, and goes over the connection that all share.

        Raises:
            MemoryUnavailable: as `run`.
        """
        found = await self.run([("EXISTS", *names)], has_large_replies=False)
        return bool(found[0])

    async def run(
        self, commands: Sequence[Command], *, has_large_replies: bool | None = None
    ) -> list[Any]:
        """Return the reply to each of *commands*, bytes undecoded; commands after a lost connection are sent again.

        A script is an `FCALL` of a name out of `tasklore.memory.scripts`; a server that lacks the function is given
        it, if this user may load functions. *has_large_replies* is said of these commands alone, None for what all
        batches of this object have.

        Raises:
            MemoryUnavailable: no answer within the deadline, the server is away or resting, or it refused a command.
            MemoryRefused: it refused one for want of a right, which says nothing about the server.
        """
        if not commands:
            return []
        if has_large_replies is None:
            has_large_replies = self._has_large_replies
        breaker = self._breaker
        if breaker is not None and not breaker.allows():
            raise MemoryUnavailable(
                "Redis failed repeatedly and is left alone for a moment"
            )
        try:
            with Deadline(self._deadline_s, self._shared.heard):
                replies = await self._run_until_connected(commands, has_large_replies)
        except (TimeoutError, OSError, RedisError) as error:
            if isinstance(error, TimeoutError):
                self._shared.small.close_if_silent()
            if breaker is not None:
                # A full server still answers, and reads; so does one that refuses a role something.
                (
                    breaker.succeeded
                    if isinstance(error, OutOfMemoryError | NoPermissionError)
                    else breaker.failed
                )()
            refused = isinstance(error, NoPermissionError)
            raise (MemoryRefused if refused else MemoryUnavailable)(
                f"Redis gave no usable answer within {self._deadline_s:g} s: {str(error) or type(error).__name__}"
            ) from error
        if breaker is not None:
            breaker.succeeded()
        return replies

    async def _run_until_connected(
        self, commands: Sequence[Command], has_large_replies: bool
    ) -> list[Any]:
        """Run again whenever the connection broke, as long as the deadline lets us.

        A pooled connection may be of a server that has restarted since, and a restart takes less than most deadlines.
        """
        pause_s = 0.0
        while True:
            try:
                replies = await self._exchange(commands, has_large_replies)
                return await self._give_functions(commands, replies)
            except LostConnection:
                await asyncio.sleep(pause_s)
                pause_s = min(_MOST_PAUSE_S, 2 * pause_s or _FIRST_PAUSE_S)

    async def _give_functions(
        self, commands: Sequence[Command], replies: list[Any]
    ) -> list[Any]:
        """Return *replies*, repeated from the first one on for which the server lacked the function.

        Commands behind it may be about what it stores, and every batch may be sent again.

        Raises:
            RedisError: the server refused a command.
        """
        errors = [reply for reply in replies if isinstance(reply, RedisError)]
        if not errors:
            return replies
        unknown = [
            at for at, reply in enumerate(replies) if _is_unknown_function(reply)
        ]
        if not unknown:
            raise errors[0]
        names = {str(commands[index][1]) for index in unknown}
        loads: list[Command] = [("FUNCTION", "LOAD", LIBRARIES[name]) for name in names]
        first = unknown[0]
        answers = await self._exchange(
            loads + list(commands[first:]), has_large_replies=True
        )
        for answer in answers[: len(loads)]:
            demand_loaded(answer)
        replies[first:] = answers[len(loads) :]
        refused = [reply for reply in replies if isinstance(reply, RedisError)]
        if refused:
            raise refused[0]
        return replies

    async def _exchange(
        self, commands: Sequence[Command], has_large_replies: bool
    ) -> list[Any]:
        """Return the reply to each of *commands*, errors that concern one command among them.

        Raises:
            LostConnection: the connection broke, the server leaves, or it does not take commands yet.
        """
        shared = self._shared
        packed = b"".join(map(_pack, commands))
        is_small = len(commands) <= _SMALL_COMMANDS and len(packed) <= _SMALL_BYTES
        if is_small and not (has_large_replies or shared.small.is_congested):
            replies = await shared.small.exchange(len(commands), packed)
        else:
            async with shared.turns:
                replies = await self._exchange_alone(len(commands), packed)
        for reply in replies:
            if isinstance(reply, RedisError) and not isinstance(reply, ResponseError):
                raise reply
        return replies

    async def _exchange_alone(self, count: int, packed: bytes) -> list[Any]:
        """Return the replies over a connection that no other caller uses meanwhile."""
        idle = self._shared.idle
        connection = (
            idle.pop() if idle else await self._pool.get_connection()  # type: ignore[no-untyped-call] # redis-py
        )
        try:
            if not _is_ready(connection):
                # As the pool does: connects again what the server has closed meanwhile.
                await self._pool.ensure_connection(connection)
            return await _transact(connection, count, packed, self._shared.heard)
        except BaseException:
            # Replies may still be under way: the next user of this connection would read them as its own.
            await connection.disconnect(nowait=True)
            raise
        finally:
            idle.append(connection)


def _is_ready(connection: AbstractConnection) -> bool:
    """Return whether *connection* stands and nothing unread has arrived on it."""
    stream: asyncio.StreamReader | None = connection._reader  # noqa: SLF001 - see the head of the file
    if stream is None or not connection.is_connected:
        return False
    return not stream._buffer and not stream.at_eof()  # type: ignore[attr-defined]  # noqa: SLF001 - the library does


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


async def _transact(
    connection: AbstractConnection, count: int, packed: bytes, heard: LastHeard
) -> list[Any]:
    """Return the replies to the *count* commands that *packed* holds; *heard* notes each word.

    Raises:
        LostConnection: the connection broke.
    """
    stream: asyncio.StreamReader = connection._reader  # type: ignore[assignment]  # noqa: SLF001 - see the head
    writer: asyncio.StreamWriter = connection._writer  # type: ignore[assignment]  # noqa: SLF001
    make_error = connection._parser.parse_error  # noqa: SLF001
    reader = hiredis.Reader(
        protocolError=InvalidResponse, replyError=make_error, notEnoughData=INCOMPLETE
    )
    replies: list[Any] = []
    loop = asyncio.get_running_loop()
    try:
        writer.write(packed)
        while len(replies) < count:
            data = await stream.read(_READ_BYTES)
            if not data:
                raise LostConnection("the server closed the connection")
            heard.at = loop.time()
            reader.feed(data)
            while (reply := reader.gets(False)) is not INCOMPLETE:
                replies.append(reply)
    except (OSError, RuntimeError) as error:
        # A RuntimeError is uvloop's word for a transport that is closed.
        raise LostConnection(f"the connection was lost: {error}") from error
    if len(replies) > count:
        raise LostConnection("the server sent more replies than it was asked for")
    return replies


def as_mapping(reply: Any) -> dict[bytes, bytes]:
    """Return a HGETALL reply as a dict: protocol 3 sends one, protocol 2 a flat list."""
    return (
        reply
        if isinstance(reply, dict)
        else dict(zip(reply[::2], reply[1::2], strict=True))
    )


class Deadline:
    """Raises TimeoutError from its block after *seconds*, but not before the loop has read what already arrived.

    With *heard* the seconds count from the last word of the server to anybody, and only while the loop turns in time:
    a server that answers others is not late, nor is it when we are. So up to `BUSY_S` in all, where that is more.
    After a turn that took longer the process stood still, maybe before its question left: they count once more.

    As `asyncio.timeout`, which would be 8 of 55 us a round trip: cancels the task, and takes that back at the end.
    """

    __slots__ = (
        "_began_at",
        "_cancelling",
        "_due_at",
        "_handle",
        "_has_stood_still",
        "_has_struck",
        "_heard",
        "_loop",
        "_seconds",
        "_task",
    )

    def __init__(self, seconds: float, heard: LastHeard | None = None) -> None:
        self._seconds = seconds
        self._heard = heard
        self._has_stood_still = False
        self._has_struck = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline belongs in a task")
        self._task = task
        self._cancelling = task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._began_at = self._loop.time()
        self._wait(self._seconds)

    def _wait(self, seconds: float) -> None:
        self._due_at = self._loop.time() + seconds + GRACE_S
        self._handle = self._loop.call_later(seconds, self._spare_once)

    def _spare_once(self) -> None:
        self._handle = self._loop.call_later(
            GRACE_S, self._strike, self._loop.time() + GRACE_S
        )

    def _strike(self, due_at: float) -> None:
        now = self._loop.time()
        if (
            self._heard is not None
            and not self._has_stood_still
            and now - self._due_at > BUSY_S
        ):
            self._has_stood_still = True
            self._began_at = now
            self._wait(self._seconds)
            return
        if self._heard is not None and now - self._began_at < BUSY_S:
            left_s = (
                max(self._heard.at, self._began_at) + self._seconds + GRACE_S
            ) - now
            # What came in a turn of the loop that took so long is read in the next one.
            if left_s > 0 or now - due_at > GRACE_S:
                self._wait(max(0.0, left_s))
                return
        self._has_struck = True
        self._task.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._handle.cancel()
        if (
            self._has_struck
            and self._task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError from error
