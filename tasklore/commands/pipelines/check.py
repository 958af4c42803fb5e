"""`tasklore pipelines check`, and the checks of `run` before anything runs: each problem with its line and its cure."""

from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.operations.local import LocalApi
from tasklore.commands.pictures import run_cost
from tasklore.commands.pipelines.sources import declare, read_inputs, read_source
from tasklore.commands.render.screen import (
    print_error,
    print_json,
    printable,
    say,
)
from tasklore.commands.render.words import count_of
from tasklore.contracts.errors import InvalidPipeline, Unreachable
from tasklore.supervisor.pipelines.declaration.checks import problems_of
from tasklore.supervisor.pipelines.declaration.files import (
    PipelineSource,
    describe_problems,
    with_lines,
)
from tasklore.supervisor.pipelines.declaration.inputs import problems_in_inputs


def print_check(
    text: str,
    given: Sequence[str],
    *,
    has_cost: bool = False,
    as_json: bool,
    api: str | None = None,
) -> int:
    """Print the problems of the pipeline *text* and of the inputs *given*, and return the exit code.

    With *has_cost* also the cost of its next run.

    Raises:
        InvalidInput: there is no such pipeline, or an input cannot be read.
        Unreachable: a cost is asked for, and no API answers.
        ApiRefused: the key may not estimate.
    """
    is_compared = False
    asked = LocalApi("pipelines", api)
    try:
        source = read_source(text)
        inputs = check_alone(source, given or None)
        check_with_cards(asked, source)
        is_compared = True
    except InvalidPipeline as error:
        return print_problems(error.problems, as_json=as_json)
    except Unreachable as error:
        say(f"its agents and their tasks were not looked at: {error}")
    cost: dict[str, Any] | None = None
    if has_cost:
        body = {"pipeline": declare(source), "inputs": inputs}
        cost = asked.ask("cost", **body)
    if as_json:
        document = {
            "pipeline": source.pipeline.name,
            "problems": [],
            "checked_agents": is_compared,
        }
        print_json(document if cost is None else document | {"cost": cost})
        return OK
    fits = (
        "it fits the agents that are known here"
        if is_compared
        else "by itself it is sound"
    )
    phases = count_of(len(source.pipeline.phases), "phase")
    print(f"{printable(source.pipeline.name)}: {phases}, nothing is wrong; {fits}.")
    if cost is not None:
        print(f"\n{run_cost.draw(cost)}")
    return OK


def check_alone(
    source: PipelineSource, given: Sequence[str] | None = ()
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


def check_with_cards(api: LocalApi, source: PipelineSource) -> None:
    """Compare a declaration with the cards of all agents that the API knows.

    Raises:
        InvalidPipeline: with every problem.
        ApiRefused, Unreachable: as `LocalApi.ask`.
    """
    found = api.ask("check", pipeline=declare(source))
    _demand_none(with_lines(found["problems"], source))


def print_problems(problems: Sequence[str], *, as_json: bool) -> int:
    """Print a line for each problem, and return the exit code."""
    if as_json:
        print_json({"problems": list(problems)})
    for problem in problems:
        print_error(printable(problem))
    if len(problems) > 1:
        print_error(f"{count_of(len(problems), 'problem')}; nothing was run")
    return USAGE


def _demand_none(problems: Sequence[str]) -> None:
    if problems:
        raise InvalidPipeline(problems)
