"""`tasklore pipeline check --cost`: an estimate of the next run, by what the last reports of its tasks had cost."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from tasklore.commands.limits.views import open_budgets
from tasklore.commands.render.columns import Column, print_records
from tasklore.commands.render.screen import printable, say
from tasklore.commands.render.words import count_of, money
from tasklore.contracts.admission.limits import NANO_USD
from tasklore.contracts.pipelines import Pipeline

_INPUT = re.compile(r"\$\{input\.(\w+)\}")


@dataclass(frozen=True, kw_only=True)
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
    pipeline: Pipeline, inputs: Mapping[str, JsonValue]
) -> list[PhaseCost]:
    """Return the cost of each phase, those of inner pipelines included.

    Raises:
        Unreachable: no system runs here, or its Redis does not answer.
    """
    phases = list(_phases_of(pipeline, inputs))
    async with open_budgets() as budgets:
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


def sum_up(costs: list[PhaseCost]) -> tuple[float | None, float | None]:
    """Return the mean of a run with as few tasks as it may have, and its largest cost; None when no phase has one."""
    if all(one.mean_usd is None for one in costs):
        return None, None
    mean_usd = sum((one.mean_usd or 0) * one.fewest for one in costs)
    return mean_usd, sum(
        (one.largest_usd or 0) * (one.most or one.fewest) for one in costs
    )


def print_estimate(costs: list[PhaseCost]) -> None:
    """Print a line for each phase, and for the whole run."""
    mean_usd, largest_usd = sum_up(costs)
    print()
    print_records(
        _COLUMNS,
        [
            *costs,
            PhaseCost(
                phase="in all",
                task="",
                runs=0,
                mean_usd=mean_usd,
                largest_usd=largest_usd,
            ),
        ],
    )
    if unknown := sum(one.mean_usd is None for one in costs):
        why = "no run of that task asked a model of a known price lately"
        say(f"{count_of(unknown, 'phase')} without a known cost: {why}")
    if any(one.most is None for one in costs):
        say(
            "a list whose length is not known before counts as one item; retries are not counted"
        )


def _times(cost: PhaseCost) -> str:
    if cost.most is None:
        return "for each item"
    return (
        f"{cost.fewest:,}"
        if cost.fewest == cost.most
        else f"{cost.fewest:,} to {cost.most:,}"
    )


_COLUMNS = (
    Column[PhaseCost]("PHASE", lambda one: printable(one.phase)),
    Column[PhaseCost]("TASK", lambda one: printable(one.task)),
    Column[PhaseCost]("TIMES", lambda one: _times(one) if one.task else "", right=True),
    Column[PhaseCost](
        "MEAN",
        lambda one: "?" if one.mean_usd is None else money(one.mean_usd),
        right=True,
    ),
    Column[PhaseCost](
        "LARGEST",
        lambda one: "?" if one.largest_usd is None else money(one.largest_usd),
        right=True,
    ),
    Column[PhaseCost](
        "BY REPORTS", lambda one: f"{one.runs:,}" if one.task else "", right=True
    ),
)
