"""Driving the analysis of one response: agents are asked as the roster allows, and what has come is folded at once.

Nothing rests on this process. Each turn reads what is written, puts in what arrived, and writes it only if nobody has
written since; whoever drives the same analysis, after this process or beside it, takes the same turns.
"""

import asyncio
import contextlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import structlog

from contracts.analysis.roster import Seat, roster_of
from contracts.analysis.stories import StoryResponse, StorySettings
from contracts.errors import InvalidInput, MemoryUnavailable, NotAccepted, TaskloreError
from memory.stories.view import CHANGING, StandingStory
from runtime import tracing
from supervisor.analyses.agents_there import demand_agents, why_unknown
from supervisor.analyses.folding import Arrival, Draft, sections_of
from supervisor.analyses.parts import Parts
from supervisor.analyses.records import AnalysisRecord, digest_of, read_record
from supervisor.analyses.seats import SeatWatch
from supervisor.analyses.sums import Body
from supervisor.analyses.wishes import Outcome, Wish

log = structlog.get_logger(__name__)

#: Seconds between attempts to reach a store that is away: first, and at most.
_PAUSE_S, _PAUSE_CAP_S = 0.05, 1.0
#: Times that a turn is tried again at once because others wrote to the story meanwhile.
_MOST_RACES = 50


@dataclass(frozen=True, slots=True)
class Sight:
    """What an analysis is of, as the story says it now."""

    settings: StorySettings
    response: StoryResponse
    roster: tuple[Seat, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a turn came to: `before` is the record that it found, None when it opened one."""

    draft: Draft
    before: AnalysisRecord | None
    is_written: bool


@dataclass(slots=True)
class _Events:
    """What has come since the last turn; `run` is the one in which the wishes have agents asked again, once known."""

    arrivals: list[Arrival] = field(default_factory=list)
    wishes: list[Wish] = field(default_factory=list)
    run: int | None = None

    def are_heeded(self, record: AnalysisRecord) -> bool:
        """Return whether *record* has asked again for these wishes: a turn may be written without our hearing of it."""
        if not self.wishes:
            return True
        self.run = self.run or record.run + 1
        return record.run >= self.run


class Moved(TaskloreError):
    """Others write to the story faster than this analysis can; it is tried again."""


class Coordinator:
    """Drives the analysis of response *number* of the story *story_id*; `wish` what is waited for, and `run` it.

    Args:
        parts: What it works with.
        story_id: The story.
        number: The response.
        turn: Held while this process writes to the story: who waits for it would only lose the race.
        lease_ms: How long others leave it alone once it is listed as under way, unless the lease is renewed.
        is_known: Whether it is listed already.
    """

    def __init__(
        self, parts: Parts, story_id: str, number: int, turn: asyncio.Lock, *, lease_ms: int, is_known: bool = False
    ) -> None:
        self._parts = parts
        self._story_id = story_id
        self._number = number
        self._turn = turn
        self._lease_ms = lease_ms
        self.is_known = is_known
        #: Milliseconds from its lease's end until another process may go on.
        self.rest_ms = 0
        self._events = _Events()
        self._came = asyncio.Event()
        self._waiting: list[Wish] = []
        self._sight: Sight | None = None
        self._record: AnalysisRecord | None = None
        self._written: tuple[bytes, dict[str, Body]] = (b"", {})
        self._revision = 0
        self._standing: tuple[int, StandingStory] | None = None
        self._watches: dict[str, asyncio.Task[None]] = {}
        self.is_closed = False

    def wish(self, wish: Wish) -> None:
        """Take *wish* up: its outcome comes when what it waits for is there."""
        self._events.wishes.append(wish)
        self._came.set()

    def forgo(self, outcome: Outcome | TaskloreError) -> None:
        """Tell everybody who still waits that nothing more comes of it here."""
        for wish in (*self._waiting, *self._events.wishes):
            wish.settle(outcome)

    async def run(self) -> None:
        """Drive until nothing more will come.

        Raises:
            UnknownStory: the story is gone.
            InvalidInput: the response is gone, or the story says what cannot be.
            MemoryUnavailable: the store did not answer, and nothing was begun.
        """
        problem: TaskloreError | None = None
        async with asyncio.TaskGroup() as group:
            try:
                await self._work(group)
            except TaskloreError as error:
                problem = error
            finally:
                self.is_closed = True
                for watch in self._watches.values():
                    watch.cancel()
        if problem is not None:
            raise problem

    async def _work(self, group: asyncio.TaskGroup) -> None:
        pause_s = _PAUSE_S
        while True:
            events, self._events = self._events, _Events()
            self._came.clear()
            try:
                await self._take_turn(group, events)
            except BaseException as error:
                self._put_back(events)
                is_begun = self.is_known or self._record is not None
                if not is_begun or not isinstance(error, MemoryUnavailable | Moved):
                    raise
                log.info("analysis_waits_for_store", story=self._story_id, number=self._number, error=str(error))
                await asyncio.sleep(random.uniform(0.5, 1.0) * pause_s)  # noqa: S311 - jitter
                pause_s = min(_PAUSE_CAP_S, 2 * pause_s)
                continue
            pause_s = _PAUSE_S
            if self._record is not None and self._record.is_final and await self._is_ended():
                return
            await self._foresee()
            await self._wait()

    def _put_back(self, events: _Events) -> None:
        self._events.arrivals[:0] = events.arrivals
        self._events.wishes[:0] = events.wishes
        self._events.run = events.run or self._events.run

    async def _wait(self) -> None:
        """Return when something has come, or whoever waits for others has no more patience."""
        record, timeout_s = self._record, None
        if record is not None and any(seat.state == "waiting" for seat in record.seats):
            timeout_s = max(0.0, (record.patience_ends_ms - self._parts.now_ms()) / 1000)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._came.wait()

    async def end(self) -> None:
        """Take the analysis out of the list of those under way.

        Raises:
            MemoryUnavailable: the store did not answer; it is due again once its lease has lapsed, and ended then.
        """
        if self.is_known:
            self.is_known = False
            await self._parts.analyses.end(self._parts.supervisor_id, *self.key)

    async def _is_ended(self) -> bool:
        """End it; False when something was wished meanwhile."""
        try:
            await self.end()
        except MemoryUnavailable as error:
            log.info("analysis_end_not_noted", story=self._story_id, number=self._number, error=str(error))
        return not self._events.wishes

    async def _take_turn(self, group: asyncio.TaskGroup, events: _Events) -> None:
        """Put *events* into what is written, and see that whoever is asked is watched.

        Raises:
            Moved: others were always faster.
            MemoryUnavailable: the store did not answer; the same turn may be taken again.
        """
        has_looked = bool(events.wishes) or self._sight is None
        if has_looked:
            await self._look(events.wishes)
        async with self._turn:
            turn = await self._try(events, has_looked=has_looked)
            for _ in range(_MOST_RACES):
                if turn.is_written:
                    break
                # Others have written to the story, or given the response another text.
                await self._look(events.wishes)
                turn = await self._try(events, has_looked=True)
            else:
                raise Moved(f"story {self._story_id!r} is written to by too many at once; it is tried again")
        self._count(turn)
        self._record = turn.draft.record
        self._watch_asked(group, turn)
        self._answer(events.wishes, turn)

    async def _look(self, wishes: Sequence[Wish]) -> Sight:
        """Return what is to be analysed, as of now; *wishes* fail here when there is no such thing."""
        stories, story_id = self._parts.stories, self._story_id
        try:
            settings, base_digest, response = await asyncio.gather(
                stories.settings(story_id), stories.base_digest(story_id), stories.response(*self.key)
            )
            if response is None:
                raise InvalidInput(f"response {self._number} of story {story_id!r} is not there; send its text")
            roster = roster_of(settings.agents)
        except TaskloreError as error:
            for wish in wishes:
                wish.settle(error)
            raise
        self._sight = Sight(settings, response, roster, digest_of(base_digest, response))
        return self._sight

    async def _try(self, events: _Events, *, has_looked: bool) -> _Turn:
        """Return what there is once *events* are in, and whether that is written: not when somebody else was faster."""
        parts, now_ms = self._parts, self._parts.now_ms()
        revision, document, body = await parts.analyses.record(*self.key)
        self._demand_record(body, events)
        before, sight = read_record(body), self._sight
        if sight is None or (not has_looked and before is not None and before.digest != sight.digest):
            # Somebody has given the response another text.
            sight = await self._look(events.wishes)
        self._revision = revision
        is_new = before is None or before.digest != sight.digest
        if is_new and events.wishes:
            demand_agents(parts.catalogue(), sight.roster, self._story_id)
        draft = self._draft(None if is_new else before, document, sight, revision, now_ms)
        if not is_new and not events.are_heeded(draft.record):
            everybody = any(wish.refresh for wish in events.wishes)
            draft.repeat(now_ms, everybody=everybody, revision=revision, trace=_trace())
        changes_story = any(arrival.section in CHANGING for arrival in events.arrivals)
        draft.fold(events.arrivals, await self._stand(revision) if changes_story else StandingStory(sight.settings))
        draft.skip()
        draft.mend(now_ms)
        draft.ask(now_ms, lambda seat: why_unknown(parts.catalogue(), seat))
        return _Turn(draft, before, await self._write(revision, body, draft, sight.response))

    async def _write(self, revision: int, before: bytes | None, draft: Draft, response: StoryResponse) -> bool:
        """Return whether *draft* is what is written, or the record *before* it was the same; not when others wrote."""
        parts, record = self._parts, draft.record.as_json()
        if record == before:
            return True
        if not self.is_known and not draft.record.is_final:
            await parts.analyses.begin(parts.supervisor_id, *self.key, self._lease_ms)
            self.is_known = True
        updated = parts.now().isoformat(timespec="seconds")
        document = json.dumps(draft.body(updated), ensure_ascii=False, separators=(",", ":")).encode()
        is_written = await parts.analyses.fold(
            *self.key,
            revision,
            document,
            record,
            draft.changes,
            parts.keep,
            of=response,
            is_under_way=not draft.record.is_final,
            rests_on=draft.record.rests_on,
        )
        if not is_written:
            return False
        self._revision = revision + 1
        self._written = document, draft.sections
        if self._standing is not None and self._standing[0] == revision:
            story = self._standing[1]
            own = {name: change for name, change in {**story.own, **draft.changes}.items() if change is not None}
            self._standing = self._revision, replace(story, own=own)
        return True

    def _demand_record(self, body: bytes | None, events: _Events) -> None:
        """See that what is under way here is not begun anew when nobody wishes it.

        Raises:
            InvalidInput: nothing is written of it any more.
        """
        is_under_way = self._record is not None and not self._record.is_final
        if body is None and is_under_way and not events.wishes:
            raise InvalidInput(
                f"the analysis of response {self._number} of story {self._story_id!r} was removed meanwhile; ask again"
            )

    def _draft(
        self, record: AnalysisRecord | None, document: bytes | None, sight: Sight, revision: int, now_ms: int
    ) -> Draft:
        """Return what is written so far, or an analysis that begins now when *record* is None."""
        if record is None:
            what = sight.settings, sight.response, sight.roster, sight.digest
            return Draft(AnalysisRecord.opened(*what, now_ms, rests_on=revision, trace=_trace()), {})
        if document is not None and document == self._written[0]:
            return Draft(record, dict(self._written[1]))
        return Draft(record, sections_of(document))

    async def _stand(self, revision: int) -> StandingStory:
        """Return the story before the response as it is at *revision*."""
        if self._standing is None or self._standing[0] != revision:
            self._standing = revision, await self._parts.stories.standing(*self.key)
        return self._standing[1]

    async def _foresee(self) -> None:
        """Read the story while agents are at work: what they find is not to wait for it."""
        if self._standing is None and self._record is not None and not self._record.is_final:
            with contextlib.suppress(MemoryUnavailable):
                await self._stand(self._revision)

    def _watch_asked(self, group: asyncio.TaskGroup, turn: _Turn) -> None:
        """Watch every seat that is asked, and give up the tasks of what stood there before."""
        record, before = turn.draft.record, turn.before
        known, asked = before.asked() if before is not None else {}, record.asked()
        for task_id, seat in asked.items():
            if task_id not in self._watches:
                watch = SeatWatch(self._parts, record, seat, self._hear, is_new=task_id not in known)
                self._watches[task_id] = group.create_task(watch.watch())
        for task_id, watching in self._watches.items():
            if task_id not in asked:
                watching.cancel()
        if not record.is_same(before):
            for task_id in known:
                group.create_task(self._abandon(task_id))

    async def _abandon(self, task_id: str) -> None:
        try:
            await self._parts.canceller.cancel(task_id, "what it was to analyse has changed")
        except (NotAccepted, MemoryUnavailable) as error:
            # It ends at its deadline, and nobody heeds its report.
            log.info("abandoned_task_not_cancelled", task_id=task_id, error=str(error))

    def _hear(self, arrival: Arrival) -> None:
        self._events.arrivals.append(arrival)
        self._came.set()

    def _answer(self, wishes: Sequence[Wish], turn: _Turn) -> None:
        """Tell those for whom enough is there."""
        record, before = turn.draft.record, turn.before
        is_served = before is not None and record.is_same(before) and record.run == before.run
        text = self._sight.response.text if self._sight is not None else None
        for wish in (*self._waiting, *wishes):
            if wish.text is not None and wish.text != text:
                wish.settle(
                    InvalidInput(f"response {self._number} was given another text meanwhile; ask again if you mean it")
                )
            elif record.is_over(wish.group):
                wish.settle(Outcome(served=is_served and wish in wishes))
        if is_served and wishes and record.is_over():
            self._parts.meter.count_analysis("served")
        self._waiting = [wish for wish in (*self._waiting, *wishes) if not wish.is_settled]

    def _count(self, turn: _Turn) -> None:
        """Count what has ended in this turn, and the analysis when nothing more comes."""
        record, before, meter = turn.draft.record, turn.before, self._parts.meter
        known = before.ended() if before is not None else {}
        news = [seat for task_id, seat in record.ended().items() if task_id not in known]
        for seat in news:
            meter.count_section(seat.agent_id, "late" if seat.state == "missed" else seat.state)
        if news and record.is_final:
            meter.count_analysis("fresh" if record.is_fresh else "partial")

    @property
    def key(self) -> tuple[str, int]:
        """Story and number of the response."""
        return self._story_id, self._number


def _trace() -> str:
    return str(tracing.current() or "")
