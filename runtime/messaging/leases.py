"""The lease on what a worker holds, renewed from a thread of its own: a blocked event loop must not lose it."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Self

import nats.errors
from nats.aio.client import Client

from tasklore.contracts.errors import Unreachable
from tasklore.runtime.access import access_of
from tasklore.runtime.messaging.connection import ConnectionCallbacks, connected

if TYPE_CHECKING:
    from tasklore.runtime.metrics import Metrics

#: Beats in one acknowledgement wait: two may be lost before the server offers the message to somebody else.
BEATS = 3

_IN_PROGRESS = b"+WPI"
#: Seconds to wait for the thread to start or stop.
_PATIENCE_S = 10.0


#: Renews once; must not raise, and has deadlines of its own.
Beat = Callable[[], Awaitable[None]]


class Leases:
    """Everything held longer than a beat is renewed on its own connection, whatever the event loop does.

    *failed* is called in the owner's event loop when the thread ends before it should: leases would run out one by one.
    *beside* opens, in the thread, something else to be renewed as often: held deliveries are leased elsewhere too.

    A regular expression or another C call that holds the interpreter's lock stops this thread too: hence a generous
    `ack_wait`, see docs/reference/delivery.md.
    """

    def __init__(
        self,
        *,
        url: str,
        ack_wait_s: float,
        meter: "Metrics",
        failed: Callable[[BaseException], None],
        beside: Callable[[], AbstractAsyncContextManager[Beat]] | None = None,
    ) -> None:
        self._owner = asyncio.get_running_loop()
        self._failed = failed
        self._url = url
        self._beat_s = ack_wait_s / BEATS
        self._meter = meter
        self._beside = beside
        self._held: dict[str, float] = {}
        # Between a look and a write of this thread the other one may drop what is being renewed.
        self._lock = threading.Lock()
        self._started = threading.Event()
        self._stopping: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._problem: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, name="tasklore-leases", daemon=True
        )

    async def __aenter__(self) -> Self:
        """Start the thread and wait until it is connected."""
        self._thread.start()
        await asyncio.to_thread(self._started.wait, _PATIENCE_S)
        if self._problem is not None:
            raise self._problem
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop renewing: deliveries still held go to another worker after `ack_wait`."""
        if (
            self._loop is not None
            and self._stopping is not None
            and not self._loop.is_closed()
        ):
            self._loop.call_soon_threadsafe(self._stopping.set)
        await asyncio.to_thread(self._thread.join, _PATIENCE_S)

    def hold(self, reply: str) -> None:
        """Begin to renew the delivery whose acknowledgement subject is *reply*."""
        self._held[reply] = time.monotonic() + self._beat_s

    def drop(self, reply: str) -> None:
        """Stop renewing *reply*."""
        with self._lock:
            self._held.pop(reply, None)

    def _run(self) -> None:
        try:
            asyncio.run(self._beat())
        except BaseException as raised:  # noqa: BLE001 - a thread's end must reach its owner
            error = (
                raised.exceptions[0]
                if isinstance(raised, BaseExceptionGroup)
                else raised
            )
            self._problem = error
            if self._started.is_set():
                self._tell(error)
        finally:
            self._started.set()

    def _tell(self, error: BaseException) -> None:
        self._owner.call_soon_threadsafe(self._failed, error)

    async def _beat(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        listener = ConnectionCallbacks(
            closed=lambda: self._tell(
                Unreachable("the lease connection was closed for good")
            ),
            refused=lambda refusal: self._tell(refusal.error(access_of().role)),
        )
        async with (
            connected(self._url, "tasklore-leases", listener) as client,
            asyncio.TaskGroup() as group,
        ):
            if self._beside is not None:
                group.create_task(self._beat_beside(self._beside, self._stopping))
            self._started.set()
            while not self._stopping.is_set():
                await self._renew(client)
                await self._pause(self._stopping, self._beat_s / 4)

    async def _beat_beside(
        self,
        beside: Callable[[], AbstractAsyncContextManager[Beat]],
        stopping: asyncio.Event,
    ) -> None:
        async with beside() as beat:
            while not stopping.is_set():
                await beat()
                await self._pause(stopping, self._beat_s)

    async def _pause(self, stopping: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await stopping.wait()
        except TimeoutError:
            return

    async def _renew(self, client: Client) -> None:
        now = time.monotonic()
        # A copy first: each pair of `items` may set off the garbage collector, and with it the other thread.
        for reply, due_at in self._held.copy().items():
            if now < due_at:
                continue
            try:
                await client.publish(reply, _IN_PROGRESS)
            except (nats.errors.Error, OSError):
                self._meter.count_lease_heartbeat(delivered=False)
                continue
            self._meter.count_lease_heartbeat(delivered=client.is_connected)
            with self._lock:
                if reply in self._held:
                    self._held[reply] = now + self._beat_s
