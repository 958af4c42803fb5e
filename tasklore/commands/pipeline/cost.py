"""`tasklore pipeline check --cost`: an estimate of the next run, by what the last reports of its tasks had cost."""

from tasklore.commands.render.columns import Column, print_records
from tasklore.commands.render.screen import printable, say
from tasklore.commands.render.words import count_of, money
from tasklore.supervisor.pipelines.cost import PhaseCost, sum_up


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
