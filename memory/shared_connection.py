"""One connection of a pool over which many small batches of commands go at a time.

What several tasks ask in one turn of the event loop is written together, and what the server answers is read together:
a batch on a connection of its own costs a write, a read and the turns of a stream reader more.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any, cast

import hiredis
from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import InvalidResponse

#: Seconds without a word of the server after which a connection with unanswered commands is given up. Longer than
#: anybody waits for a small batch: what is under way then is sent a second time.
SILENT_S = 2.0
#: What a reader returns while the next reply is not complete.
INCOMPLETE = object()


@dataclass(slots=True)
class LastHeard:
    """When the server last said anything to anybody who shares a pool, by the clock of the event loop."""

    at: float = 0.0


@dataclass(slots=True, eq=False)
class _Exchange:
    """A batch under way: how many replies are due, those that have come, and who waits for them."""

    count: int
    answered: asyncio.Future[list[Any]]
    sent_at: float
    replies: list[Any] = field(default_factory=list)


class _Pipeline(asyncio.Protocol):
    """What is under way on one transport; replies belong to exchanges in the order of sending.

    An exchange whose caller has left keeps its place, as its replies come all the same. *replaced* is the protocol that
    the library gave the transport: its closing waits until that one is told of the end.
    """

    def __init__(
        self, reader: hiredis.Reader, transport: asyncio.Transport, heard: LastHeard
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = reader
        self._transport = transport
        self._heard = heard
        self._waiting: deque[_Exchange] = deque()
        self._unsent: list[bytes] = []
        self.is_open = not transport.is_closing()
        self.is_congested = False
        self._replaced = transport.get_protocol()
        transport.set_protocol(self)

    async def exchange(self, count: int, packed: bytes) -> list[Any]:
        """Return the replies to the *count* commands that *packed* holds."""
        if not self.is_open:
            raise LostConnection("the connection is closed")
        exchange = _Exchange(count, self._loop.create_future(), self._loop.time())
        self._waiting.append(exchange)
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(packed)
        return await exchange.answered

    def is_silent(self) -> bool:
        """Return whether the oldest command has no answer, and nobody has one, for longer than is waited."""
        if not self._waiting:
            return False
        last = max(self._waiting[0].sent_at, self._heard.at)
        return self._loop.time() - last >= SILENT_S

    def close(self, why: str) -> None:
        """Close the connection at once; whoever waits is told *why*, and may send again."""
        self.is_open = False
        self._transport.abort()
        self._unsent.clear()
        waiting = self._waiting
        self._waiting = deque()
        for exchange in waiting:
            if not exchange.answered.done():
                exchange.answered.set_exception(LostConnection(why))

    def _flush(self) -> None:
        if self.is_open:
            packed = b"".join(self._unsent)
            self._unsent.clear()
            self._transport.write(packed)

    def data_received(self, data: bytes) -> None:
        """Hand the replies in *data* to those who wait, in turn."""
        self._heard.at = self._loop.time()
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets(False)) is not INCOMPLETE:
                self._hand_out(reply)
        except InvalidResponse as error:
            self.close(f"the server sent an invalid reply: {error}")

    def _hand_out(self, reply: Any) -> None:
        if not self._waiting:
            self.close("the server sent more replies than it was asked for")
            return
        exchange = self._waiting[0]
        exchange.replies.append(reply)
        if len(exchange.replies) < exchange.count:
            return
        self._waiting.popleft()
        if not exchange.answered.done():
            exchange.answered.set_result(exchange.replies)

    def pause_writing(self) -> None:
        """Note that the server does not read as fast as is written."""
        self.is_congested = True

    def resume_writing(self) -> None:
        """Note that it has read most of it."""
        self.is_congested = False

    def connection_lost(self, error: Exception | None) -> None:
        """Tell all who wait, and the protocol of the library."""
        self._replaced.connection_lost(error)
        self.close(f"the connection was lost: {error or 'closed by the server'}")


class SharedConnection:
    """The connection of *pool* for small batches, opened by the first of them and again whenever it is lost.

    redis-py connects and authenticates; from then on the transport is ours.
    """

    def __init__(self, pool: ConnectionPool, heard: LastHeard) -> None:
        self._pool = pool
        self._heard = heard
        self._opening = asyncio.Lock()
        self._connection: AbstractConnection | None = None
        self._pipeline: _Pipeline | None = None

    @property
    def is_congested(self) -> bool:
        """Whether commands wait in this process because the server does not read them: send no more this way."""
        pipeline = self._pipeline
        return pipeline is not None and pipeline.is_open and pipeline.is_congested

    async def exchange(self, count: int, packed: bytes) -> list[Any]:
        """Return the replies to the *count* commands that *packed* holds, errors of the server among them.

        Raises:
            LostConnection: the connection broke before all had come, or there is none.
        """
        pipeline = self._pipeline
        if pipeline is None or not pipeline.is_open:
            pipeline = await self._open()
        return await pipeline.exchange(count, packed)

    def close_if_silent(self) -> None:
        """Give up a connection on which the server says nothing although it was asked; the next batch opens another."""
        if self._pipeline is not None and self._pipeline.is_silent():
            self._pipeline.close("the server said nothing")

    async def _open(self) -> _Pipeline:
        """Connect, unless another caller has done so while this one waited for its turn."""
        async with self._opening:
            if self._pipeline is not None and self._pipeline.is_open:
                return self._pipeline
            if self._connection is None:
                self._connection = await self._pool.get_connection()  # type: ignore[no-untyped-call] # redis-py
            else:
                await self._connection.disconnect(nowait=True)
                await self._pool.ensure_connection(self._connection)
            writer: asyncio.StreamWriter = self._connection._writer  # type: ignore[assignment]  # noqa: SLF001 - see `CommandBatch`
            reader = hiredis.Reader(
                protocolError=InvalidResponse,
                replyError=self._connection._parser.parse_error,  # noqa: SLF001 - see `CommandBatch`
                notEnoughData=INCOMPLETE,
            )
            transport = cast("asyncio.Transport", writer.transport)
            self._pipeline = _Pipeline(reader, transport, self._heard)
            return self._pipeline
