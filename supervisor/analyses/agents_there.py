"""Whether the agents that are to be asked about a response are there, and what to start or correct when one is not."""

from collections.abc import Sequence

from contracts.analysis.roster import ROSTER, Seat
from contracts.errors import InvalidInput
from supervisor.analyses.records import SeatRecord
from supervisor.catalogue import Catalogue

#: What whoever starts no agents is told.
_START = "start `tasklore worker workers.agents.story`"


def demand_agents(catalogue: Catalogue, roster: Sequence[Seat], story_id: str) -> None:
    """See that somebody of *roster* can be asked, where somebody is to be.

    Raises:
        InvalidInput: none of them is known.
    """
    asked = [seat for seat in roster if seat.enabled]
    if asked and not any(catalogue.find(seat.agent_id, seat.task) for seat in asked):
        raise InvalidInput(f"none of the agents of story {story_id!r} is known; {_START}")


def why_unknown(catalogue: Catalogue, seat: SeatRecord) -> str | None:
    """Return why nobody can be asked for *seat*, with the cure; None when somebody can."""
    if catalogue.find(seat.agent_id, seat.task) is not None:
        return None
    if seat.agent_id in catalogue.cards:
        return f"agent {seat.agent_id!r} has no task {seat.task!r}; correct agents.{seat.section}.task of the story"
    is_ours = any(seat.agent_id == one.agent_id for one in ROSTER)
    cure = _START if is_ours else "start `tasklore worker FILE` with the file that declares it"
    return f"no agent {seat.agent_id!r} is known; {cure}"
