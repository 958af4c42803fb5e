"""What the next run of a pipeline will cost, by what the last reports of its tasks had cost."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from tasklore.contracts.admission.limits import NANO_USD
from tasklore.contracts.pipelines import Pipeline
from tasklore.memory.budgets.store import Budgets

_INPUT = re.compile(r"\$\{input\.(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseCost:
    """What a phase will cost, in US dollars: `mean_usd` and `largest_usd` of one task, None where none is known.

    `runs` are the reports that this rests on. The phase is `fewest` to `most` tasks; `most` None is not known before.
    """

    phase: str
    task: str
    runs: int
    mean_usd: float | None
    largest_usd: float | None
    fewest: int = 1
    most: int | None = 1


async def estimate(
    pipeline: Pipeline, inputs: Mapping[str, JsonValue], budgets: Budgets
) -> list[PhaseCost]:
    """Return the cost of each phase, those of inner pipelines included.

    Raises:
        MemoryUnavailable: the store of budgets does not answer.
    """
    phases = list(_phases_of(pipeline, inputs))
    costs = await budgets.costs_of({name for _, name, _, _ in phases})
    found = []
    for phase, name, fewest, most in phases:
        known = [cost / NANO_USD for cost in costs[name]]
        mean_usd = sum(known) / len(known) if known else None
        largest_usd = max(known, default=None)
        found.append(
            PhaseCost(
                phase=phase,
                task=".".join(name),
                runs=len(known),
                mean_usd=mean_usd,
                largest_usd=largest_usd,
                fewest=fewest,
                most=most,
            )
        )
    return found


def _phases_of(
    pipeline: Pipeline,
    inputs: Mapping[str, JsonValue],
    before: str = "",
    fewest: int = 1,
    most: int | None = 1,
) -> Iterator[tuple[str, tuple[str, str], int, int | None]]:
    """Yield each task with its phase, and how many of it there will be at least and at most."""
    for phase in pipeline.phases:
        low = fewest
        high = most
        if phase.for_each is not None:
            given = _INPUT.fullmatch(phase.for_each)
            items = inputs.get(given[1]) if given else None
            low, high = (
                (low * len(items), high and high * len(items))
                if isinstance(items, list)
                else (low, None)
            )
        elif phase.repeat_until is not None:
            high = None if high is None else high * phase.at_most
        if phase.pipeline is not None:
            yield from _phases_of(
                phase.pipeline,
                inputs={},
                before=f"{before}{phase.name}.",
                fewest=low,
                most=high,
            )
        else:
            yield f"{before}{phase.name}", (phase.agent, phase.task), low, high


def sum_up(costs: Sequence[PhaseCost]) -> tuple[float | None, float | None]:
    """Return the mean of a run with as few tasks as it may have, and its largest cost; None when no phase has one."""
    if all(one.mean_usd is None for one in costs):
        return None, None
    mean_usd = sum((one.mean_usd or 0) * one.fewest for one in costs)
    return mean_usd, sum(
        (one.largest_usd or 0) * (one.most or one.fewest) for one in costs
    )
