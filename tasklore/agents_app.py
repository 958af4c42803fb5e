"""`tasklore agents`: what can be asked of whom, and who is there to answer."""

from typing import Annotated

from typer import Argument, Context, Option, Typer

from tasklore.options import SETTLED, Command, Json, example, show_help_alone

app = Typer(epilog=example("tasklore agents list"), **SETTLED)

AgentArgument = Annotated[str, Argument(metavar="AGENT", help="The agent's id.")]


@app.callback(invoke_without_command=True)
def front(context: Context) -> None:
    """See which agents there are, and retire one."""
    show_help_alone(context)


@app.command("list", cls=Command, epilog=example("tasklore agents list"))
def list_agents(as_json: Json = False) -> None:
    """List every agent that was ever started, with its live workers."""
    from tasklore.cards import print_agents
    from tasklore.running import run

    run(print_agents(as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore agents show BudgetTrackerAgent"))
def show(agent: AgentArgument, as_json: Json = False) -> None:
    """Show one agent: its tasks, their parameters, and its workers."""
    from tasklore.cards import print_agent
    from tasklore.running import run

    run(print_agent(agent, as_json=as_json))


@app.command(cls=Command, epilog=example("tasklore agents retire OldAgent"))
def retire(
    agent: AgentArgument,
    force: Annotated[bool, Option("--force", help="Also when workers of it are alive.")] = False,
) -> None:
    """Take an agent out of the catalogue.

    It can no longer be asked until a worker of it starts again.
    """
    from tasklore.cards import retire_agent
    from tasklore.running import run

    run(retire_agent(agent, force=force))
