"""What has arrived, put into the analysis: seats, sections and what the response changes in its story. Pure.

Folding is idempotent: what is of another task than the seat's, or of a seat that has ended, changes nothing.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from contracts.analysis.document import SKIPPED, VERSION
from contracts.analysis.roster import ROSTER
from contracts.analysis.stories import StoryChange
from contracts.messages import CompletionReport
from memory.stories.settlement import settled
from memory.stories.view import CHANGING, StandingStory
from supervisor.analyses.findings import Nonsense, read_section, said, why_not
from supervisor.analyses.records import FINAL, OVER, TO_REPEAT, AnalysisRecord, SeatRecord, SeatState
from supervisor.analyses.sums import Body, counted, exactly, meta_of, stats_of

#: Where each section of ours stands, whoever waits for it.
_HOME = {seat.section: seat.group for seat in ROSTER}
_GROUPS = ("background", "immediate")
#: Reports that say no more than that the time was over.
_TIMES_UP = ("expired", "cancelled")


@dataclass(frozen=True, slots=True)
class Arrival:
    """What is known of the task *task_id* of a seat since *at_ms*: its report, or that there is none.

    Without a *report* it is late, and `missed` when it is not awaited any more. *error* says why it came to nothing
    here, without a report.
    """

    section: str
    task_id: str
    at_ms: int
    report: CompletionReport | None = None
    is_awaited: bool = False
    error: str | None = None


@dataclass(slots=True)
class Draft:
    """An analysis as it is about to be written: `changes` None means that the section changes nothing any more."""

    record: AnalysisRecord
    sections: dict[str, Body]
    changes: dict[str, StoryChange | None] = field(default_factory=dict)

    def fold(self, arrivals: Iterable[Arrival], story: StandingStory) -> None:
        """Put what has arrived into its seats and sections."""
        for arrival in arrivals:
            seat = self.record.by_section.get(arrival.section)
            if seat is None or seat.state in FINAL or arrival.task_id != self.record.task_id(seat):
                continue
            if arrival.report is not None:
                self._take_report(seat, arrival.report, arrival.at_ms, story)
            elif arrival.error is not None:
                self._settle(seat, "failed", {"status": "failed", "error": arrival.error})
            else:
                self._settle(seat, "late" if arrival.is_awaited else "missed", {"status": "late"})

    def skip(self) -> None:
        """Say of seats that nobody is to ask that they were skipped."""
        for seat in self.record.seats:
            if seat.state == "skipped" and seat.section not in self.sections:
                is_switch: Body = {"enabled": False} if seat.section == "contradiction" else {}
                self._settle(seat, "skipped", {"dur": 0, **is_switch, "status": SKIPPED})

    def repeat(self, now_ms: int, *, everybody: bool, revision: int | None = None, trace: str = "") -> None:
        """Have those asked again that came to nothing, or *everybody* who is not being asked, as of *revision*.

        From then on it belongs to *trace*, "" for whatever it belonged to.
        """
        run = self.record.run + 1
        states = TO_REPEAT | {"ok"} if everybody else TO_REPEAT
        again = [seat for seat in self.record.seats if seat.state in states]
        for seat in again:
            self._settle(seat.model_copy(update={"run": run, "asked_ms": None, "reported_ms": None}), "waiting", None)
        if again:
            rests_on = revision if everybody else self.record.rests_on
            told = {"run": run, "began_ms": now_ms, "rests_on": rests_on, "trace": trace or self.record.trace}
            self.record = self.record.model_copy(update=told)

    def mend(self, now_ms: int) -> None:
        """Have those asked again whose section is not there any more although they ended."""
        lost = [seat for seat in self.record.seats if seat.state in OVER and seat.section not in self.sections]
        for seat in lost:
            self._put(seat.model_copy(update={"state": "failed"}))
        if lost:
            self.repeat(now_ms, everybody=False)

    def ask(self, now_ms: int, why_unknown: Callable[[SeatRecord], str | None]) -> None:
        """Note as asked who waits for nobody any more; whose agent nobody knows has failed, with the reason."""
        while free := self._free(now_ms):
            for seat in free:
                asked = seat.model_copy(update={"state": "asked", "asked_ms": now_ms, "reported_ms": None})
                if (error := why_unknown(seat)) is not None:
                    self._settle(asked, "failed", {"status": "failed", "error": said("UnknownAgent", error)})
                else:
                    self._put(asked)

    def body(self, updated: str) -> Body:
        """Return the document."""
        groups: dict[str, Body] = {group: {} for group in _GROUPS}
        for seat in self.record.seats:
            if (section := self.sections.get(seat.section)) is not None:
                groups[_HOME.get(seat.section, seat.group)][seat.section] = section
        return {
            "version": VERSION,
            "meta": meta_of(self.record, updated),
            **groups,
            "stats": stats_of(self.record, self.sections),
        }

    def _free(self, now_ms: int) -> list[SeatRecord]:
        over = {seat.section for seat in self.record.seats if seat.state in OVER}
        is_impatient = now_ms >= self.record.patience_ends_ms
        return [
            seat
            for seat in self.record.seats
            if seat.state == "waiting" and (is_impatient or over.issuperset(seat.after))
        ]

    def _take_report(self, seat: SeatRecord, report: CompletionReport, at_ms: int, story: StandingStory) -> None:
        usage = report.usage
        seat = seat.model_copy(
            update={
                "reported_ms": at_ms,
                "input_tokens": seat.input_tokens + counted(usage.input_tokens),
                "output_tokens": seat.output_tokens + counted(usage.output_tokens),
                "cost_usd": seat.cost_usd + exactly(usage.cost_usd or 0.0),
            }
        )
        took: Body = {"dur": counted(report.run_ms)}
        if report.status == "completed":
            try:
                body, change = self._read(seat.section, report.result, story)
            except Nonsense as nonsense:
                self._settle(seat, "failed", {**took, "status": "failed", "error": said("Nonsense", str(nonsense))})
            else:
                self._settle(seat, "ok", {**took, **body}, change)
        elif report.status == "expired" or (report.status in _TIMES_UP and seat.state == "late"):
            self._settle(seat, "missed", {"status": "late"})
        else:
            self._settle(seat, "failed", {**took, "status": "failed", "error": why_not(report)})

    def _read(self, section: str, result: object, story: StandingStory) -> tuple[Body, StoryChange | None]:
        found = read_section(section, result)
        if section not in CHANGING:
            return found.model_dump(mode="json"), None
        record = self.record
        story = replace(story, own={**story.own, **{name: one for name, one in self.changes.items() if one}})
        try:
            found, change = settled(section, record.number, record.chapter, found, story)
        except (ValueError, ArithmeticError) as error:
            raise Nonsense(f"section {section!r} does not fit the story: {error}") from error
        return found.model_dump(mode="json"), change

    def _settle(
        self, seat: SeatRecord, state: SeatState, section: Body | None, change: StoryChange | None = None
    ) -> None:
        self._put(seat.model_copy(update={"state": state}))
        if section is None:
            self.sections.pop(seat.section, None)
            return
        self.sections[seat.section] = section
        if seat.section in CHANGING:
            self.changes[seat.section] = change

    def _put(self, seat: SeatRecord) -> None:
        self.record = self.record.with_seats([seat])


def sections_of(document: bytes | None) -> dict[str, Body]:
    """Return the sections of a stored document by their keys; none of what cannot be read."""
    try:
        body: JsonValue = json.loads(document or b"null")
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return {}
    groups = (body.get(group) for group in _GROUPS)
    return {
        name: section
        for group in groups
        if isinstance(group, dict)
        for name, section in group.items()
        if isinstance(section, dict)
    }
