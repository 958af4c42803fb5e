"""How far an analysis is: who was asked, since when, and what became of it; whoever goes on reads it from here."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contracts.analysis.roster import Seat
from contracts.analysis.stories import AnalysisGroup, StoryResponse, StorySettings
from contracts.messages import TaskAssignment, TaskCall

#: `late`: its deadline is over and it is still awaited; `missed`: it is not any more.
SeatState = Literal["waiting", "asked", "late", "missed", "ok", "failed", "skipped"]

#: States in which whoever waits for a section waits no longer, and those that only another wish changes.
OVER: frozenset[SeatState] = frozenset({"late", "missed", "ok", "failed", "skipped"})
FINAL: frozenset[SeatState] = OVER - {"late"}
#: States in which a seat is asked again when its analysis is wished again.
TO_REPEAT: frozenset[SeatState] = frozenset({"missed", "failed"})
#: Runs of a task before its section is marked failed: a passing mistake is mended in time, and others are soon told.
MOST_ATTEMPTS = 3


class _Record(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class SeatRecord(_Record):
    """One section: who finds it, and how far that is.

    `run` is which run of the analysis asked for it last. `asked_ms` and `reported_ms` are of that run, in ms since
    1970; what was spent is of all runs.
    """

    section: str
    group: AnalysisGroup
    agent_id: str
    task: str
    after: tuple[str, ...] = ()
    deadline_s: float
    state: SeatState = "waiting"
    run: int = 1
    asked_ms: int | None = None
    reported_ms: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)

    @classmethod
    def of(cls, seat: Seat) -> Self:
        """Return *seat* before anybody was asked."""
        return cls(
            section=seat.section,
            group=seat.group,
            agent_id=seat.agent_id,
            task=seat.task,
            after=seat.after,
            deadline_s=seat.deadline_s,
            state="waiting" if seat.enabled else "skipped",
        )


class AnalysisRecord(_Record):
    """One analysis; `digest` is of all it depends on, `opened_ms` tells it from any other of the same response.

    `run` counts the times that agents were asked, the last time from `began_ms` on. `rests_on` is the story's revision
    when all of them were asked last, None: not known. `trace` is what it belongs to, as a `TraceContext` is spelled.
    """

    story_id: str
    number: int
    chapter: int
    digest: str
    opened_ms: int
    run: int = 1
    began_ms: int
    patience_s: float
    late_s: float
    usd_per_million: float
    rests_on: int | None = None
    trace: str = ""
    seats: tuple[SeatRecord, ...] = Field(min_length=1)

    @classmethod
    def opened(
        cls,
        settings: StorySettings,
        response: StoryResponse,
        roster: Iterable[Seat],
        digest: str,
        now_ms: int,
        *,
        rests_on: int | None = None,
        trace: str = "",
    ) -> Self:
        """Return the record of an analysis that begins now; nobody was asked yet."""
        return cls(
            story_id=settings.story_id,
            number=response.number,
            chapter=response.chapter,
            digest=digest,
            opened_ms=now_ms,
            began_ms=now_ms,
            patience_s=settings.patience_s,
            late_s=settings.late_s,
            usd_per_million=settings.reader_usd_per_million,
            rests_on=rests_on,
            trace=trace,
            seats=tuple(map(SeatRecord.of, roster)),
        )

    @property
    def by_section(self) -> Mapping[str, SeatRecord]:
        """The seats by their sections."""
        return {seat.section: seat for seat in self.seats}

    @property
    def patience_ends_ms(self) -> int:
        """When whoever waits for others' findings does without them."""
        return self.began_ms + int(self.patience_s * 1000)

    def is_over(self, group: AnalysisGroup | None = None) -> bool:
        """Return whether nobody of *group* (None: of all) is waited for any more; the late may still come."""
        return all(seat.state in OVER for seat in self.seats if group in (None, seat.group))

    @property
    def is_final(self) -> bool:
        """Whether nothing more will come."""
        return all(seat.state in FINAL for seat in self.seats)

    @property
    def is_fresh(self) -> bool:
        """Whether everybody who was to be asked came through."""
        return all(seat.state in ("ok", "skipped") for seat in self.seats)

    def is_same(self, other: Self | None) -> bool:
        """Return whether *other* is a state of this analysis."""
        return other is not None and (other.digest, other.opened_ms) == (self.digest, self.opened_ms)

    def with_seats(self, changed: Iterable[SeatRecord]) -> Self:
        """Return this with *changed* in the places of the seats of their sections."""
        by_section = {seat.section: seat for seat in changed}
        return self.model_copy(update={"seats": tuple(by_section.get(seat.section, seat) for seat in self.seats)})

    def task_id(self, seat: SeatRecord) -> str:
        """Return the id of the task that *seat* was asked by: the same for every supervisor."""
        words = [self.story_id, self.number, self.digest, self.opened_ms, seat.section, seat.run]
        return f"a-{hashlib.blake2b(json.dumps(words).encode(), digest_size=16).hexdigest()}"

    def asked(self) -> dict[str, SeatRecord]:
        """Return the seats that are awaited, by task."""
        return {self.task_id(seat): seat for seat in self.seats if seat.state in ("asked", "late")}

    def ended(self) -> dict[str, SeatRecord]:
        """Return the seats that nothing more comes of, by task."""
        return {self.task_id(seat): seat for seat in self.seats if seat.state in FINAL}

    def lateness_s(self, seat: SeatRecord) -> float:
        """Return for how many seconds past its deadline *seat* is awaited; the next response waits for no late one."""
        return self.late_s if seat.group == "background" else 0.0

    def deadline_of(self, seat: SeatRecord) -> datetime:
        """Return when *seat*, which was asked, is marked late."""
        return _time(seat.asked_ms or self.began_ms) + timedelta(seconds=seat.deadline_s)

    def assignment(self, seat: SeatRecord, supervisor_id: str) -> TaskAssignment:
        """Return what the agent of *seat*, which was asked, is told."""
        return TaskAssignment(
            task_id=self.task_id(seat),
            agent_id=seat.agent_id,
            supervisor_id=supervisor_id,
            task=TaskCall(name=seat.task),
            created_at=_time(seat.asked_ms or self.began_ms),
            deadline=self.deadline_of(seat) + timedelta(seconds=self.lateness_s(seat)),
            max_attempts=MOST_ATTEMPTS,
            memory="bypass",
            # What agents share is of one analysis; one that is begun anew shares nothing with it.
            request_id=f"{self.digest}-{self.opened_ms}-{self.run}",
            story_id=self.story_id,
            response_number=self.number,
        )

    def as_json(self) -> bytes:
        """Return this as it is stored."""
        return self.model_dump_json().encode()


def read_record(body: bytes | None) -> AnalysisRecord | None:
    """Return the record that *body* spells, None when there is none that can be read."""
    if body is None:
        return None
    try:
        return AnalysisRecord.model_validate_json(body)
    except ValidationError:
        return None


def digest_of(base_digest: str, response: StoryResponse) -> str:
    """Return what tells an analysis of this text, in this story and as it says who takes part, from any other.

    Who takes part by default is left out: supervisors of two versions would undo each other's work.
    """
    words = [base_digest, response.chapter, response.text]
    return hashlib.blake2b(json.dumps(words).encode(), digest_size=16).hexdigest()


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
