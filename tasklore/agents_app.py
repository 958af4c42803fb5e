"""`tasklore agents`: what can be asked of whom, and who is there to answer."""

from typing import Annotated

from typer import Argument, Option, Typer

from tasklore.options import SETTLED, Json, example

app = Typer(help="See which agents there are, and retire one.", no_args_is_help=True, **SETTLED)

AgentArgument = Annotated[str, Argument(metavar="AGENT", help="The agent's id.")]


@app.command("list", epilog=example("tasklore agents list"))
def list_agents(as_json: Json = False) -> None:
    """List every agent that was ever started, with its live workers."""
    from tasklore.cards import print_agents
    from tasklore.running import run

    run(print_agents(as_json=as_json))


@app.command(epilog=example("tasklore agents show BudgetTrackerAgent"))
def show(agent: AgentArgument, as_json: Json = False) -> None:
    """Show one agent: its tasks, their parameters, and its workers."""
    from tasklore.cards import print_agent
    from tasklore.running import run

    run(print_agent(agent, as_json=as_json))


@app.command(epilog=example("tasklore agents retire OldAgent"))
def retire(
    agent: AgentArgument,
    force: Annotated[bool, Option("--force", help="Also when workers of it are alive.")] = False,
) -> None:
    """Take an agent out of the catalogue: it can no longer be asked until a worker of it starts again."""
    from tasklore.cards import retire_agent
    from tasklore.running import run

    run(retire_agent(agent, force=force))
