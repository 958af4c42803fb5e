"""`tasklore pipeline check`, and what `run` checks before anything runs: each problem with its line and its cure."""

from collections.abc import Iterable, Mapping, Sequence

from nats.aio.client import Client
from pydantic import JsonValue

from contracts.errors import InvalidPipeline, Unreachable
from contracts.messages import AgentCard
from supervisor.cards import read_cards
from supervisor.pipelines.declaration.checks import problems_in_inputs, problems_of, problems_with
from supervisor.pipelines.declaration.files import Source, described
from tasklore.exits import OK
from tasklore.pipeline.client import refuse_aloud
from tasklore.pipeline.inputs import read_inputs
from tasklore.pipeline.lines import counted
from tasklore.pipeline.sources import read_source
from tasklore.pipeline.stores import open_wire
from tasklore.places import leading_with_the_cure
from tasklore.render.screen import print_json, printable, say
from workers.presence import live_workers


async def check_aloud(text: str, given: Sequence[str], *, as_json: bool) -> int:
    """Print what is wrong with the pipeline *text* and the inputs *given*, and return the exit code.

    Raises:
        InvalidInput: there is no such pipeline, or an input cannot be read.
    """
    try:
        source = read_source(text)
    except InvalidPipeline as error:
        return refuse_aloud(error.problems, as_json=as_json)
    problems = own_problems(source)
    if not problems and given:
        problems = input_problems(source, read_inputs(source.pipeline, given))
    has_asked = False
    if not problems:
        try:
            async with open_wire() as client:
                problems = await problems_here(client, source)
                has_asked = True
        except Unreachable as error:
            say(f"its agents and their tasks were not looked at: {error}")
    if problems:
        return refuse_aloud(problems, as_json=as_json)
    if as_json:
        print_json({"pipeline": source.pipeline.name, "problems": [], "checked_agents": has_asked})
    else:
        fits = "it fits the agents that are known here" if has_asked else "by itself it is sound"
        phases = counted(len(source.pipeline.phases), "phase")
        print(f"{printable(source.pipeline.name)}: {phases}, nothing is wrong; {fits}.")
    return OK


def own_problems(source: Source) -> list[str]:
    """Return what is wrong with the declaration by itself."""
    return described(problems_of(source.pipeline), source)


def input_problems(source: Source, inputs: Mapping[str, JsonValue]) -> list[str]:
    """Return which inputs are missing, unknown or of another type."""
    return described(problems_in_inputs(source.pipeline, inputs), source)


async def problems_here(client: Client, source: Source) -> list[str]:
    """Return what does not fit the agents that are known here; call it once `own_problems` has none.

    Raises:
        Unreachable: the bucket of cards did not answer.
    """
    return described(problems_with(source.pipeline, await cards_here(client)), source)


async def cards_here(client: Client) -> dict[str, AgentCard]:
    """Return the card of each agent that was ever started here.

    Raises:
        Unreachable: the bucket of cards did not answer.
    """
    with leading_with_the_cure():
        return {card.agent_id: card for card in await read_cards(client)}


async def away_of(client: Client, agents: Iterable[str]) -> list[str]:
    """Return which of *agents* have no live worker, in their order; a worker that died counts for 15 s.

    Raises:
        Unreachable: the bucket of workers did not answer.
    """
    with leading_with_the_cure():
        alive = {worker.agent_id for worker in await live_workers(client)}
    return [agent for agent in dict.fromkeys(agents) if agent not in alive]


async def say_who_is_away(client: Client, agents: Iterable[str]) -> None:
    """Say which of *agents* have no live worker: their phases wait for one.

    Raises:
        Unreachable: the bucket of workers did not answer.
    """
    if away := await away_of(client, agents):
        say(away_text(away))


def away_text(agents: Sequence[str]) -> str:
    """Return what is said of *agents* that have no live worker."""
    whose = "its" if len(agents) == 1 else "their"
    return f"no worker of {', '.join(agents)} is alive; {whose} phases wait until one is started with `tasklore worker`"
