"""An analysis as a pipeline, an optional phase a section, and its record: the agents asked, since when, the ends."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasklore.contracts.analysis.section_agents import (
    SECTION_AGENTS,
    SectionAgent,
    roster_of,
)
from tasklore.contracts.analysis.stories import (
    AnalysisGroup,
    StoryResponse,
    StorySettings,
)
from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import TaskAssignment, TaskCall
from tasklore.contracts.pipelines import MOST_PHASES, Phase, Pipeline
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.pipelines.declaration.declarations import problems_in
from tasklore.supervisor.pipelines.declaration.graph import Graph
from tasklore.supervisor.pipelines.planning import next_steps

#: `late`: its deadline is over and it is still awaited; `missed`: it is not any more.
SectionState = Literal["waiting", "asked", "late", "missed", "ok", "failed", "skipped"]

#: States in which nothing waits for a section any longer, and those that only another request changes.
OVER: frozenset[SectionState] = frozenset({"late", "missed", "ok", "failed", "skipped"})
FINAL: frozenset[SectionState] = OVER - {"late"}
#: States in which an agent is asked again when its analysis is requested again.
TO_REPEAT: frozenset[SectionState] = frozenset({"missed", "failed"})
#: The states as planning knows them.
_STATUS: Mapping[SectionState, str] = {
    "waiting": "pending", "asked": "running", "late": "late", "missed": "excused", "ok": "done", "failed": "excused",
    "skipped": "skipped",
}  # fmt: skip
#: Runs of a task beyond the first before its section fails: a passing mistake is mended in time.
RETRIES = 2
#: The settings of a story that fields of a phase are made of.
_SETTINGS = {"late_after": "deadline_s", "timeout": "deadline_s"}
_START = "start `tasklore worker tasklore.workers.agents.story`"


class _Record(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="ignore")


class SectionRecord(_Record):
    """One section: which agent finds it, and how far that is.

    `run` is which run of the analysis asked for it last. `asked_ms` and `reported_ms` are of that run, in ms since
    1970; tokens and cost are of all runs.
    """

    section: str
    group: AnalysisGroup
    agent_id: str
    task: str
    after: tuple[str, ...] = ()
    deadline_s: float
    state: SectionState = "waiting"
    run: int = 1
    asked_ms: int | None = None
    reported_ms: int | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)

    @classmethod
    def of(cls, seat: SectionAgent) -> Self:
        """Return the record of *seat* before its agent was asked."""
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
    """One analysis; `digest` is of all it depends on, and with `opened_ms` names it among those of its response.

    `run` counts the times that agents were asked, the last time from `began_ms` on. `rests_on` is the story's revision
    when all of them were asked last, None: not known. `trace` is what it belongs to, as a `TraceContext` is spelled.
    `caller` is who asked last; None where that is not known, and in a record of 0.2.
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
    caller: Caller | None = None
    seats: tuple[SectionRecord, ...] = Field(min_length=1)

    @classmethod
    def open(
        cls,
        settings: StorySettings,
        response: StoryResponse,
        roster: Iterable[SectionAgent],
        digest: str,
        now_ms: int,
        *,
        rests_on: int | None = None,
        trace: str = "",
        caller: Caller | None = None,
    ) -> Self:
        """Return the record of an analysis that begins now; no agent was asked yet."""
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
            caller=caller,
            seats=tuple(map(SectionRecord.of, roster)),
        )

    @property
    def by_section(self) -> Mapping[str, SectionRecord]:
        """The records of sections by their keys."""
        return {seat.section: seat for seat in self.seats}

    @property
    def patience_ends_ms(self) -> int:
        """When agents that wait for others' findings do without them."""
        return self.began_ms + int(self.patience_s * 1000)

    @property
    def is_final(self) -> bool:
        """Whether nothing more will come."""
        return all(seat.state in FINAL for seat in self.seats)

    @property
    def is_fresh(self) -> bool:
        """Whether every agent that was to be asked came through."""
        return all(seat.state in ("ok", "skipped") for seat in self.seats)

    def is_over(self, group: AnalysisGroup | None = None) -> bool:
        """Return whether no section of *group* (None: of all) is waited for any more; the late may still come."""
        return all(
            seat.state in OVER for seat in self.seats if group in (None, seat.group)
        )

    def is_same(self, other: Self | None) -> bool:
        """Return whether *other* is a state of this analysis."""
        return other is not None and (other.digest, other.opened_ms) == (
            self.digest,
            self.opened_ms,
        )

    def ready(self, now_ms: int) -> tuple[str, ...]:
        """Return the sections whose agents may be asked; once patience is over, a section that runs counts as late."""
        statuses = {seat.section: _STATUS[seat.state] for seat in self.seats}
        if now_ms >= self.patience_ends_ms:
            statuses = {
                name: "late" if status == "running" else status
                for name, status in statuses.items()
            }
        return next_steps(self._declared[1], statuses).ready

    def next_look_ms(self) -> int | None:
        """Return when the next section is late, or patience ends, in ms since 1970; None when time changes nothing."""
        looks = [self.late_at_ms(seat) for seat in self.seats if seat.state == "asked"]
        if any(seat.state == "waiting" for seat in self.seats):
            looks.append(self.patience_ends_ms)
        return min(looks, default=None)

    def with_section(self, changed: SectionRecord) -> Self:
        """Return this with *changed* in the place of the record of its section."""
        seats = tuple(
            changed if seat.section == changed.section else seat for seat in self.seats
        )
        return self.model_copy(update={"seats": seats})

    def phase(self, seat: SectionRecord) -> Phase:
        """Return the phase that *seat* is, as it was declared."""
        return self._declared[0][seat.section]

    def task_id(self, seat: SectionRecord) -> str:
        """Return the id of the task that asks for *seat*: the same for every supervisor."""
        words = [
            self.story_id,
            self.number,
            self.digest,
            self.opened_ms,
            seat.section,
            seat.run,
        ]
        return f"a-{hashlib.blake2b(json.dumps(words).encode(), digest_size=16).hexdigest()}"

    def asked(self) -> dict[str, SectionRecord]:
        """Return the sections that are awaited, by task."""
        return {
            self.task_id(seat): seat
            for seat in self.seats
            if seat.state in ("asked", "late")
        }

    def ended(self) -> dict[str, SectionRecord]:
        """Return the sections that nothing more comes of, by task."""
        return {self.task_id(seat): seat for seat in self.seats if seat.state in FINAL}

    def late_at_ms(self, seat: SectionRecord) -> int:
        """Return when *seat*, which was asked for, is late, in ms since 1970."""
        return self._asked_ms(seat) + (
            self.phase(seat).late_after or timedelta(0)
        ) // timedelta(milliseconds=1)

    def assignment(self, seat: SectionRecord, supervisor_id: str) -> TaskAssignment:
        """Return the assignment that asks for *seat*."""
        phase = self.phase(seat)
        since = datetime.fromtimestamp(self._asked_ms(seat) / 1000, UTC)
        return TaskAssignment(
            task_id=self.task_id(seat),
            agent_id=phase.agent,
            supervisor_id=supervisor_id,
            task=TaskCall(name=phase.task),
            created_at=since,
            deadline=since + (phase.longest or timedelta(0)),
            max_attempts=phase.retries + 1,
            memory=phase.memory,
            caller=self.caller,
            # Answers that agents share are of one analysis; one that is begun anew shares none with it.
            request_id=f"{self.digest}-{self.opened_ms}-{self.run}",
            story_id=self.story_id,
            response_number=self.number,
        )

    def as_json(self) -> bytes:
        """Return this as it is stored."""
        return self.model_dump_json().encode()

    def _asked_ms(self, seat: SectionRecord) -> int:
        return seat.asked_ms or self.began_ms

    @cached_property
    def _declared(self) -> tuple[dict[str, Phase], Graph]:
        """The phases by section, and their graph; copies share both."""
        return declare(
            tuple(
                SectionAgent(
                    section=seat.section,
                    group=seat.group,
                    agent_id=seat.agent_id,
                    task=seat.task,
                    after=seat.after,
                    deadline_s=seat.deadline_s,
                )
                for seat in self.seats
            ),
            self.late_s,
        )


def read_record(body: bytes | None) -> AnalysisRecord | None:
    """Return the record that *body* spells, None when there is none that can be read."""
    if body is None:
        return None
    try:
        return AnalysisRecord.model_validate_json(body)
    except ValidationError:
        return None


def digest_of(base_digest: str, response: StoryResponse) -> str:
    """Return a digest of text, chapter and beginning of the story, with its settings.

    The default roster is left out: supervisors of two versions would undo each other's work.
    """
    words = [base_digest, response.chapter, response.text]
    return hashlib.blake2b(json.dumps(words).encode(), digest_size=16).hexdigest()


def roster_for(settings: StorySettings) -> tuple[SectionAgent, ...]:
    """Return the agents of analyses by *settings*.

    Raises:
        InvalidInput: these contradict each other, or lie beyond the limits of a pipeline.
    """
    roster = roster_of(settings.agents)
    declare(roster, settings.late_s)
    return roster


@lru_cache(maxsize=256)
def declare(
    roster: tuple[SectionAgent, ...], late_s: float
) -> tuple[dict[str, Phase], Graph]:
    """Return the phases of *roster* by section, and the graph of their pipeline.

    Sections of the background are awaited *late_s* past their deadline. The next response waits for immediate ones,
    which are therefore cancelled at theirs.

    Raises:
        InvalidInput: a setting of the story lies beyond the limits of a pipeline; the message names it and the cure.
    """
    if len(roster) > MOST_PHASES:
        raise InvalidInput(
            f"agents: {len(roster):,} sections, at most {MOST_PHASES} are taken; leave out some of them"
        )
    phases = {}
    for seat in roster:
        deadline = timedelta(seconds=seat.deadline_s)
        is_awaited = seat.group == "background" and late_s > 0
        try:
            phases[seat.section] = Phase(
                name=seat.section,
                agent=seat.agent_id,
                task=seat.task,
                after=seat.after,
                retries=RETRIES,
                memory="bypass",
                optional=True,
                late_after=deadline,
                cancel_after=timedelta(seconds=late_s) if is_awaited else None,
                timeout=None if is_awaited else deadline,
            )
        except ValidationError as error:
            field, _, why = problems_in(error)[0].text.partition(" ")
            setting = (
                "late_s"
                if field == "cancel_after"
                else f"agents.{seat.section}.{_SETTINGS.get(field, field)}"
            )
            raise InvalidInput(f"{setting} of the story {why}") from error
    return phases, Graph.of(Pipeline(name="analysis", phases=tuple(phases.values())))


def demand_agents(
    catalogue: Catalogue, roster: Sequence[SectionAgent], story_id: str
) -> None:
    """Check that at least one agent of *roster* is known, where one is to be asked.

    Raises:
        InvalidInput: none of them is known.
    """
    asked = [seat for seat in roster if seat.enabled]
    if asked and not any(catalogue.find(seat.agent_id, seat.task) for seat in asked):
        raise InvalidInput(
            f"none of the agents of story {story_id!r} is known; {_START}"
        )


def why_unknown(catalogue: Catalogue, phase: Phase) -> str | None:
    """Return why the task of *phase* cannot be sent, with the cure; None when it can."""
    if catalogue.find(phase.agent, phase.task) is not None:
        return None
    if phase.agent in catalogue.cards:
        return f"agent {phase.agent!r} has no task {phase.task!r}; correct agents.{phase.name}.task of the story"
    is_ours = any(phase.agent == one.agent_id for one in SECTION_AGENTS)
    cure = (
        _START
        if is_ours
        else "start `tasklore worker FILE` with the file that declares it"
    )
    return f"no agent {phase.agent!r} is known; {cure}"
