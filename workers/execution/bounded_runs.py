"""Bounds on runs: a task under `at_most`, its own or that of limits, runs once it holds a place under each bound.

Without one it waits for its turn in LATER, and keeps its turn under the bounds before that one for as long.
A task that waits holds no slot and no delivery. Its schedule is stored before its name is listed: so whoever gives up a
place finds it there and brings it forward. Should that be lost with a worker, the next in turn looks by itself once the
lease of the place before it is over.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import nats.errors
import structlog
from nats.aio.client import Client

from tasklore.contracts import subjects
from tasklore.contracts.admission.limits import MOST_RUNS, Limits, Payer
from tasklore.contracts.admission.waits import RunWait, WaitReason
from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    MessageTooLarge,
    NotAccepted,
)
from tasklore.memory.concurrency.semaphore import (
    Full,
    HeldElsewhere,
    Permit,
    Semaphore,
    Taken,
    WouldDeadlock,
)
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.pull import PullEngine
from tasklore.workers.context.children import identity_of
from tasklore.workers.execution.job import Job
from tasklore.workers.execution.retry_scheduling import Retries
from tasklore.workers.execution.running_jobs import RunningJob
from tasklore.workers.task import bound_of

log = structlog.get_logger(__name__)

#: Seconds until a task is offered again while places cannot be read; or cannot wait in LATER: at first, at most.
_PARKED_S = 2.0
_POLL_S = 0.5
_LONGEST_POLL_S = 30.0
#: Seconds for one schedule to be read; until it is looked whether a task that was called came: first, last.
_READ_S = 1.0
_FOLLOWED_S = 0.5
_LAST_FOLLOWED_S = 60.0
#: Seconds between looks of a run that goes on once it has its places again; and for other limits.
_AGAIN_S = 0.25
_LIMITS_S = 0.5
#: Milliseconds for which a turn is kept beyond the next look of a task that waits for another place.
_KEPT_MS = 5_000
#: By how much a task that another one called stands before those that none did, in microseconds.
_SOONER_US = 10**15


class HeldPlaces:
    """The places of the runs of this process, renewed from the thread of leases.

    A run whose place could not be renewed ends by itself before another may begin, unless it must not run twice.
    """

    def __init__(self) -> None:
        #: By bound and token.
        self._held: dict[
            tuple[str, str], tuple[Permit, RunningJob, asyncio.TimerHandle]
        ] = {}

    def add(
        self, place: Permit, running: RunningJob, at: float, lease_s: float
    ) -> None:
        """Keep *place*, which was asked for *at* a time of the monotonic clock, for *lease_s* from then."""
        if (earlier := self._held.get(name := (place.bound, place.token))) is not None:
            earlier[2].cancel()
        left_s = at + lease_s - time.monotonic()
        timer = asyncio.get_running_loop().call_later(left_s, self.lose, place)
        self._held[name] = place, running, timer

    def drop(self, place: Permit) -> None:
        """Renew *place* no more."""
        if (held := self._held.pop((place.bound, place.token), None)) is not None:
            held[2].cancel()

    def lose(self, place: Permit) -> None:
        """End the run that held *place*; its task runs again."""
        if (held := self._held.get((place.bound, place.token))) is not None:
            log.warning("place_lost", bound=place.bound, task_id=held[1].name[0])
            if held[1].job.task.idempotent:
                held[1].hand_back("its place could not be kept")

    async def renew(self, store: Semaphore, owner: asyncio.AbstractEventLoop) -> None:
        """Renew all in *store*; for the thread of leases, *owner* is the loop of the runs."""
        places = [place for place, _, _ in self._held.copy().values()]
        at = time.monotonic()
        try:
            lost = await store.hold(places)
        except MemoryUnavailable as error:
            log.info("places_not_renewed", places=len(places), error=str(error))
            return
        if places:
            owner.call_soon_threadsafe(self._note, places, lost, at, store.lease_s)

    def _note(
        self,
        places: Sequence[Permit],
        lost: Sequence[Permit],
        at: float,
        lease_s: float,
    ) -> None:
        for place in places:
            if place in lost:
                self.lose(place)
            elif (held := self._held.get((place.bound, place.token))) is not None:
                self.add(place, held[1], at, lease_s)


class RunPlaces:
    """The places of the run of *running*: *own* is that of its task's own bound, *limited* are those under limits."""

    def __init__(
        self,
        runs: "BoundedRuns",
        running: RunningJob,
        own: Sequence[Permit],
        limited: Sequence[Permit],
    ) -> None:
        self._runs = runs
        self._running = running
        self.own = own
        self.limited = list(limited)
        #: Those that it has, by bound.
        self.taken: dict[str, Permit] = {}

    async def lend(self) -> None:
        """Give up the places under limits while the run waits for tasks that it called: these may need them."""
        await self.leave([place for place in self.limited if place.bound in self.taken])

    async def reclaim(self) -> None:
        """Wait until it has all places again; a run that does not wait so long ends, and its task runs again."""
        try:
            for place in self.limited:
                while True:
                    if await self._runs.take_again(place, self._running):
                        self.taken[place.bound] = place
                        break
                    await asyncio.sleep(_AGAIN_S)
        except asyncio.CancelledError:
            if self._running.job.task.idempotent:
                self._running.hand_back(
                    "others took its place while it waited for tasks that it called"
                )
            raise

    async def leave(self, places: Sequence[Permit]) -> None:
        """Give *places* up, of which it may wait for some."""
        for place in places:
            is_held = self.taken.pop(place.bound, None) is not None
            await self._runs.leave(place if is_held else place._replace(token=""))

    def follow(self, limits: Limits) -> None:
        """Hold its places under other *limits*."""
        most = limits.bounds_of(_payer_of(self._running.job))
        self.limited = [
            place._replace(limit=most.get(place.bound, MOST_RUNS))
            for place in self.limited
        ]


class BoundedRuns:
    """Holds runs to the bounds of their tasks, and to those of the limits.

    Args:
        worker_id: Whose places these are.
        store: Where places are.
        held: All places of this process.
        ledger: Knows the tasks that have ended.
        client: Reads schedules.
        retries: Lets tasks run later.
        read_limits: Returns the limits that hold.
    """

    def __init__(
        self,
        *,
        worker_id: str,
        store: Semaphore,
        held: HeldPlaces,
        ledger: Ledger,
        client: Client,
        retries: Retries,
        read_limits: Callable[[], Awaitable[Limits]],
    ) -> None:
        self._worker_id = worker_id
        self._store = store
        self._held = held
        self._ledger = ledger
        self._client = client
        self._retries = retries
        self._read_limits = read_limits
        self._following: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._limited: set[RunPlaces] = set()
        self._watching: asyncio.Task[None] | None = None

    async def places_of(self, running: RunningJob) -> RunPlaces | None:
        """Return the places that the run needs, None where nothing bounds it."""
        job = running.job
        try:
            limits = await self._read_limits()
        except MemoryUnavailable:
            # They were never read: nobody has seen any.
            limits = Limits()
        bounds = limits.bounds_of(_payer_of(job))
        if job.task.at_most is None and not bounds:
            return None
        place = self._place_of(job)
        own = [place] if job.task.at_most is not None else []
        # Its caller had its turn before others, and waits for it.
        arrival = (
            place.arrival - _SOONER_US if job.assignment.ancestors else place.arrival
        )
        limited = [
            place._replace(bound=bound, limit=most, arrival=arrival, above=())
            for bound, most in bounds.items()
        ]
        places = RunPlaces(self, running, own, limited)
        running.places = places
        if limited:
            self._limited.add(places)
            if self._watching is None or self._watching.done():
                self._watching = asyncio.create_task(self._watch(limits))
        return places

    @asynccontextmanager
    async def hold(
        self, places: RunPlaces, running: RunningJob, engine: PullEngine
    ) -> AsyncIterator[bool]:
        """Hold *places* in the block, which is to do nothing on False: then the task comes again in its turn.

        Raises:
            InvalidInput: a task above it holds its place, and waits for it.
        """
        may_run = False
        try:
            may_run = await self._take(places, running, engine)
            yield may_run
        finally:
            self._limited.discard(places)
            # One that has run waits for none of them any more.
            await places.leave(
                [*places.own, *places.limited]
                if may_run
                else list(places.taken.values())
            )

    async def _take(
        self, places: RunPlaces, running: RunningJob, engine: PullEngine
    ) -> bool:
        job = running.job
        try:
            for place in (*places.own, *places.limited):
                at = time.monotonic()
                found = await self._store.take(place)
                if not isinstance(found, Taken):
                    break
                places.taken[place.bound] = place
                self._held.add(place, running, at, self._store.lease_s)
            else:
                return True
            if isinstance(found, Full):
                if await self._has_ended(job.assignment.named, job.generation):
                    # Its report has to be published once more, which takes no place.
                    return True
                while places.taken:
                    self._held.drop(kept := places.taken.popitem()[1])
                    await self._store.keep(kept, found.wait_ms + _KEPT_MS)
        except MemoryUnavailable as error:
            log.warning(
                "parked_without_places",
                task_id=job.assignment.task_id,
                error=str(error),
            )
            engine.hand_back(job.delivery, _PARKED_S)
            return False
        if isinstance(found, WouldDeadlock):
            name = f"{job.assignment.agent_id}.{job.task.name}"
            msg = (
                f"{name} would wait for ever: a task above it holds its concurrency "
                f"slot (at_most={place.limit}) and waits for it"
            )
            raise InvalidInput(
                f"{msg}; do its work in that task, or call it with another value of `per`"
            )
        if isinstance(found, HeldElsewhere):
            engine.hand_back(job.delivery, min(_PARKED_S, found.wait_ms / 1000))
        else:
            await self._park(job, place, found, engine)
        return False

    async def take_again(self, place: Permit, running: RunningJob) -> bool:
        """Take *place* for a run that had lent it; return False where it has to wait."""
        at = time.monotonic()
        try:
            if isinstance(await self._store.take(place), Taken):
                self._held.add(place, running, at, self._store.lease_s)
                return True
            await self._store.queue(place._replace(arrival=0))
        except MemoryUnavailable as error:
            log.info("place_not_taken", bound=place.bound, error=str(error))
        return False

    def _place_of(self, job: Job) -> Permit:
        assignment = job.assignment
        task = job.task
        root = assignment.root_id or assignment.task_id
        name = f"{assignment.agent_id}.{task.name}:"
        above = [
            f"{root}|{one}"
            for one in assignment.ancestors or ()
            if one.startswith(name)
        ]
        return Permit(
            bound_of(task, assignment, job.parameters, job.user),
            task=f"{assignment.task_id}:{job.generation}",
            limit=task.at_most or 1,
            worker_id=self._worker_id,
            token=job.delivery.reply,
            arrival=job.delivery.stored_us,
            mark=f"{root}|{identity_of(assignment)}",
            above=tuple(above),
        )

    async def _park(
        self, job: Job, place: Permit, found: Full, engine: PullEngine
    ) -> None:
        """Let *job* wait for its turn, in LATER where it may."""
        now = datetime.now(UTC)
        left_s = job.seconds_left(datetime.now(UTC))
        wait_s = min(
            found.wait_ms / 1000, found.wait_ms / 1000 if left_s is None else left_s
        )
        try:
            is_stored = await self._retries.postpone(
                job, now + timedelta(seconds=wait_s)
            )
            is_waiting = await self._store.queue(place)
            if is_stored and not is_waiting:
                await self._retries.postpone(job, now, mark=":turn")
        except (NotAccepted, MemoryUnavailable) as error:
            log.info(
                "wait_not_stored", task_id=job.assignment.task_id, error=str(error)
            )
            is_stored = False
        await self._note_wait(job, place, now + timedelta(seconds=wait_s))
        if is_stored:
            self._retries.settle(job, engine)
        else:
            engine.hand_back(
                job.delivery, min(_POLL_S * (1 + found.rank), _LONGEST_POLL_S)
            )

    async def _note_wait(self, job: Job, place: Permit, until: datetime) -> None:
        """Note for readers of *job* that it waits for *place*."""
        name = f"{job.assignment.agent_id}.{job.task.name}"
        kind: WaitReason = "bound"
        text = f"a concurrency slot of {name} (at most {place.limit:,} at once)"
        with contextlib.suppress(MemoryUnavailable):
            limit = (await self._read_limits()).bound_of(_payer_of(job), place.bound)
            if limit is not None:
                kind = "limit"
                name = limit.name
                text = f"a concurrency slot under limit {name} (at most {place.limit:,} at once)"
            wait = RunWait(
                kind=kind,
                name=name,
                text=text,
                since=datetime.now(UTC),
                until=until,
            )
            await self._ledger.note_wait(
                job.assignment.named, job.generation, wait, job.make_row()
            )

    async def leave(self, place: Permit) -> None:
        """Give *place* up, and let those come whose turn it is; without a token, wait for it no more."""
        self._held.drop(place)
        try:
            called = await self._store.leave(place)
            if called:
                await self._call(place, called)
        except MemoryUnavailable as error:
            log.info("place_not_left", bound=place.bound, error=str(error))

    async def _call(self, place: Permit, tasks: Sequence[str]) -> None:
        """Bring the runs of *tasks* forward, whose turn it is; one that has ended makes room for the next."""
        waiting = list(tasks)
        while waiting:
            task = waiting.pop()
            task_id, _, generation = task.rpartition(":")
            if not await self._bring_forward(
                task_id, int(generation)
            ) and await self._has_ended(task_id, int(generation)):
                waiting = await self._store.leave(place._replace(task=task, token=""))
        if (name := (place.bound, place.limit)) not in self._following:
            following = asyncio.create_task(self._follow(place))
            self._following[name] = following
            following.add_done_callback(lambda _: self._following.pop(name))

    async def _follow(self, place: Permit) -> None:
        """Look whether those that were called came: one may have been answered from memory, or have expired."""
        pause_s = _FOLLOWED_S
        while pause_s < _LAST_FOLLOWED_S:
            await asyncio.sleep(pause_s)
            pause_s *= 2
            with contextlib.suppress(MemoryUnavailable):
                called = await self._store.leave(place._replace(task=""))
                if not called:
                    return
                await self._call(place, called)

    async def _watch(self, seen: Limits) -> None:
        """Let those that wait come when limits change: who waits does so for a place that some process holds."""
        while self._limited:
            await asyncio.sleep(_LIMITS_S)
            limits = await self._read_limits()
            if limits is seen:
                continue
            seen = limits
            for run in self._limited:
                run.follow(limits)
            for place in {
                place.bound: place for run in self._limited for place in run.limited
            }.values():
                with contextlib.suppress(MemoryUnavailable):
                    await self._call_under(place)

    async def _call_under(self, place: Permit) -> None:
        """Call those whose turn it is under the bound of *place*; all, once, where it bounds nothing any more."""
        called = await self._store.leave(place._replace(task=""))
        if called and place.limit < MOST_RUNS:
            await self._call(place, called)
            return
        for task in called:
            task_id, _, generation = task.rpartition(":")
            await self._bring_forward(task_id, int(generation))
            await self._store.leave(place._replace(task=task, token=""))

    async def _bring_forward(self, task_id: str, generation: int) -> bool:
        """Let a task run now that waits in LATER; return False where it does not."""
        if not self._retries.has_later:
            # Nothing waits there, and it is offered again from its queue.
            return False
        subject = subjects.schedule(task_id, generation)
        try:
            found = await self._client.request(
                f"$JS.API.DIRECT.GET.{subjects.LATER}.{subject}", timeout=_READ_S
            )
            headers = dict(found.headers or {})
            if "Status" in headers or subjects.SCHEDULE_TARGET_HEADER not in headers:
                return False
            await self._retries.bring_forward(subject, found.data, headers)
        except (
            NotAccepted,
            MessageTooLarge,
            TimeoutError,
            OSError,
            nats.errors.Error,
        ) as error:
            # It looks by itself before long.
            log.info(
                "task_not_called",
                task_id=task_id,
                error=str(error) or type(error).__name__,
            )
        return True

    async def _has_ended(self, task_id: str, generation: int) -> bool:
        return await self._ledger.find_report(task_id, generation) is not None


def _payer_of(job: Job) -> Payer:
    assignment = job.assignment
    return Payer(
        assignment.tenant or "", job.user or "", assignment.agent_id, job.task.name
    )
