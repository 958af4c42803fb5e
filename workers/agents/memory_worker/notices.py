"""Notices to the person about a change, one short line each: items that are noted, and items that hold no longer."""

from tasklore.contracts.messages import Fact
from tasklore.memory.episodes.words import words_of
from tasklore.workers.agents.memory_worker.editor import (
    Operation,
    PlannedEdits,
    PlannedStep,
)

#: Lines of one fact; of a sweep over a long list the rest is counted.
_MOST = 5
#: Characters of one line.
_LONGEST = 160
#: How a statement to the person begins where a model worded it in English.
_YOU = "You "


def lines_for(fact: Fact, change: PlannedEdits) -> tuple[str, ...]:
    """Return the lines for *change*, which was made for *fact*."""
    noted = fact.text.rstrip(".")
    if noted.startswith(_YOU):
        noted = noted[:1].lower() + noted[1:]
    forms: dict[Operation, str] = {
        "insert": "{noted}",
        "renew": "{noted}{kept_as}",
        "end": "no longer: {display}",
        "pause": "until {expiry} not: {display}",
        "delete": "forgotten: {display}",
        "contest": "this contradicts: {display}",
    }
    lines = [
        forms[step.operation].format(
            noted=noted,
            expiry=fact.expiry,
            display=step.display,
            kept_as=_kept_as(fact, step),
        )
        for step in change.steps
    ]
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return tuple(line[:_LONGEST] for line in (*lines[:_MOST], *more))


def _kept_as(fact: Fact, step: PlannedStep) -> str:
    """Return how *fact* is kept where that is in other words than its own."""
    said = words_of(fact.value)
    shown = (step.display, step.display.partition("(")[0])
    is_alike = not said or any(words_of(text) == said for text in shown)
    return "" if is_alike else f" (kept as: {step.display})"


def lines_for_unread(fact: Fact) -> tuple[str, ...]:
    """Return the line for *fact*, which was set aside: for words of the person beside others that were understood."""
    if not fact.evidence:
        return ()
    return (f'not understood: "{fact.evidence}"'[:_LONGEST],)
