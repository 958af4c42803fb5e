"""An analysis as a pipeline: a phase for each section, all of them optional, late after their deadline."""

from collections.abc import Sequence
from datetime import timedelta
from functools import lru_cache

from contracts.analysis.roster import ROSTER, Seat
from contracts.errors import InvalidInput
from contracts.pipelines import Phase, Pipeline
from supervisor.catalogue import Catalogue
from supervisor.pipelines.declaration.graph import Graph

#: Runs of a task beyond the first before its section fails: a passing mistake is mended in time.
RETRIES = 2
_START = "start `tasklore worker workers.agents.story`"


@lru_cache(maxsize=256)
def declare(roster: tuple[Seat, ...], late_s: float) -> tuple[dict[str, Phase], Graph]:
    """Return the phases of *roster* by section, and the graph of their pipeline.

    Sections of the background are awaited *late_s* past their deadline. The next response waits for immediate ones,
    which are therefore cancelled at theirs.
    """
    phases = []
    for seat in roster:
        deadline = timedelta(seconds=seat.deadline_s)
        is_awaited = seat.group == "background" and late_s > 0
        phases.append(
            Phase(
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
        )
    pipeline = Pipeline(name="analysis", phases=tuple(phases))
    return {phase.name: phase for phase in pipeline.phases}, Graph.of(pipeline)


def demand_agents(catalogue: Catalogue, roster: Sequence[Seat], story_id: str) -> None:
    """Check that at least one agent of *roster* is known, where one is to be asked.

    Raises:
        InvalidInput: none of them is known.
    """
    asked = [seat for seat in roster if seat.enabled]
    if asked and not any(catalogue.find(seat.agent_id, seat.task) for seat in asked):
        raise InvalidInput(f"none of the agents of story {story_id!r} is known; {_START}")


def why_unknown(catalogue: Catalogue, phase: Phase) -> str | None:
    """Return why the task of *phase* cannot be sent, with the cure; None when it can."""
    if catalogue.find(phase.agent, phase.task) is not None:
        return None
    if phase.agent in catalogue.cards:
        return f"agent {phase.agent!r} has no task {phase.task!r}; correct agents.{phase.name}.task of the story"
    is_ours = any(phase.agent == one.agent_id for one in ROSTER)
    cure = _START if is_ours else "start `tasklore worker FILE` with the file that declares it"
    return f"no agent {phase.agent!r} is known; {cure}"
