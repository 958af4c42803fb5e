"""What every process of the house has: FastStream as its frame, a broker, metrics, a pulse and probes."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

import structlog
from faststream import FastStream

from tasklore.contracts.errors import ConfigurationError, TaskloreError, Unreachable
from tasklore.runtime import departure
from tasklore.runtime.access import access_of
from tasklore.runtime.blocking import BlockWatch, Runner
from tasklore.runtime.health import STUCK_AFTER_S, Check, HealthServer, Pulse
from tasklore.runtime.messaging.broker import make_broker
from tasklore.runtime.messaging.connection import ConnectionCallbacks
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.refusals import ServerRefusal
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.settings import Settings
from tasklore.runtime.watchdog import LEAVE_S, Watchdog

log = structlog.get_logger(__name__)

#: New objects between two collections: a task makes some hundred that reference counting frees, and the default of 700
#: looks for cycles among them every few tasks.
_COLLECT_EVERY = 50_000
#: Seconds after which a task that was cancelled and goes on is cancelled again.
_SWALLOWED_S = 1.0

Hook = Callable[[], Awaitable[None]]


class Process:
    """One process from start to end.

    FastStream is called in this order: the lifespan, `start`, `drain`, the broker's end, the rest of the lifespan.
    SIGTERM or SIGINT ends the step under way; parts that `start` had begun end with `drain`. A background task that
    fails, or a connection closed for good, ends the process with its error. *service* is what its spans are said to be
    of. One that stands still ends: its event loop, or, when it runs code of others that *may_block* the loop, all of
    its threads.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        service: str = "tasklore",
        *,
        may_block: bool = False,
    ) -> None:
        if settings.nats_url is None or settings.redis_url is None:
            raise ConfigurationError(
                "no servers are named; set TASKLORE_NATS_URL and TASKLORE_REDIS_URL, or run `tasklore up`"
            )
        self.name = name
        self._service = service
        self.nats_url = settings.nats_url
        self.redis_url = settings.redis_url
        self.metrics = Metrics(version("tasklore"))
        self.broker = make_broker(
            self.nats_url,
            name=f"tasklore-{name}",
            registry=self.metrics.registry,
            closed=self._notice_closed,
            refused=self._notice_refusal,
        )
        self.address = ""
        self._settings = settings
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: BaseException | None = None
        self._ends = asyncio.Event()
        self._when_asked: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_asked_to_end = False
        self._is_open = False
        self._is_ending = False
        self._may_block = may_block
        # What blocks for longer than its lease runs elsewhere, too, and may still be wanted here.
        self._stall_s = settings.stall_s + (settings.ack_wait_s if may_block else 0.0)
        self._watchdog = Watchdog(self._stall_s)
        self.hurried = asyncio.Event()
        """Set by a second signal: whoever waits for work to end does so no longer."""

    async def run(
        self,
        lifespan: Callable[[], AbstractAsyncContextManager[None]],
        start: Hook,
        drain: Hook,
    ) -> None:
        """Run until a signal or a failure.

        Raises:
            TaskloreError: what ended it; nothing on a signal.
        """
        self._loop = asyncio.get_running_loop()
        app = FastStream(
            self.broker,
            logger=None,
            on_startup=[self._harden_broker],
            after_startup=[start],
            on_shutdown=[self._begin_end, drain],
        )
        calm_collector()
        with departure.heeding(self._heed_signals(asyncio.current_task())):
            try:
                async with self._opened(lifespan):
                    await self._serve(app)
            except asyncio.CancelledError:
                if self._is_open or not self._is_asked_to_end:
                    raise
            finally:
                self._watchdog.stop()
        if isinstance(self._failure, TaskloreError):
            raise self._failure
        if self._failure is not None:
            msg = f"a part of the process failed: {type(self._failure).__name__}: {self._failure}"
            raise TaskloreError(msg) from self._failure

    async def _serve(self, app: FastStream) -> None:
        """Start *app*, and stop it when the process is to end; a part that is not started by then is never."""
        starting = asyncio.create_task(app.start())
        ending = asyncio.create_task(self._ends.wait())
        try:
            await asyncio.wait({starting, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not self._ends.is_set():
                starting.result()
                await ending
            await _cancel_all({starting})
            await app.stop()
        finally:
            await _cancel_all({starting, ending})

    async def _harden_broker(self) -> None:
        """Let a subject that is no text pass by: nats-py alone would hear nothing any more until its pings fail."""
        Link(await self.broker.connect())

    async def _begin_end(self) -> None:
        self._is_ending = True

    def _serving(self) -> tuple[bool, str]:
        """Announce readiness: a router must hear of the end of this process before it has ended."""
        return not self._is_ending, "leaving" if self._is_ending else "serving"

    @asynccontextmanager
    async def _opened(
        self, lifespan: Callable[[], AbstractAsyncContextManager[None]]
    ) -> AsyncIterator[None]:
        """Open *lifespan*, which may wait for servers that are not there yet; a signal ends that too."""
        async with self._recording(), lifespan():
            self._is_open = True
            yield

    @asynccontextmanager
    async def _recording(self) -> AsyncIterator[None]:
        """Record spans around everything, when that is switched on: nothing of it is imported otherwise."""
        if self._settings.tracing == "off":
            yield
            return
        from tasklore.runtime.tracing.exporting import recording

        async with recording(self._service, self.name, version("tasklore")):
            yield

    def _heed_signals(
        self, opening: "asyncio.Task[None] | None"
    ) -> Callable[[int], None]:
        """Return what ends this at the first signal, and at the second at once."""
        loop = asyncio.get_running_loop()

        def give_up_opening() -> None:
            # Again and again, as in `_cancel_all`.
            if not self._is_open and opening is not None and not opening.done():
                opening.cancel()
                loop.call_later(_SWALLOWED_S, give_up_opening)

        def heed(_number: int) -> None:
            log.info("asked_to_end", process=self.name, at_once=self._is_asked_to_end)
            if self._is_asked_to_end:
                self.hurried.set()
            else:
                self._watchdog.end_within(self._settings.grace_s + LEAVE_S)
                if not self._is_open:
                    give_up_opening()
                for stop in self._when_asked:
                    stop()
            self._is_asked_to_end = True
            self._ends.set()

        return heed

    def when_asked(self, stop: Callable[[], None]) -> None:
        """Call *stop* in the very turn of the loop in which a signal is heeded: it takes nothing more."""
        self._when_asked.append(stop)

    def listener(self, reconnected: Callable[[], None]) -> ConnectionCallbacks:
        """Return the callbacks of the main connection: it waits an outage out; its end ends the process."""

        def count_and_tell() -> None:
            self.metrics.count_reconnect("nats")
            reconnected()

        return ConnectionCallbacks(
            reconnected=count_and_tell,
            closed=lambda: self.fail(
                Unreachable("the connection to NATS was closed for good")
            ),
            refused=self._notice_refusal,
        )

    def count_redis_reconnect(self) -> None:
        """Count a connection to Redis that was lost and stands again."""
        self.metrics.count_reconnect("redis")

    def serve_probes(
        self,
        stack: AsyncExitStack,
        alive: Mapping[str, Check],
        ready: Mapping[str, Check],
        find_run: Callable[["asyncio.Task[Any]"], Runner | None] = lambda _task: None,
    ) -> None:
        """Answer `/healthz`, `/readyz` and `/metrics` until *stack* ends; `address` is known from here on.

        *find_run* names the run that a coroutine belongs to, for when it blocks the event loop.
        """
        if self._may_block:
            # Its leases are renewed by a thread, and whoever probes waits for what the watchdog waits for.
            pulse = Pulse(stuck_after_s=self._stall_s)
            self._watchdog.beat_from_thread()
            alive = {
                name: _unless_blocked(pulse, check) for name, check in alive.items()
            }
        else:
            pulse = Pulse(on_beat=self._watchdog.beat)
        blocks = BlockWatch(pulse, find_run, self.metrics.count_event_loop_block)
        self.metrics.watch_event_loop(pulse.lag_s)
        server = HealthServer(
            self._settings.http_host,
            self._settings.http_port,
            alive={
                "event_loop": pulse.check,
                "models": self.metrics.check_models,
                "model_dialects": self.metrics.check_dialects,
                **alive,
            },
            ready={"serving": self._serving, "event_loop": blocks.check, **ready},
            metrics=self.metrics.render,
        )
        server.start()
        stack.callback(server.stop)
        pulse.start()
        stack.callback(pulse.stop)
        blocks.start()
        stack.callback(blocks.stop)
        self.address = server.url

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run *work* beside everything else until the process ends; its failure is the process's."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._notice_end)
        self._tasks.append(task)

    async def end_tasks(self) -> None:
        """Cancel spawned tasks and wait for them."""
        await _cancel_all(set(self._tasks))

    def end(self) -> None:
        """End as at a signal."""
        self._ends.set()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that the process runs in, for its threads.

        Raises:
            ConfigurationError: it does not run yet.
        """
        if self._loop is None:
            raise ConfigurationError("the process does not run yet; call `run` first")
        return self._loop

    def fail(self, error: BaseException) -> None:
        """End the process because of *error*; the first one counts, and none once the end has begun."""
        if self._failure is None:
            self._failure = error
            log.error("process_failed", process=self.name, error=str(error))
        self._ends.set()

    def _notice_refusal(self, refusal: ServerRefusal) -> None:
        """End when the server does not let us do what this process is there for: nothing would ever come."""
        if refusal.is_vital:
            self.fail(refusal.error(access_of().role))

    def _notice_closed(self) -> None:
        """End because the broker hears nothing any more; that it is closed at the end is as it should be."""
        if not self._is_ending:
            self.fail(
                Unreachable("the broker's connection to NATS was closed for good")
            )

    def _notice_end(self, task: "asyncio.Task[None]") -> None:
        self._tasks.remove(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)


def _unless_blocked(pulse: Pulse, check: Check) -> Check:
    """Return *check*, which fails for nothing that only waits, or has only waited, for a blocked event loop."""

    def examine() -> tuple[bool, str]:
        is_fine, words = check()
        if not is_fine and pulse.steady_s() < STUCK_AFTER_S:
            return True, f"not known, as the event loop was blocked: {words}"
        return is_fine, words

    return examine


async def _cancel_all(tasks: "set[asyncio.Task[Any]]") -> None:
    """Cancel *tasks* and wait for them.

    Again and again: nats-py waits in a way that swallows a cancellation now and then.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_SWALLOWED_S)


def calm_collector() -> None:
    """Leave imported objects out of every garbage collection, and collect more seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_EVERY)
