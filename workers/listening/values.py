"""What a listener is given and what it answers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from contracts.messages import Fact

if TYPE_CHECKING:
    from memory.documents.plans import Plan

#: What became of a fact: edits were made, nothing had to be, it was refused, it contradicts what is there at the same
#: rank, or the rules cannot decide it and a model is to be asked.
RulingOutcome = Literal["applied", "known", "rejected", "conflict", "needs_model"]


@dataclass(frozen=True, slots=True)
class PendingFact:
    """A fact that waits; *attempts* counts the runs that failed over it so far.

    *later* are facts of its user that were said after it and are done already: it waited for a model meanwhile.
    """

    fact: Fact
    turn_id: str
    attempts: int = 0
    later: tuple["PendingFact", ...] = ()


@dataclass(frozen=True, slots=True)
class FactBatch:
    """Facts of one user in the order in which they were said; each is to be ruled on."""

    user_id: str
    facts: tuple[PendingFact, ...]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What became of one fact and why.

    *plan* is what was applied to the draft for it; an "applied" one has a plan, and may share it with other facts.
    """

    fact_id: str
    outcome: RulingOutcome
    reasoning: str = ""
    plan: "Plan | None" = None
