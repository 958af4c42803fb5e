"""What the person is told of a change, one short line each: what is noted, and what holds no longer."""

from collections.abc import Iterator

from contracts.messages import Fact
from workers.agents.memory_worker.editor import Change, Step

#: Lines of one fact; of a sweep over a long list the rest is counted.
_MOST = 5
#: Characters of one line.
_LONGEST = 160
#: How a statement to the person begins where a model worded it in English.
_YOU = "You "


def lines_for(fact: Fact, change: Change) -> tuple[str, ...]:
    """Return the lines for *change*, which was made for *fact*."""
    lines = [line for step in change.steps for line in _line(fact, step)]
    more = [f"and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    return tuple(line[:_LONGEST] for line in (*lines[:_MOST], *more))


def _line(fact: Fact, step: Step) -> Iterator[str]:
    if step.operation in ("insert", "renew"):
        yield fact.text[:1].lower() + fact.text[1:].rstrip(".") if fact.text.startswith(_YOU) else fact.text.rstrip(".")
    elif step.operation == "end":
        yield f"no longer: {step.display}"
    elif step.operation == "pause":
        yield f"until {fact.expiry} not: {step.display}"
    elif step.operation == "delete":
        yield f"forgotten: {step.display}"
    else:
        yield f"this contradicts: {step.display}"
