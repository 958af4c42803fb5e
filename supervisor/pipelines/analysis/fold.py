"""The fold of the phases of an analysis: requests and reports, put into record, document and story at once.

Nothing is kept that the store does not have. A turn reads the record, puts in the news, and writes all only if the
story has not changed since; another process that folds the same analysis, one of 0.2 too, takes the same turns.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

import structlog

from tasklore.contracts.analysis.section_agents import SectionAgent
from tasklore.contracts.analysis.stories import StoryResponse, StorySettings
from tasklore.contracts.callers import Caller, payer_of
from tasklore.contracts.errors import InvalidInput, MemoryUnavailable, NotAccepted
from tasklore.memory.stories.analyses import AnalysisStore
from tasklore.memory.stories.store import StoryStore
from tasklore.memory.stories.view import CHANGING, StandingStory
from tasklore.runtime import tracing
from tasklore.runtime.claim_loop import NotYet
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.pipelines.analysis.document import sections_of
from tasklore.supervisor.pipelines.analysis.records import (
    AnalysisRecord,
    demand_agents,
    digest_of,
    read_record,
    roster_for,
    why_unknown,
)
from tasklore.supervisor.pipelines.analysis.reducer import AnalysisDraft, SectionReport
from tasklore.supervisor.pipelines.phase_task import PhaseTaskDependencies

log = structlog.get_logger(__name__)

#: Times that a turn is tried again at once because others wrote to the story meanwhile, and seconds of rest then.
_MOST_RACES = 50
_CROWDED_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisParts(PhaseTaskDependencies):
    """The parts of those that make analyses.

    `keep` is how many of a story are kept, `lease_s` seconds after which another process goes on with the analyses of
    one that fell silent. `turns` are held, by story, while this process writes to it, so that it does not race itself.
    """

    stories: StoryStore
    analyses: AnalysisStore
    catalogue: Callable[[], Catalogue]
    keep: int = 100
    lease_s: float = 10.0
    turns: WeakValueDictionary[str, asyncio.Lock] = field(
        default_factory=WeakValueDictionary
    )

    @property
    def lease_ms(self) -> int:
        """`lease_s` in ms."""
        return max(1, int(self.lease_s * 1000))

    def now_ms(self) -> int:
        """Return the time in ms since 1970."""
        return int(self.now().timestamp() * 1000)


class StoryMoved(NotYet):
    """Others write to the story faster than this analysis can; it is tried again."""


@dataclass(slots=True)
class AskedAnalysis:
    """A request for an analysis: *refresh* asks every agent again, *caller* is who asks.

    `run` is the one in which agents are asked again for it, None until that is tried.
    """

    refresh: bool = False
    caller: Caller | None = None
    run: int | None = None

    def is_heeded(self, record: AnalysisRecord) -> bool:
        """Return whether *record* has asked again for this: a turn may be written and its reply lost."""
        self.run = self.run or record.run + 1
        return record.run >= self.run


@dataclass(frozen=True, slots=True)
class _Subject:
    """The subject of an analysis, as the story says it now."""

    settings: StorySettings
    response: StoryResponse
    roster: tuple[SectionAgent, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class FoldedTurn:
    """A turn that was taken: *record* of the analysis of *text*, and *before*, the one that it found, if any."""

    record: AnalysisRecord
    before: AnalysisRecord | None
    text: str

    @property
    def new_tasks(self) -> frozenset[str]:
        """The tasks that are to be sent now."""
        known = self.before.asked() if self.before is not None else {}
        return frozenset(self.record.asked().keys() - known.keys())

    @property
    def is_served(self) -> bool:
        """Whether no agent was asked again."""
        return self.record.is_same(self.before) and (
            self.before is not None and self.record.run == self.before.run
        )


class AnalysisFold:
    """Folds requests and reports into the analysis of a response. It remembers its own turns, and has one user."""

    def __init__(self, parts: AnalysisParts, story_id: str, number: int) -> None:
        self.key = story_id, number
        #: Whether a request was listed by this, so that another process goes on with it.
        self.is_listed = False
        self._parts = parts
        self._turn = parts.turns.setdefault(story_id, asyncio.Lock())
        self._subject: _Subject | None = None
        self._record: AnalysisRecord | None = None
        self._revision = 0
        self._standing: tuple[int, StandingStory] | None = None

    async def take(
        self,
        reports: Sequence[SectionReport] = (),
        asked: AskedAnalysis | None = None,
    ) -> FoldedTurn:
        """Fold *reports* and the request *asked*, note the agents that may be asked now, and return the new state.

        An analysis of another text takes the place of the one before: `abandon` its tasks. One that is through is not
        listed as under way any more, unless something is asked.

        Raises:
            UnknownStory: the story is gone.
            InvalidInput: the response or its analysis is gone, no agent is known, or settings contradict each other.
            StoryMoved: others were always faster.
            MemoryUnavailable: the store did not answer; the same turn may be taken again.
        """
        async with self._turn:
            if asked is not None:
                self._subject = None
            for _ in range(_MOST_RACES):
                turn = await self._try(reports, asked)
                if turn is not None:
                    break
                # Others have written to the story, or given the response another text.
                self._subject = None
            else:
                words = f"story {self.key[0]!r} is written to by too many at once; it is tried again"
                raise StoryMoved(words, _CROWDED_S)
            self._record = turn.record
            self._count(turn)
            if turn.record.is_final and asked is None:
                await self._parts.analyses.end(self._parts.supervisor_id, *self.key)
        return turn

    async def foresee(self) -> None:
        """Read the story while agents are at work, so that their reports do not wait for it."""
        if self._standing is None:
            with contextlib.suppress(MemoryUnavailable):
                await self._stand(self._revision)

    async def _find_subject(self) -> _Subject:
        """Return the subject of the analysis, as of now unless it is known.

        Raises:
            InvalidInput: there is no such response.
        """
        if self._subject is not None:
            return self._subject
        stories = self._parts.stories
        story_id, number = self.key
        settings, base_digest, response = await asyncio.gather(
            stories.settings(story_id),
            stories.base_digest(story_id),
            stories.response(story_id, number),
        )
        if response is None:
            raise InvalidInput(
                f"response {number} of story {story_id!r} is not there; send its text"
            )
        self._subject = _Subject(
            settings, response, roster_for(settings), digest_of(base_digest, response)
        )
        return self._subject

    async def _try(
        self,
        reports: Sequence[SectionReport],
        asked: AskedAnalysis | None,
    ) -> FoldedTurn | None:
        """Return the analysis once all is in and written, None when others wrote meanwhile."""
        parts = self._parts
        now_ms = parts.now_ms()
        subject, (revision, document, body) = await asyncio.gather(
            self._find_subject(), parts.analyses.record(*self.key)
        )
        if (
            body is None
            and self._record is not None
            and not self._record.is_final
            and asked is None
        ):
            story_id, number = self.key
            raise InvalidInput(
                f"the analysis of response {number} of story {story_id!r} was removed; ask again"
            )
        before = read_record(body)
        if before is not None and before.digest != subject.digest and asked is None:
            # The response may have another text by now.
            self._subject = None
            subject = await self._find_subject()
        self._revision = revision
        draft = self._draft(
            before,
            document=document,
            subject=subject,
            revision=revision,
            now_ms=now_ms,
            asked=asked,
        )
        draft.mark_late(now_ms)
        changes_story = any(one.section in CHANGING for one in reports)
        draft.fold(
            reports,
            await self._stand(revision)
            if changes_story
            else StandingStory(settings=subject.settings),
        )
        draft.skip()
        draft.mend(now_ms)
        draft.ask(now_ms, lambda phase: why_unknown(parts.catalogue(), phase))
        if asked is not None and not draft.record.is_final:
            # Listed before it is stored: whoever dies, it is begun.
            await parts.analyses.begin(parts.supervisor_id, *self.key, parts.lease_ms)
            self.is_listed = True
        if not await self._write(revision, body, draft, subject.response):
            return None
        return FoldedTurn(draft.record, before, subject.response.text)

    def _draft(
        self,
        before: AnalysisRecord | None,
        *,
        document: bytes | None,
        subject: _Subject,
        revision: int,
        now_ms: int,
        asked: AskedAnalysis | None,
    ) -> AnalysisDraft:
        """Return the analysis as stored so far, agents asked again that *asked* means, or one that begins now."""
        trace = str(tracing.current() or "")
        caller = asked.caller if asked is not None else None
        if before is None or before.digest != subject.digest:
            if asked is not None:
                demand_agents(self._parts.catalogue(), subject.roster, self.key[0])
            what = subject.settings, subject.response, subject.roster, subject.digest
            payer = payer_of(caller, before.caller if before is not None else None)
            record = AnalysisRecord.open(
                *what, now_ms, rests_on=revision, trace=trace, caller=payer
            )
            return AnalysisDraft(record, {})
        draft = AnalysisDraft(before, sections_of(document))
        if asked is not None and not asked.is_heeded(before):
            draft.repeat(
                now_ms,
                everybody=asked.refresh,
                revision=revision,
                trace=trace,
                caller=caller,
            )
        return draft

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
        if self._standing is not None and self._standing[0] == revision:
            story = self._standing[1]
            own = {
                name: change
                for name, change in {**story.own, **draft.changes}.items()
                if change is not None
            }
            self._standing = self._revision, replace(story, own=own)
        return True

    async def _stand(self, revision: int) -> StandingStory:
        """Return the story before the response as it is at *revision*."""
        if self._standing is None or self._standing[0] != revision:
            self._standing = revision, await self._parts.stories.standing(*self.key)
        return self._standing[1]

    def _count(self, turn: FoldedTurn) -> None:
        """Count the sections that ended in this turn, and the analysis when nothing more comes."""
        record = turn.record
        meter = self._parts.meter
        known = turn.before.ended() if turn.before is not None else {}
        news = [
            seat for task_id, seat in record.ended().items() if task_id not in known
        ]
        for seat in news:
            meter.count_section(
                seat.agent_id, "late" if seat.state == "missed" else seat.state
            )
        if news and record.is_final:
            meter.count_analysis("fresh" if record.is_fresh else "partial")


async def abandon(parts: AnalysisParts, turn: FoldedTurn) -> None:
    """Cancel the tasks of the analysis that *turn* found, where it began another one."""
    before = turn.before
    if before is None or turn.record.is_same(before):
        return

    async def cancel(task_id: str) -> None:
        try:
            await parts.canceller.cancel(task_id, "what it was to analyse has changed")
        except (NotAccepted, MemoryUnavailable) as error:
            # It ends at its deadline, and its report is not heeded.
            log.info("abandoned_task_not_cancelled", task_id=task_id, error=str(error))

    await asyncio.gather(*map(cancel, before.asked()))
