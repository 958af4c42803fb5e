"""`tasklore pipeline check`, and the checks of `run` before anything runs: each problem with its line and its cure."""

from collections.abc import Sequence
from dataclasses import asdict

from nats.aio.client import Client
from pydantic import JsonValue

from tasklore.commands.exits import OK
from tasklore.commands.pipeline.client import print_problems
from tasklore.commands.pipeline.cost import print_estimate
from tasklore.commands.pipeline.sources import read_inputs, read_source
from tasklore.commands.places import leading_with_the_cure, open_nats, open_redis
from tasklore.commands.render.screen import print_json, printable, say
from tasklore.commands.render.words import count_of
from tasklore.contracts.errors import InvalidPipeline, Unreachable
from tasklore.memory.budgets.store import Budgets
from tasklore.supervisor.cards import read_cards
from tasklore.supervisor.pipelines.cost import estimate, sum_up
from tasklore.supervisor.pipelines.declaration.cards import problems_with
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.declaration.files import Source, describe_problems
from tasklore.supervisor.pipelines.declaration.inputs import problems_in_inputs

#: Seconds for one read: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0


async def print_check(
    text: str, given: Sequence[str], *, has_cost: bool = False, as_json: bool
) -> int:
    """Print the problems of the pipeline *text* and of the inputs *given*, and return the exit code.

    With *has_cost* also what its next run will cost.

    Raises:
        InvalidInput: there is no such pipeline, or an input cannot be read.
        Unreachable: a cost is asked for, and no system runs here.
    """
    is_compared = False
    try:
        source = read_source(text)
        inputs = check_alone(source, given or None)
        async with open_nats("tasklore-pipeline") as client:
            await check_with_cards(client, source)
            is_compared = True
    except InvalidPipeline as error:
        return print_problems(error.problems, as_json=as_json)
    except Unreachable as error:
        say(f"its agents and their tasks were not looked at: {error}")
    costs = []
    if has_cost:
        async with open_redis("tasklore-costs", _DEADLINE_S) as redis:
            budgets = Budgets(redis, deadline_s=_DEADLINE_S)
            costs = await estimate(source.pipeline, inputs, budgets)
    if as_json:
        document = {
            "pipeline": source.pipeline.name,
            "problems": [],
            "checked_agents": is_compared,
        }
        mean_usd, largest_usd = sum_up(costs)
        cost = {
            "phases": list(map(asdict, costs)),
            "mean_usd": mean_usd,
            "largest_usd": largest_usd,
        }
        print_json(document | ({"cost": cost} if has_cost else {}))
    else:
        fits = (
            "it fits the agents that are known here"
            if is_compared
            else "by itself it is sound"
        )
        phases = count_of(len(source.pipeline.phases), "phase")
        print(f"{printable(source.pipeline.name)}: {phases}, nothing is wrong; {fits}.")
        if has_cost:
            print_estimate(costs)
    return OK


def check_alone(
    source: Source, given: Sequence[str] | None = ()
) -> dict[str, JsonValue]:
    """Check a declaration by itself and its inputs, and return those; None skips the inputs.

    Raises:
        InvalidPipeline: with every problem.
        InvalidInput: an input cannot be read.
    """
    _demand_none(describe_problems(problems_of(source.pipeline), source))
    if given is None:
        return {}
    inputs = read_inputs(source.pipeline, given)
    _demand_none(describe_problems(problems_in_inputs(source.pipeline, inputs), source))
    return inputs


async def check_with_cards(client: Client, source: Source) -> None:
    """Compare a declaration with the cards of all agents that were ever started here.

    Raises:
        InvalidPipeline: with every problem.
        Unreachable: the bucket of cards did not answer.
    """
    with leading_with_the_cure():
        cards = {card.agent_id: card for card in await read_cards(client)}
    _demand_none(describe_problems(problems_with(source.pipeline, cards), source))


def _demand_none(problems: Sequence[str]) -> None:
    if problems:
        raise InvalidPipeline(problems)
