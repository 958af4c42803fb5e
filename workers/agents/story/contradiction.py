"""Find what in a response speaks against what was told before: in files, in what is known, in what is remembered."""

from collections.abc import Iterator

from contracts.analysis.background import Conflict, Contradictions
from workers import Agent, Context
from workers.agents.story.blocks import plain_line
from workers.agents.story.parts import Fault, Finding, Part, Text, enroll, one_of, stands_in
from workers.agents.story.prose import one_line
from workers.agents.story.seen import Seen, Turn
from workers.agents.story.sharing import analyse as analyse_part
from workers.agents.story.shown import Told, told_before
from workers.answers import Answer

#: Contradictions of one response, and characters of one statement in them.
MOST_FOUND, LONGEST = 8, 300
SEVERITIES = ("critical", "major", "minor")

agent = Agent("StoryContradictionAgent", description="Finds what a response of a story says against what was told.")


class FoundConflict(Finding):
    """A contradiction: the words that were told before, and those of the response that speak against them."""

    old_quotation: Text = ""
    why: Text = ""
    severity: Text = one_of(*SEVERITIES)


class FoundConflicts(Answer):
    """Everything that a model finds to be contradictory."""

    reasoning: Text
    contradictions: tuple[FoundConflict, ...] = ()


class ContradictionPart(Part[FoundConflicts, Contradictions]):
    """What cannot both hold."""

    section = "contradiction"
    answer = FoundConflicts
    needs = ("knowledge", "memories_before")
    blocks = ("names", "told_before", "response")
    limits = {"most": MOST_FOUND}  # noqa: RUF012 - a class constant

    def is_askable(self, seen: Seen) -> bool:
        """Return whether anything was told before."""
        return bool(told_before(seen))

    def faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        """Yield an older statement that was not told."""
        if isinstance(finding, FoundConflict) and _old(finding, seen) is None:
            yield Fault("old_quotation", "does not stand in one line of told_before; copy its words")

    def reduce(self, seen: Seen, answer: FoundConflicts | None) -> Contradictions:
        """Return each statement once, the gravest first."""
        found: dict[tuple[str, str], Conflict] = {}
        for one in answer.contradictions if answer is not None else ():
            old = _old(one, seen)
            if old is not None:
                found.setdefault((old.source, old.text), _conflict(one, old, seen))
        ordered = sorted(found.values(), key=lambda one: SEVERITIES.index(str(one.severity)))
        return Contradictions(enabled=True, found=tuple(ordered[:MOST_FOUND]))


PART = enroll(ContradictionPart())


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> Contradictions:
    """Return what cannot hold together, the gravest first; what may have changed since is none."""
    return await analyse_part(PART, context)


def _old(found: FoundConflict, seen: Seen) -> Told | None:
    """Return the statement in which the older quotation stands."""
    return next((one for one in told_before(seen) if stands_in(found.old_quotation, plain_line(one.line))), None)


def _conflict(found: FoundConflict, old: Told, seen: Seen) -> Conflict:
    return Conflict(
        subject=old.subject,
        old=one_line(old.text, LONGEST),
        old_source=old.source,
        new=one_line(found.quotation, LONGEST),
        new_source=seen.response.source,
        severity=found.severity,
    )
