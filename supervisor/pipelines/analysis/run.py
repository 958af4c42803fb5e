"""Driving the analysis of one response: agents are asked as planning allows, and their reports are folded at once.

The driver keeps nothing that the store does not have. Each turn reads the record, folds new reports, and writes both
only if the story has not changed since; another process that drives the same analysis takes the same turns.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import structlog

from tasklore.contracts.analysis.section_agents import SectionAgent
from tasklore.contracts.analysis.stories import StoryResponse, StorySettings
from tasklore.contracts.callers import Caller, payer_of
from tasklore.contracts.errors import (
    InvalidInput,
    MemoryUnavailable,
    NotAccepted,
    TaskloreError,
)
from tasklore.contracts.traces import spelled_context
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore
from tasklore.memory.stories.view import CHANGING, StandingStory
from tasklore.runtime import tracing
from tasklore.runtime.lease_loop import backoff
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.pipelines.analysis.document import Body, sections_of
from tasklore.supervisor.pipelines.analysis.pending import PendingAnalysis
from tasklore.supervisor.pipelines.analysis.records import (
    AnalysisRecord,
    SectionRecord,
    demand_agents,
    digest_of,
    read_record,
    roster_for,
    why_unknown,
)
from tasklore.supervisor.pipelines.analysis.reducer import AnalysisDraft, SectionReport
from tasklore.supervisor.pipelines.phase_task import (
    Failure,
    PhaseTask,
    PhaseTaskDependencies,
)

log = structlog.get_logger(__name__)

#: Times that a turn is tried again at once because others wrote to the story meanwhile.
_MOST_RACES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisParts(PhaseTaskDependencies):
    """What analyses are driven with; `keep` is how many of a story are kept."""

    stories: StoryStore
    analyses: AnalysisStore
    catalogue: Callable[[], Catalogue]
    keep: int = 100

    def now_ms(self) -> int:
        """Return the time in ms since 1970."""
        return int(self.now().timestamp() * 1000)


class StoryMoved(TaskloreError):
    """Others write to the story faster than this analysis can; it is tried again."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """What an analysis is of, as the story says it now."""

    settings: StorySettings
    response: StoryResponse
    roster: tuple[SectionAgent, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class _Turn:
    """The outcome of a turn: `before` is the record that it found, None when it opened one."""

    draft: AnalysisDraft
    before: AnalysisRecord | None
    is_written: bool


@dataclass(slots=True)
class _Events:
    """Reports and requests since the last turn; `run` is the one in which agents are asked again for `requests`."""

    reports: list[SectionReport] = field(default_factory=list)
    requests: list[PendingAnalysis] = field(default_factory=list)
    run: int | None = None

    @property
    def caller(self) -> Caller | None:
        """Who asks: the last that is known."""
        known = (one.caller for one in reversed(self.requests))
        return next((one for one in known if one is not None), None)

    def are_heeded(self, record: AnalysisRecord) -> bool:
        """Return whether *record* has asked again for these requests: a turn may be written and its reply lost."""
        if not self.requests:
            return True
        self.run = self.run or record.run + 1
        return record.run >= self.run


class AnalysisRun:
    """Drives the analysis of a response; add requests to it, and `run` it.

    Args:
        parts: The parts of drivers.
        story_id: The story.
        number: The response.
        turn: Held while this process writes to the story, so that its analyses do not race each other.
        lease_ms: How long others leave it alone once it is listed as under way, unless the lease is renewed.
        is_listed: Whether it is listed already.
    """

    def __init__(
        self,
        parts: AnalysisParts,
        story_id: str,
        number: int,
        turn: asyncio.Lock,
        *,
        lease_ms: int,
        is_listed: bool,
    ) -> None:
        self.key = story_id, number
        self.is_listed = is_listed
        self.is_closed = False
        #: Milliseconds from the end of its lease until another process may go on.
        self.rest_ms = 0
        self._parts = parts
        self._turn = turn
        self._lease_ms = lease_ms
        self._events = _Events()
        self._wake = asyncio.Event()
        self._waiting: list[PendingAnalysis] = []
        self._subject: _Subject | None = None
        self._record: AnalysisRecord | None = None
        self._written: tuple[bytes, dict[str, Body]] = (b"", {})
        self._revision = 0
        self._standing: tuple[int, StandingStory] | None = None
        self._watches: dict[str, asyncio.Task[None]] = {}

    def request(self, request: PendingAnalysis) -> None:
        """Answer *request* once its group is there."""
        self._events.requests.append(request)
        self._wake.set()

    def give_up(self, error: TaskloreError) -> None:
        """Answer every request that still waits with *error*."""
        for request in (*self._waiting, *self._events.requests):
            request.settle(error)

    async def run(self) -> None:
        """Drive until nothing more will come.

        Raises:
            UnknownStory: the story is gone.
            InvalidInput: the response is gone, or the story's settings contradict each other.
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

    async def end(self) -> None:
        """Take it out of the list of analyses under way.

        Raises:
            MemoryUnavailable: the store did not answer; it is due again once its lease has lapsed, and ended then.
        """
        if self.is_listed:
            self.is_listed = False
            await self._parts.analyses.end(self._parts.supervisor_id, *self.key)

    async def _work(self, group: asyncio.TaskGroup) -> None:
        failures = 0
        while True:
            events = self._events
            self._events = _Events()
            self._wake.clear()
            try:
                await self._take_turn(group, events)
            except BaseException as error:
                self._events.reports[:0] = events.reports
                self._events.requests[:0] = events.requests
                self._events.run = events.run or self._events.run
                is_begun = self.is_listed or self._record is not None
                if not is_begun or not isinstance(
                    error, MemoryUnavailable | StoryMoved
                ):
                    raise
                failures += 1
                log.info(
                    "analysis_waits_for_store",
                    story=self.key[0],
                    number=self.key[1],
                    error=str(error),
                )
                await asyncio.sleep(backoff(failures))
                continue
            failures = 0
            if self._record is not None and self._record.is_final:
                try:
                    await self.end()
                except MemoryUnavailable as error:
                    log.info(
                        "analysis_end_not_noted",
                        story=self.key[0],
                        number=self.key[1],
                        error=str(error),
                    )
                if not self._events.requests:
                    return
            await self._foresee()
            look_ms = self._record.next_look_ms() if self._record is not None else None
            with contextlib.suppress(TimeoutError):
                left_s = (
                    None
                    if look_ms is None
                    else max(0.0, (look_ms - self._parts.now_ms()) / 1000)
                )
                async with asyncio.timeout(left_s):
                    await self._wake.wait()

    async def _take_turn(self, group: asyncio.TaskGroup, events: _Events) -> None:
        """Fold *events* into the record, and watch the tasks of every section that is asked for.

        Raises:
            StoryMoved: others were always faster.
            MemoryUnavailable: the store did not answer; the same turn may be taken again.
        """
        is_current = bool(events.requests) or self._subject is None
        if is_current:
            await self._read_subject(events.requests)
        async with self._turn:
            turn = await self._try(events, is_current=is_current)
            for _ in range(_MOST_RACES):
                if turn.is_written:
                    break
                # Others have written to the story, or given the response another text.
                await self._read_subject(events.requests)
                turn = await self._try(events, is_current=True)
            else:
                raise StoryMoved(
                    f"story {self.key[0]!r} is written to by too many at once; it is tried again"
                )
        self._count(turn)
        self._record = turn.draft.record
        self._watch_asked(group, turn)
        self._answer(events.requests, turn)

    async def _read_subject(self, requests: Sequence[PendingAnalysis]) -> _Subject:
        """Return the response to analyse, as of now; *requests* fail here when there is none."""
        stories = self._parts.stories
        story_id, number = self.key
        try:
            settings, base_digest, response = await asyncio.gather(
                stories.settings(story_id),
                stories.base_digest(story_id),
                stories.response(story_id, number),
            )
            if response is None:
                raise InvalidInput(
                    f"response {number} of story {story_id!r} is not there; send its text"
                )
            roster = roster_for(settings)
        except TaskloreError as error:
            for request in requests:
                request.settle(error)
            raise
        self._subject = _Subject(
            settings, response, roster, digest_of(base_digest, response)
        )
        return self._subject

    async def _try(self, events: _Events, *, is_current: bool) -> _Turn:
        """Return the analysis once *events* are in, and whether it is written: not when others wrote meanwhile."""
        parts = self._parts
        now_ms = self._parts.now_ms()
        revision, document, body = await parts.analyses.record(*self.key)
        if (
            body is None
            and self._record is not None
            and not self._record.is_final
            and not events.requests
        ):
            story_id, number = self.key
            raise InvalidInput(
                f"the analysis of response {number} of story {story_id!r} was removed; ask again"
            )
        before = read_record(body)
        subject = self._subject
        if subject is None or (
            not is_current and before is not None and before.digest != subject.digest
        ):
            # The response has another text by now.
            subject = await self._read_subject(events.requests)
        self._revision = revision
        is_new = before is None or before.digest != subject.digest
        if is_new and events.requests:
            demand_agents(parts.catalogue(), subject.roster, self.key[0])
        draft = self._draft(
            None if is_new else before,
            document=document,
            subject=subject,
            revision=revision,
            now_ms=now_ms,
            caller=payer_of(events.caller, before.caller if before else None),
        )
        if not is_new and not events.are_heeded(draft.record):
            everybody = any(request.refresh for request in events.requests)
            draft.repeat(
                now_ms,
                everybody=everybody,
                revision=revision,
                trace=_trace(),
                caller=events.caller,
            )
        draft.mark_late(now_ms)
        changes_story = any(one.section in CHANGING for one in events.reports)
        draft.fold(
            events.reports,
            await self._stand(revision)
            if changes_story
            else StandingStory(settings=subject.settings),
        )
        draft.skip()
        draft.mend(now_ms)
        draft.ask(now_ms, lambda phase: why_unknown(parts.catalogue(), phase))
        return _Turn(
            draft, before, await self._write(revision, body, draft, subject.response)
        )

    async def _write(
        self,
        revision: int,
        before: bytes | None,
        draft: AnalysisDraft,
        response: StoryResponse,
    ) -> bool:
        """Return whether *draft* is written, or the record *before* it was the same; not when others wrote."""
        parts = self._parts
        record = draft.record.as_json()
        if record == before:
            return True
        if not self.is_listed and not draft.record.is_final:
            await parts.analyses.begin(parts.supervisor_id, *self.key, self._lease_ms)
            self.is_listed = True
        updated = parts.now().isoformat(timespec="seconds")
        document = json.dumps(
            draft.body(updated), ensure_ascii=False, separators=(",", ":")
        ).encode()
        is_written = await parts.analyses.fold(
            *self.key,
            revision=revision,
            document=document,
            record=record,
            changes=draft.changes,
            keep=parts.keep,
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
            own = {
                name: change
                for name, change in {**story.own, **draft.changes}.items()
                if change is not None
            }
            self._standing = self._revision, replace(story, own=own)
        return True

    def _draft(
        self,
        record: AnalysisRecord | None,
        document: bytes | None,
        subject: _Subject,
        revision: int,
        now_ms: int,
        caller: Caller | None,
    ) -> AnalysisDraft:
        """Return the analysis as stored so far, or one that begins now when *record* is None."""
        if record is None:
            what = subject.settings, subject.response, subject.roster, subject.digest
            return AnalysisDraft(
                AnalysisRecord.open(
                    *what, now_ms, rests_on=revision, trace=_trace(), caller=caller
                ),
                {},
            )
        if document is not None and document == self._written[0]:
            return AnalysisDraft(record, dict(self._written[1]))
        return AnalysisDraft(record, sections_of(document))

    async def _stand(self, revision: int) -> StandingStory:
        """Return the story before the response as it is at *revision*."""
        if self._standing is None or self._standing[0] != revision:
            self._standing = revision, await self._parts.stories.standing(*self.key)
        return self._standing[1]

    async def _foresee(self) -> None:
        """Read the story while agents are at work, so that their reports do not wait for it."""
        if (
            self._standing is None
            and self._record is not None
            and not self._record.is_final
        ):
            with contextlib.suppress(MemoryUnavailable):
                await self._stand(self._revision)

    def _watch_asked(self, group: asyncio.TaskGroup, turn: _Turn) -> None:
        """Watch the task of every section that is asked for, and cancel those of another text."""
        record = turn.draft.record
        before = turn.before
        known = before.asked() if before is not None else {}
        asked = record.asked()
        for task_id, seat in asked.items():
            if task_id not in self._watches:
                self._watches[task_id] = group.create_task(
                    self._watch(record, seat, is_new=task_id not in known)
                )
        for task_id, watch in self._watches.items():
            if task_id not in asked:
                watch.cancel()
        if not record.is_same(before):
            for task_id in known:
                group.create_task(self._abandon(task_id))

    async def _watch(
        self, record: AnalysisRecord, seat: SectionRecord, *, is_new: bool
    ) -> None:
        """Send the task of *seat*, wait for its report, and let the next turn fold it."""
        assignment = record.assignment(seat, self._parts.supervisor_id)
        report = None
        error = None
        try:
            # A process that goes on after another one has the trace from the record alone.
            with tracing.within(spelled_context(record.trace) or tracing.current()):
                task = PhaseTask(
                    self._parts,
                    record.phase(seat),
                    assignment,
                    is_new=is_new,
                    overdue_s=0.0,
                    leaves=True,
                )
                found = await task.report()
            if not isinstance(found, Failure):
                report = found
            elif found.error_type == "TaskExpired":
                report = found.report
            else:
                error = f"{found.error_type}: {found.error}"
        except Exception as problem:
            # One agent's trouble is not that of the others.
            log.exception("section_left", section=seat.section)
            error = f"{type(problem).__name__}: {problem}"
        self._events.reports.append(
            SectionReport(
                section=seat.section,
                task_id=assignment.task_id,
                at_ms=self._parts.now_ms(),
                report=report,
                error=error,
            )
        )
        self._wake.set()

    async def _abandon(self, task_id: str) -> None:
        try:
            await self._parts.canceller.cancel(
                task_id, "what it was to analyse has changed"
            )
        except (NotAccepted, MemoryUnavailable) as error:
            # It ends at its deadline, and its report is not heeded.
            log.info("abandoned_task_not_cancelled", task_id=task_id, error=str(error))

    def _answer(self, requests: Sequence[PendingAnalysis], turn: _Turn) -> None:
        """Answer the requests for which enough is there."""
        record = turn.draft.record
        before = turn.before
        is_served = (
            before is not None and record.is_same(before) and record.run == before.run
        )
        text = self._subject.response.text if self._subject is not None else None
        for request in (*self._waiting, *requests):
            if request.text is not None and request.text != text:
                words = f"response {self.key[1]} was given another text meanwhile; ask again if you mean it"
                request.settle(InvalidInput(words))
            elif record.is_over(request.group):
                request.settle(is_served and request in requests)
            request.begun.set()
        if is_served and requests and record.is_over():
            self._parts.meter.count_analysis("served")
        self._waiting = [
            request
            for request in (*self._waiting, *requests)
            if not request.answer.done()
        ]

    def _count(self, turn: _Turn) -> None:
        """Count the sections that ended in this turn, and the analysis when nothing more comes."""
        record = turn.draft.record
        before = turn.before
        meter = self._parts.meter
        known = before.ended() if before is not None else {}
        news = [
            seat for task_id, seat in record.ended().items() if task_id not in known
        ]
        for seat in news:
            meter.count_section(
                seat.agent_id, "late" if seat.state == "missed" else seat.state
            )
        if news and record.is_final:
            meter.count_analysis("fresh" if record.is_fresh else "partial")


def _trace() -> str:
    return str(tracing.current() or "")
