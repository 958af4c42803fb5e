"""The scheduler: a little before each tick its task is put into LATER, from where it comes to the second.

A tick has one task id: two schedulers that make it, or one after a kill, make one run. The state is written after the
task, so that a scheduler that dies in between leaves a tick that is made again.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import ClassVar

import structlog

from tasklore.contracts.errors import InvalidInput, MessageTooLarge, NotAccepted
from tasklore.memory.schedules.store import KeptSchedule, Schedule
from tasklore.runtime.claim_loop import ClaimLoop, NotYet
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.makers import HELD, spell_hold, until_look
from tasklore.supervisor.schedules.book import AHEAD, ScheduleBook, look_at
from tasklore.supervisor.schedules.tick_maker import TickMaker
from tasklore.supervisor.schedules.ticks import last_tick, ticks_after

log = structlog.get_logger(__name__)

#: Schedules looked at side by side, ticks of one that are made in one turn, and missed ones that are counted.
_AT_ONCE = 100
_TICKS = 100
_COUNTED = 1_000
#: A tick that passed longer ago was missed: its schedule says whether it is made up for.
MISSED_AFTER = timedelta(seconds=30)
#: Seconds after which another scheduler takes over from one that fell silent, and until a refused tick is retried.
_LEASE_S = 2.0
_REFUSED_S = 1.0
_SECOND = timedelta(seconds=1)


class Scheduler(ClaimLoop[str, KeptSchedule]):
    """Makes the ticks of the schedules in *book*, in this process; `run` until `drain`. Its keys are their ids."""

    #: Every step of a tick is done once, whoever does it.
    is_exclusive: ClassVar[bool] = False

    def __init__(self, book: ScheduleBook, maker: TickMaker) -> None:
        super().__init__(
            "schedule", at_once=_AT_ONCE, lease_s=_LEASE_S, slack_s=_LEASE_S
        )
        self._book = book
        self._maker = maker
        self._declared: Catalogue | None = None

    async def is_idle(self) -> bool:
        """Return whether there are no schedules, and no agent is known whose code may declare some."""
        is_known = self._maker.catalogue() is self._declared
        return is_known and await self._book.store.is_idle()

    async def due(self, limit: int) -> Sequence[str]:
        """Return schedules with a tick soon, leased from then on."""
        catalogue = self._maker.catalogue()
        if catalogue is not self._declared:
            await self._book.declare()
            self._declared = catalogue
        # The look leases them, so that no more are taken than begin at once.
        room = max(1, self._at_once - self.busy)
        return await self._book.store.due(
            self._book.now(), self._lease_ms, min(limit, room)
        )

    async def claim(self, key: str) -> KeptSchedule | None:
        """Return the schedule as it is now."""
        return (await self._book.store.read(key))[0]

    async def work(self, key: str, lease: KeptSchedule) -> float:
        """Make the ticks that are near, and note them; a one-off is removed behind its tick."""
        schedule, state = lease
        now = self._book.now()
        if schedule.paused or state.next is None:
            await self._book.store.advance(lease, state, None)
            return 0.0
        loss = self._book.makers.find_loss(schedule.caller, "ask")
        if loss is not None:
            await self._hold(lease, loss, state.next)
            return 0.0
        ticks, missed = choose_ticks(schedule, state.next, now)
        if missed:
            log.warning(
                "ticks_missed",
                schedule=schedule.id,
                count=missed,
                policy=schedule.timing.missed,
            )
        problem = "" if state.problem.startswith(HELD) else state.problem
        made = state._replace(missed=state.missed + missed, problem=problem)
        for tick in ticks:
            task_id = None
            problem = ""
            try:
                task_id = await self._maker.make(schedule, tick)
            except NotAccepted as error:
                raise NotYet(str(error), _REFUSED_S) from error
            except (InvalidInput, MessageTooLarge) as error:
                problem = str(error)[:500]
                log.warning("tick_refused", schedule=schedule.id, error=problem)
            made = made._replace(last=tick, task_id=task_id, problem=problem)
        is_whole = len(ticks) < _TICKS
        done = max(now + AHEAD, state.next - _SECOND) if is_whole else ticks[-1]
        made = made._replace(
            next=next(ticks_after(schedule.timing, done, schedule.anchor), None)
        )
        if schedule.timing.at is not None and made.next is None and not made.problem:
            await self._book.store.remove(schedule)
        elif not await self._book.store.advance(lease, made, look_at(schedule, made)):
            kept = await self.claim(key)
            if kept is None or kept.schedule.paused:
                # It was so while its tick was made.
                await self._maker.withdraw(self._book.find_ahead(made))
        return 0.0

    async def _hold(self, lease: KeptSchedule, loss: str, tick: datetime) -> None:
        """Let the schedule rest, with its *tick* and those after it, until it is looked at again.

        Another scheduler, which knows the key, may make the tick meanwhile.
        """
        schedule, state = lease
        now = self._book.now()
        problem = describe_hold(schedule.id, loss)
        if problem != state.problem:
            log.warning("schedule_paused", schedule=schedule.id, why=problem)
        held = state._replace(problem=problem)
        await self._book.store.advance(lease, held, now + until_look(now, tick))

    async def renew(self, lease: KeptSchedule) -> bool:  # noqa: ARG002 - as in `ClaimLoop`
        """Return True: a scheduler that takes longer than its lease does no harm."""
        return True

    async def give_back(self, lease: KeptSchedule) -> None:
        """Let the lease lapse: where the work came to its end, it is noted when to look next."""


def describe_hold(schedule_id: str, loss: str) -> str:
    """Return the problem of a schedule that rests because of *loss*, with its cure."""
    return spell_hold(loss, f"tasklore schedules resume {schedule_id}")


def choose_ticks(
    schedule: Schedule, following: datetime, now: datetime
) -> tuple[list[datetime], int]:
    """Return the ticks to make now, from *following* on, at most a hundred, and how many are not made up for."""
    timing = schedule.timing
    anchor = schedule.anchor
    cutoff = now - MISSED_AFTER
    is_late = following < cutoff and timing.missed != "all"
    begin = max(following, cutoff) if is_late else following
    near = takewhile(
        lambda tick: tick <= now + AHEAD, ticks_after(timing, begin - _SECOND, anchor)
    )
    ticks = [tick for tick in islice(near, _TICKS) if tick >= begin]
    if not is_late:
        return ticks, 0
    gone = takewhile(
        lambda tick: tick < begin, ticks_after(timing, following - _SECOND, anchor)
    )
    missed = sum(1 for _ in islice(gone, _COUNTED))
    last = (
        last_tick(timing, following, cutoff, anchor)
        if timing.missed == "once"
        else None
    )
    if last is None or last in ticks:
        return ticks, missed
    return [last, *ticks], missed - 1
