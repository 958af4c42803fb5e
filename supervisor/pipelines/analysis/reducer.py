"""Reports folded into an analysis: records, sections, and the changes of the story. Pure.

Folding is idempotent: a report of another task than the section's, or on a section that has ended, changes nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tasklore.contracts.analysis.document import SKIPPED, VERSION
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS
from tasklore.contracts.analysis.stories import StoryChange
from tasklore.contracts.callers import Caller, payer_of
from tasklore.contracts.messages import CompletionReport
from tasklore.contracts.pipelines import Phase
from tasklore.memory.stories.settlement import settle_section
from tasklore.memory.stories.view import CHANGING, StandingStory
from tasklore.supervisor.pipelines.analysis.document import (
    GROUPS,
    Body,
    Nonsense,
    clamp_count,
    exact_usd,
    meta_of,
    read_section,
    stats_of,
)
from tasklore.supervisor.pipelines.analysis.records import (
    FINAL,
    OVER,
    TO_REPEAT,
    AnalysisRecord,
    SectionRecord,
    SectionState,
)

#: The group in which the document has each section of ours, whatever group waits for it.
_HOME = {seat.section: seat.group for seat in SECTION_AGENTS}
#: Characters of what is said of a failure.
_MOST_TEXT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionReport:
    """The end of the task *task_id* of a section, known since *at_ms*.

    It is the *report*, None when none came in time, or the *error* because of which there is none.
    """

    section: str
    task_id: str
    at_ms: int
    report: CompletionReport | None = None
    error: str | None = None


@dataclass(slots=True)
class AnalysisDraft:
    """An analysis as it is about to be written: `changes` None means that the section changes nothing any more."""

    record: AnalysisRecord
    sections: dict[str, Body]
    changes: dict[str, StoryChange | None] = field(default_factory=dict)

    def mark_late(self, now_ms: int) -> None:
        """Mark the sections as late whose deadline is over; they are still awaited."""
        for seat in self.record.seats:
            if seat.state == "asked" and now_ms >= self.record.late_at_ms(seat):
                self._put(seat, "late", {"status": "late"})

    def fold(self, reports: Iterable[SectionReport], story: StandingStory) -> None:
        """Put *reports* into their sections."""
        for one in reports:
            seat = self.record.by_section.get(one.section)
            if (
                seat is None
                or seat.state in FINAL
                or one.task_id != self.record.task_id(seat)
            ):
                continue
            if one.report is not None:
                self._fold_report(seat, one.report, one.at_ms, story)
            elif one.error is not None:
                self._put(
                    seat, "failed", {"status": "failed", "error": _cut(one.error)}
                )
            else:
                self._put(seat, "missed", {"status": "late"})

    def skip(self) -> None:
        """Write that sections were skipped whose agents are switched off."""
        for seat in self.record.seats:
            if seat.state == "skipped" and seat.section not in self.sections:
                is_switch: Body = (
                    {"enabled": False} if seat.section == "contradiction" else {}
                )
                self._put(seat, "skipped", {"dur": 0, **is_switch, "status": SKIPPED})

    def repeat(
        self,
        now_ms: int,
        *,
        everybody: bool,
        revision: int | None = None,
        trace: str = "",
        caller: Caller | None = None,
    ) -> None:
        """Let agents be asked again that failed or were too late, or *everybody* not being asked, as of *revision*.

        From then on the analysis belongs to *trace*, "" for what it belonged to, and its tasks are those of *caller*.
        """
        run = self.record.run + 1
        states = TO_REPEAT | {"ok"} if everybody else TO_REPEAT
        again = [seat for seat in self.record.seats if seat.state in states]
        for seat in again:
            self._put(
                seat.model_copy(
                    update={"run": run, "asked_ms": None, "reported_ms": None}
                ),
                "waiting",
                None,
            )
        if again:
            rests_on = revision if everybody else self.record.rests_on
            changed = {
                "run": run,
                "began_ms": now_ms,
                "rests_on": rests_on,
                "trace": trace or self.record.trace,
                "caller": payer_of(caller, self.record.caller),
            }
            self.record = self.record.model_copy(update=changed)

    def mend(self, now_ms: int) -> None:
        """Let agents be asked again whose section has ended and is not there any more."""
        lost = [
            seat
            for seat in self.record.seats
            if seat.state in OVER and seat.section not in self.sections
        ]
        for seat in lost:
            self.record = self.record.with_section(
                seat.model_copy(update={"state": "failed"})
            )
        if lost:
            self.repeat(now_ms, everybody=False)

    def ask(self, now_ms: int, why_unknown: Callable[[Phase], str | None]) -> None:
        """Note ready sections as asked; a section whose agent is not known has failed, with the reason."""
        while ready := self.record.ready(now_ms):
            for section in ready:
                seat = self.record.by_section[section]
                asked = seat.model_copy(
                    update={"state": "asked", "asked_ms": now_ms, "reported_ms": None}
                )
                if (error := why_unknown(self.record.phase(seat))) is not None:
                    self._put(
                        asked,
                        "failed",
                        {"status": "failed", "error": _cut(f"UnknownAgent: {error}")},
                    )
                else:
                    self.record = self.record.with_section(asked)

    def body(self, updated: str) -> Body:
        """Return the document."""
        groups: dict[str, Body] = {group: {} for group in GROUPS}
        for seat in self.record.seats:
            if (section := self.sections.get(seat.section)) is not None:
                groups[_HOME.get(seat.section, seat.group)][seat.section] = section
        meta = meta_of(self.record, updated)
        stats = stats_of(self.record, self.sections)
        return {"version": VERSION, "meta": meta, **groups, "stats": stats}

    def _fold_report(
        self,
        seat: SectionRecord,
        report: CompletionReport,
        at_ms: int,
        story: StandingStory,
    ) -> None:
        usage = report.usage
        seat = seat.model_copy(
            update={
                "reported_ms": at_ms,
                "input_tokens": seat.input_tokens + clamp_count(usage.input_tokens),
                "output_tokens": seat.output_tokens + clamp_count(usage.output_tokens),
                "cost_usd": seat.cost_usd + exact_usd(usage.cost_usd or 0.0),
            }
        )
        took: Body = {"dur": clamp_count(report.run_ms)}
        if report.status == "completed":
            try:
                body, change = self._read(seat.section, report.result, story)
            except Nonsense as nonsense:
                self._put(
                    seat,
                    "failed",
                    {
                        **took,
                        "status": "failed",
                        "error": _cut(f"Nonsense: {nonsense}"),
                    },
                )
            else:
                self._put(seat, "ok", {**took, **body}, change)
        elif report.status == "expired" or (
            report.status == "cancelled" and seat.state == "late"
        ):
            # Neither says more than that the time was over.
            self._put(seat, "missed", {"status": "late"})
        else:
            error = report.error
            text = (
                f"{error.type}: {error.message}"
                if error is not None
                else f"{report.status}: no reason was given"
            )
            self._put(seat, "failed", {**took, "status": "failed", "error": _cut(text)})

    def _read(
        self, section: str, result: object, story: StandingStory
    ) -> tuple[Body, StoryChange | None]:
        found = read_section(section, result)
        if section not in CHANGING:
            return found.model_dump(mode="json"), None
        record = self.record
        story = replace(
            story,
            own={
                **story.own,
                **{name: one for name, one in self.changes.items() if one},
            },
        )
        try:
            found, change = settle_section(
                section,
                number=record.number,
                chapter=record.chapter,
                found=found,
                story=story,
            )
        except (ValueError, ArithmeticError) as error:
            raise Nonsense(
                f"section {section!r} does not fit the story: {error}"
            ) from error
        return found.model_dump(mode="json"), change

    def _put(
        self,
        seat: SectionRecord,
        state: SectionState,
        section: Body | None,
        change: StoryChange | None = None,
    ) -> None:
        """Put *seat* into *state* and its *section* into the document, None for no section."""
        self.record = self.record.with_section(seat.model_copy(update={"state": state}))
        if section is None:
            self.sections.pop(seat.section, None)
            return
        self.sections[seat.section] = section
        if seat.section in CHANGING:
            self.changes[seat.section] = change


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 3]}..."
