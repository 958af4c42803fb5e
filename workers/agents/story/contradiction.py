"""Find contradictions between a response and the files, knowledge and memories from before it."""

from collections.abc import Iterator

from tasklore import Agent
from tasklore.contracts.analysis.background import Conflict, Contradictions
from tasklore.workers.agents.story.blocks import (
    EarlierStatement,
    earlier_statements,
    plain_line,
)
from tasklore.workers.agents.story.checks import FindingFault, stands_in
from tasklore.workers.agents.story.parts import Finding, Part, Text, one_of
from tasklore.workers.agents.story.prose import one_line
from tasklore.workers.agents.story.question import serve
from tasklore.workers.agents.story.view import StoryView
from tasklore.workers.answers import AnswerSchema

#: Contradictions of one response, and characters of one statement in them.
MOST_FOUND = 8
LONGEST = 300
SEVERITIES = ("critical", "major", "minor")


class FoundConflict(Finding):
    """A contradiction: an earlier quotation, and the words of the response that speak against it."""

    old_quotation: Text = ""
    why: Text = ""
    severity: Text = one_of(*SEVERITIES)


class FoundConflicts(AnswerSchema):
    """All contradictions that a model finds."""

    reasoning: Text
    contradictions: tuple[FoundConflict, ...] = ()


class ContradictionPart(Part[FoundConflicts, Contradictions]):
    """Find statements that cannot both hold, the gravest first."""

    section = "contradiction"
    answer = FoundConflicts
    result = Contradictions
    needs = ("knowledge", "memories_before")
    blocks = ("names", "told_before", "response")
    limits = {"most": MOST_FOUND}  # noqa: RUF012 - a class constant

    def is_askable(self, view: StoryView) -> bool:
        """Return whether there are earlier statements."""
        return bool(earlier_statements(view))

    def faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        """Yield a fault when the earlier quotation stands nowhere."""
        if isinstance(finding, FoundConflict) and _old(finding, view) is None:
            yield FindingFault(
                "old_quotation",
                "does not stand in one line of told_before; copy its words",
            )

    def reduce(self, view: StoryView, answer: FoundConflicts | None) -> Contradictions:
        """Return each earlier statement once, the gravest first."""
        found: dict[tuple[str, str], Conflict] = {}
        for one in answer.contradictions if answer is not None else ():
            if (old := _old(one, view)) is None:
                continue
            conflict = Conflict(
                subject=old.subject,
                old=one_line(old.text, LONGEST),
                old_source=old.source,
                new=one_line(one.quotation, LONGEST),
                new_source=view.response.source,
                severity=one.severity,
            )
            found.setdefault((old.source, old.text), conflict)
        ordered = sorted(
            found.values(), key=lambda one: SEVERITIES.index(str(one.severity))
        )
        return Contradictions(enabled=True, found=tuple(ordered[:MOST_FOUND]))


agent = serve(
    ContradictionPart(),
    Agent(
        "StoryContradictionAgent",
        description="Finds what a response of a story says against what was told.",
    ),
)


def _old(found: FoundConflict, view: StoryView) -> EarlierStatement | None:
    """Return the statement in which the older quotation stands."""
    return next(
        (
            one
            for one in earlier_statements(view)
            if stands_in(found.old_quotation, plain_line(one.line))
        ),
        None,
    )
