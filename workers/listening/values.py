"""Arguments and answers of listeners."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from tasklore.contracts.messages import ChatTurn, Fact

if TYPE_CHECKING:
    from tasklore.memory.documents.plans import Plan

#: Outcomes of a fact: edits were made, nothing had to be, it was refused, it stands beside an item that it contradicts,
#: or a model is to be asked.
RulingOutcome = Literal["applied", "known", "rejected", "conflict", "needs_model"]


@dataclass(frozen=True, slots=True)
class TurnBatch:
    """Turns of one user, in the order in which they were said, to be learned from together.

    *before* are the other turns of the same conversations up to the last of *turns*, those of the assistant too, oldest
    first. *known* has, by turn id, the facts that an earlier run learned from a turn before it waited for a model.
    """

    user_id: str
    turns: tuple[ChatTurn, ...]
    before: tuple[ChatTurn, ...] = ()
    known: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """Facts of one turn of a batch; *waits_for* is why a model is still to be asked, None when all is learned."""

    turn_id: str
    facts: tuple[Fact, ...] = ()
    waits_for: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFact:
    """A fact that waits; *attempts* counts the runs that failed over it so far.

    *said* is when its turn was said, None when that is not known. *later* are facts of its user that were said after it
    and are done already: it waited for a model meanwhile.
    """

    fact: Fact
    turn_id: str
    attempts: int = 0
    later: tuple["PendingFact", ...] = ()
    said: datetime | None = None


@dataclass(frozen=True, slots=True)
class FactBatch:
    """Facts of one user in the order in which they were said; each is to be ruled on."""

    user_id: str
    facts: tuple[PendingFact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """The outcome of one fact, and its reason.

    *plan* was applied to the draft for it; an "applied" one has a plan, and may share it with other facts.
    *notices* are short lines for the person, one for each item that was learned or ended.
    """

    fact_id: str
    outcome: RulingOutcome
    reasoning: str = ""
    plan: "Plan | None" = None
    notices: tuple[str, ...] = ()
